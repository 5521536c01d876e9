/** What holds of an entry, in sentences, each checked in this page. */
import { checkOtsProof, type Entry, type TreeHead } from "../../../../engine/verify/index.js";
import { Card, Facts, Hash, Time, Verdict } from "../../components/index.js";
import { addressOf } from "../../state/location.js";
import { client } from "../../state/service.js";
import { useTask } from "../../state/task.js";

const NUMBER = new Intl.NumberFormat();

export function SummaryCard({ entry, head }: { readonly entry: Entry; readonly head: TreeHead }) {
  const { ots_proof } = entry;
  const anchor = ots_proof === undefined ? null : checkOtsProof(ots_proof, entry.entry_hash);
  return (
    <Card title="Proven in this page">
      <div class="verdicts">
        <Verdict holds>Its content hashes to its entry hash.</Verdict>
        <Verdict holds>
          It is leaf {NUMBER.format(entry.id - 1)} of the tree of {NUMBER.format(head.tree_size)} leaves, whose head the
          operator signed <Time at={head.timestamp} as="age" />.
        </Verdict>
        <Link entry={entry} />
        {anchor && <Verdict holds={anchor.ok}>{anchor.detail}</Verdict>}
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
          ? "The event type is not covered by the hash: it is the service's word."
          : "Version 1 covers neither the time nor the event type: they are the service's word."}
      </p>
    </Card>
  );
}

/** Whether the hash of the entry before it is the one that this entry's hash covers. */
function Link({ entry }: { readonly entry: Entry }) {
  const { id, previous_hash } = entry;
  const task = useTask(async () => (id > 1 ? client.log.entry(id - 1) : null), [id]);
  if (id === 1)
    return <Verdict holds={previous_hash === null}>It is the first: its hash covers no entry before it.</Verdict>;
  const before = <a href={addressOf(["entries", id - 1])}>entry {NUMBER.format(id - 1)}</a>;
  if (task.error !== undefined)
    return <p class="soft">Entry {NUMBER.format(id - 1)} could not be fetched to compare.</p>;
  if (!task.value) return <p class="soft verdict-waiting">Comparing with the entry before it…</p>;
  return (
    <Verdict holds={task.value.entry.entry_hash === previous_hash}>
      Its hash covers that of {before}, and through it every entry before.
    </Verdict>
  );
}
