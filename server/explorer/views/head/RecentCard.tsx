/** The newest entries, updated as they arrive. */
import { useRef } from "preact/hooks";
import type { TreeHead } from "../../../../engine/verify/index.js";
import { Card, Empty, EntryList, Loading, ProblemNote } from "../../components/index.js";
import { alarms } from "../../state/alarm.js";
import { useCell } from "../../state/cell.js";
import { source } from "../../state/source.js";
import { useTask } from "../../state/task.js";

const SHOWN = 8;

export function RecentCard({ head }: { readonly head: TreeHead | undefined }) {
  const task = useTask(
    async () => (head ? source().entries(head, Math.max(0, head.tree_size - SHOWN), head.tree_size) : undefined),
    [head?.tree_size],
  );
  const isAlarmed = useCell(alarms).length > 0;
  const { value: entries, error } = task;
  // Entries that were there when the view was opened are not new.
  const newAfter = useRef(Number.POSITIVE_INFINITY);
  if (entries?.[0] && newAfter.current === Number.POSITIVE_INFINITY) newAfter.current = entries[0].id;
  return (
    <Card title="Newest entries" aside={<a href="#/entries">All entries</a>} class="recent">
      {error !== undefined && !entries ? (
        <ProblemNote error={error} retry={task.retry} />
      ) : entries ? (
        <EntryList entries={entries} newAfter={newAfter.current} />
      ) : !head && isAlarmed ? (
        <Empty title="Nothing is listed during an alarm.">No head of this log can be trusted now.</Empty>
      ) : (
        <Loading what="entries" rows={SHOWN} />
      )}
    </Card>
  );
}
