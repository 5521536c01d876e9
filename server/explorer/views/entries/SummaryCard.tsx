/** Facts about an entry, in sentences; this page has verified each of them. */

import { isCut } from "../../../../engine/verify/events/withheld.js";
import { checkOtsProof, type Entry } from "../../../../engine/verify/index.js";
import { ClientError } from "../../../client/index.js";
import { Card, Check, Facts, Hash, Time } from "../../components/index.js";
import { viewAddress } from "../../state/location.js";
import type { CheckedSignatures } from "../../state/signatures.js";
import type { Proven } from "../../state/source.js";
import type { Task } from "../../state/task.js";

const leaves = (count: number): string => `${NUMBER.format(count)} ${count === 1 ? "leaf" : "leaves"}`;
const NUMBER = new Intl.NumberFormat();

type Around = { readonly previous: Entry | null } | undefined;

interface SummaryCardProps {
  readonly proven: Proven;
  readonly around: Task<Around>;
  readonly signatures: Task<CheckedSignatures | undefined>;
}

export function SummaryCard({ proven: { entry, proof, head }, around, signatures }: SummaryCardProps) {
  const { ots_proof } = entry;
  const anchor = ots_proof === undefined ? null : checkOtsProof(ots_proof, entry.entry_hash);
  return (
    <Card title="Verified in this page">
      <div class="check-list">
        {isCut(entry) ? (
          <p class="soft">
            What it says is withheld, or a part of it, so nothing but the tree says that this is its hash, and its time.
          </p>
        ) : (
          <Check holds>Its content matches its entry hash.</Check>
        )}
        <Check holds>
          It is leaf {NUMBER.format(proof.leaf_index)}, counted from 0, of the tree of {leaves(head.tree_size)}, whose{" "}
          {head.timestamp === undefined ? (
            "checkpoint the log signed."
          ) : (
            <>
              head the operator signed <Time at={head.timestamp} as="age" />.
            </>
          )}
        </Check>
        <Link entry={entry} isFirst={proof.leaf_index === 0} around={around} />
        {signatures.value?.checks.map(({ holds, detail }) => (
          <Check key={detail} holds={holds}>
            <span class="breakable">{detail}</span>
          </Check>
        ))}
        {anchor && <Check holds={anchor.ok}>{anchor.detail}</Check>}
      </div>
      <Facts
        facts={[
          ["Recorded", <Time key="time" at={entry.timestamp} />],
          ["Entry hash", <Hash key="hash" value={entry.entry_hash} label="entry hash" show="whole" />],
          ["Event type", <code key="type">{entry.event_type}</code>],
          ["Chain version", `${entry.chain_version ?? 1}`],
        ]}
      />
      <p class="soft note">
        {(entry.chain_version ?? 1) === 2
          ? isCut(entry)
            ? "Without all of the content, this page can verify neither the time nor the event type."
            : "The hash does not cover the event type, so this page cannot verify it."
          : "In version 1, the hash covers neither the time nor the event type, so this page cannot verify them."}
      </p>
    </Card>
  );
}

/** Whether the hash of the previous entry is the one that this entry's hash covers. */
function Link({ entry, isFirst, around }: { entry: Entry; isFirst: boolean; around: Task<Around> }) {
  if (isFirst) return <Check holds>It is the first entry, so its hash covers no earlier entry.</Check>;
  if (around.error instanceof ClientError && around.error.code === "log-misbehaved")
    return <Check holds={false}>{around.error.detail}</Check>;
  if (around.error !== undefined) return <p class="soft">The entry before it could not be fetched for comparison.</p>;
  const previous = around.value?.previous;
  if (!previous) return <p class="soft check-waiting">Comparing with the entry before it…</p>;
  return (
    <Check holds={previous.entry_hash === entry.previous_hash}>
      {isCut(entry) ? "It names the hash" : "Its hash covers that"} of{" "}
      <a href={viewAddress(["entries", previous.id])}>entry {NUMBER.format(previous.id)}</a>
      {!isCut(entry) && ", and through it every earlier entry"}.
    </Check>
  );
}
