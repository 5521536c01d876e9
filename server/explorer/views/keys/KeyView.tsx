/** One key: the service's information about it, and the checks that this page can make. */
import { KeyDetail as KeySchema } from "../../../../engine/contract/identity/keys.js";
import { TrustStatus } from "../../../../engine/contract/signing/trust.js";
import { normaliseContentHash } from "../../../../engine/verify/index.js";
import { ClientError, type KeyDetail } from "../../../client/index.js";
import { Digits, Empty, FailedVerdict, Heading, TaskView, Verdict } from "../../components/index.js";
import { shownText } from "../../state/names.js";
import { http } from "../../state/service.js";
import { useTask } from "../../state/task.js";
import { AlertsCard } from "./AlertsCard.js";
import { ChainCard } from "./ChainCard.js";
import { EndorsementsCard } from "./EndorsementsCard.js";
import { EntriesCard } from "./EntriesCard.js";
import { GraphCard } from "./graph/GraphCard.js";
import { IdentityCard } from "./IdentityCard.js";
import { KeyVerdict } from "./KeyVerdict.js";
import { Namesakes } from "./Namesakes.js";
import { TrustCard } from "./TrustCard.js";

interface KeyViewProps {
  readonly fingerprint: string;
  readonly query: URLSearchParams;
}

export function KeyView({ fingerprint: asked, query }: KeyViewProps) {
  const fingerprint = normaliseContentHash(asked);
  if (fingerprint === undefined) return <NoSuchKey text={`${asked} is not a fingerprint.`} isUnclear />;
  return <Found fingerprint={fingerprint} query={query} />;
}

function Found({ fingerprint, query }: KeyViewProps) {
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

function Facets({ shown, fingerprint, query }: KeyViewProps & { readonly shown: KeyDetail }) {
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
