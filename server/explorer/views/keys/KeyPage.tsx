/** One key: the service's information about it, and the checks that this page can make. */
import { normaliseContentHash } from "../../../../engine/verify/index.js";
import { ClientError, type KeyDetail } from "../../../client/index.js";
import { KeyDetail as KeySchema } from "../../../wire/identity/keys.js";
import { TrustStatus } from "../../../wire/signing/trust.js";
import {
  Card,
  Check,
  Digits,
  Empty,
  Facts,
  FailedVerdict,
  Hash,
  Heading,
  KeyStatusBadge,
  TaskView,
  Time,
  Verdict,
  whoseName,
} from "../../components/index.js";
import { addressOf } from "../../state/location.js";
import { shownText } from "../../state/said/names.js";
import { http } from "../../state/service.js";
import { useTask } from "../../state/task.js";
import { AlertsCard } from "./AlertsCard.js";
import { ChainCard } from "./ChainCard.js";
import { EndorsementsCard } from "./EndorsementsCard.js";
import { EntriesCard } from "./EntriesCard.js";
import { fingerprintOf } from "./fingerprint.js";
import { GraphCard } from "./graph/GraphCard.js";
import { KeyVerdict } from "./KeyVerdict.js";
import { Namesakes } from "./Namesakes.js";
import { TrustCard } from "./TrustCard.js";

const NUMBER = new Intl.NumberFormat();

export interface KeyPageProps {
  readonly fingerprint: string;
  readonly query: URLSearchParams;
}

export function KeyPage({ fingerprint: asked, query }: KeyPageProps) {
  const fingerprint = normaliseContentHash(asked);
  if (fingerprint === undefined) return <NoSuchKey text={`${asked} is not a fingerprint.`} isUnclear />;
  return <Found fingerprint={fingerprint} query={query} />;
}

function Found({ fingerprint, query }: KeyPageProps) {
  const task = useTask(
    () => http.get(KeySchema, `/keys/${encodeURIComponent(fingerprint)}`).catch(orNull),
    [fingerprint],
  );
  if (task.value === null) return <NoSuchKey text="No key with this fingerprint is registered." />;
  return (
    <div class="stack">
      <div class="view-head">
        <Heading title={task.value ? `Key of ${task.value.pseudonym}` : "Key"}>
          <bdi class="key-title">{task.value ? shownText(task.value.pseudonym) : "Key"}</bdi>{" "}
          <Digits fingerprint={fingerprint} />
        </Heading>
        <p class="soft">
          {task.value?.named === false
            ? "The key has not signed this name: anybody may have recorded it."
            : "Self-declared name: nobody has checked who holds this key."}
        </p>
        <a href="#/keys">All keys</a>
      </div>
      {task.error !== undefined ? (
        <FailedVerdict error={task.error} what="This key" />
      ) : task.value ? (
        <KeyVerdict shown={task.value} fingerprint={fingerprint} />
      ) : (
        <Verdict finding="busy">Checking the key…</Verdict>
      )}
      <TaskView task={task} what="the key" rows={6}>
        {(key) => key && <Facets shown={key} fingerprint={fingerprint} query={query} />}
      </TaskView>
    </div>
  );
}

function Facets({ shown, fingerprint, query }: KeyPageProps & { readonly shown: KeyDetail }) {
  const trust = useTask(
    () => http.get(TrustStatus, `/endorsements/${encodeURIComponent(fingerprint)}/status`),
    [fingerprint],
  );
  // What there is none of is not asked for.
  const has = (counts: Readonly<Record<string, number>> | undefined) =>
    counts === undefined || Object.values(counts).some((count) => count > 0);
  const [isEndorsed, endorses] = [has(trust.value?.received), has(trust.value?.issued)];
  const isKnown = trust.value !== undefined || trust.error !== undefined;
  return (
    <div class="stack">
      <Namesakes shown={shown} />
      <div class="columns">
        <IdentityCard shown={shown} fingerprint={fingerprint} />
        <TrustCard task={trust} />
      </div>
      {isKnown && (trust.value?.alerts ?? 1) > 0 && <AlertsCard fingerprint={fingerprint} />}
      <ChainCard shown={shown} />
      {isKnown && (isEndorsed || endorses) && <GraphCard fingerprint={fingerprint} query={query} />}
      {isKnown && isEndorsed && <EndorsementsCard fingerprint={fingerprint} direction="received" />}
      {isKnown && endorses && <EndorsementsCard fingerprint={fingerprint} direction="issued" />}
      {isKnown && !isEndorsed && !endorses && (
        <p class="soft">Nobody has endorsed this key, and it has endorsed nobody.</p>
      )}
      <EntriesCard fingerprint={fingerprint} query={query} />
    </div>
  );
}

function IdentityCard({ shown, fingerprint }: { readonly shown: KeyDetail; readonly fingerprint: string }) {
  const computed = fingerprintOf(shown.public_key);
  const holds = computed === fingerprint && shown.fingerprint === fingerprint;
  return (
    <Card title="The key" aside={<KeyStatusBadge status={shown.status} />}>
      <div class="key-facts">
        <Check holds={holds}>
          {holds
            ? "The public key has this fingerprint: this page computed it from the SPKI bytes."
            : "The public key that the service shows does not have this fingerprint."}
        </Check>
        <Facts
          facts={[
            ["Fingerprint", <Hash key="hash" value={fingerprint} label="fingerprint" show="whole" />],
            !holds && ["Computed", computed ?? "This is not a public key that this log accepts."],
            ["Algorithm", shown.algorithm],
            ["Registered", <Time key="time" at={shown.registered_at} />],
            ["Name and expiration", whoseName(shown)],
            shown.expires_at !== null && ["Expires", <Time key="expires" at={shown.expires_at} />],
            shown.log_entry_id !== null && [
              "Recorded in",
              <a key="entry" href={addressOf(["entries", shown.log_entry_id])}>
                entry {NUMBER.format(shown.log_entry_id)}
              </a>,
            ],
          ]}
        />
        <details>
          <summary>Public key</summary>
          <Hash value={shown.public_key} label="public key in PEM" show="whole" />
        </details>
        <p class="soft">This page cannot verify name and status; the entries about them are in the log.</p>
      </div>
    </Card>
  );
}

/** @param props `isUnclear`: nothing was asked that could have an answer */
const NoSuchKey = ({ text, isUnclear = false }: { readonly text: string; readonly isUnclear?: boolean }) => (
  <div class="stack">
    <Heading title="No such key" />
    {!isUnclear && <Verdict finding="open">The service says that there is no such key. Nothing proves that.</Verdict>}
    <Empty title={text}>
      <a href="#/keys">All keys</a>
    </Empty>
  </div>
);

function orNull(error: unknown): null {
  if (error instanceof ClientError && (error.status === 404 || error.status === 422)) return null;
  throw error;
}
