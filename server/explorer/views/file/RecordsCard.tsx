/** The attestations of the document in the log. This page checks each of them, step by step. */
import { useEffect } from "preact/hooks";
import { signedWords } from "../../../../engine/verify/index.js";
import {
  Badge,
  Card,
  CardPaging,
  DownloadIcon,
  Empty,
  Facts,
  ForeignText,
  Hash,
  KeyName,
  saveJson,
  TaskView,
  Time,
  type Tone,
} from "../../components/index.js";
import type { CheckedAttestation } from "../../state/attestation.js";
import { viewAddress } from "../../state/location.js";
import { type Task, useTask } from "../../state/task.js";
import { Checks } from "./Checks.js";
import { type Claim, type ClaimRecords, checkClaim, RECORDS_PER_PAGE } from "./records.js";
import type { Results } from "./results.js";
import { TimeLine } from "./TimeLine.js";

const NUMBER = new Intl.NumberFormat();
const STATUS_TONES: Readonly<Record<string, Tone>> = {
  active: "good",
  succeeded: "info",
  revoked: "bad",
  expired: "warning",
};

interface RecordsCardProps {
  readonly hash: string;
  readonly fileName: string;
  readonly task: Task<ClaimRecords | undefined>;
  readonly page: number;
  setPage(page: number): void;
  readonly results: Results;
}

export function RecordsCard({ hash, fileName, task, page, setPage, results }: RecordsCardProps) {
  const total = task.value?.total ?? 0;
  const pages = Math.ceil(total / RECORDS_PER_PAGE);
  return (
    <Card title="Attestations in the log" aside={total > 0 && attestations(total)}>
      <TaskView task={task} what="attestations of this file" rows={5}>
        {(found) =>
          found &&
          (found.claims.length === 0 ? (
            <Empty title="The log has no attestation of this file.">
              A file that differs in a single byte has another hash. This page cannot verify that no attestation is
              missing.
            </Empty>
          ) : (
            <>
              <TimeLine claims={found.claims} />
              <ol class="records" start={(page - 1) * RECORDS_PER_PAGE + 1}>
                {found.claims.map((claim) => (
                  <Record key={claim.entry.id} claim={claim} hash={hash} fileName={fileName} results={results} />
                ))}
              </ol>
            </>
          ))
        }
      </TaskView>
      <CardPaging page={page} pages={pages} onPage={setPage} />
    </Card>
  );
}

function Record({
  claim,
  hash,
  fileName,
  results,
}: {
  readonly claim: Claim;
  readonly hash: string;
  readonly fileName: string;
  readonly results: Results;
}) {
  const task = useTask(() => checkClaim(claim, hash), [claim, hash]);
  const { entry } = claim;
  useEffect(() => results.report({ entry, checked: task.value, error: task.error }), [entry, task.value, task.error]);
  const event = task.value?.event ?? claim.event;
  return (
    <li class="record">
      <div class="record-head">
        <h3>
          {task.value ? (
            <KeyName fingerprint={event.signer_key_fingerprint} name={task.value.key.pseudonym} isLink />
          ) : (
            "…"
          )}
        </h3>
        <Badge tone="info">{event.attestation_type.replaceAll("_", " ")}</Badge>
        {task.value && <Standing checked={task.value} />}
      </div>
      <Facts
        facts={[
          ["Title", <ForeignText key="title" text={event.document_title} />],
          ["Key", <Hash key="key" value={event.signer_key_fingerprint} label="signer's fingerprint" />],
          event.intent_statement ? ["Statement", <ForeignText key="statement" text={event.intent_statement} />] : null,
          task.value ? ["Whose words", wordsOf(task.value)] : null,
          [
            "Recorded",
            <>
              <Time at={entry.timestamp} /> as{" "}
              <a href={viewAddress(["entries", entry.id])}>entry {NUMBER.format(entry.id)}</a>
            </>,
          ],
        ]}
      />
      <TaskView task={task} what="proofs" rows={6}>
        {({ checks, bundle }) => (
          <div class="record-proofs">
            <Checks checks={checks.filter(({ name }) => name !== "format")} />
            {bundle && (
              <button type="button" class="button" onClick={() => saveJson(`${fileName}.attestation.json`, bundle)}>
                <DownloadIcon /> Save as .attestation.json
              </button>
            )}
          </div>
        )}
      </TaskView>
    </li>
  );
}

/** Says whether the signer or only the log states the attestation's type and statement. */
const wordsOf = ({ signed }: CheckedAttestation): string =>
  signed
    ? signedWords(signed)
    : "Whether the signer signed the type and the statement is not in the log; the .attestation.json shows it.";

const STANDINGS: Readonly<Record<CheckedAttestation["standing"], readonly [label: string, tone: Tone]>> = {
  holds: ["Signature fits", "good"],
  open: ["Signature not shown", "warning"],
  wrong: ["Does not hold", "bad"],
};

function Standing({ checked: { standing, key } }: { readonly checked: CheckedAttestation }) {
  const [label, tone] = STANDINGS[standing];
  return (
    <>
      <Badge tone={tone}>{label}</Badge>
      <Badge tone={STATUS_TONES[key.status] ?? "neutral"}>Key {key.status}</Badge>
      {!key.named && <Badge tone="warning">Name not signed by the key</Badge>}
    </>
  );
}

const attestations = (count: number): string =>
  `${NUMBER.format(count)} ${count === 1 ? "attestation" : "attestations"}`;
