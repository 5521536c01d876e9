/** The newest entries, as they come. */
import { useRef } from "preact/hooks";
import type { TreeHead } from "../../../../engine/verify/index.js";
import { Card, Empty, EntryList, Loading, Problem } from "../../components/index.js";
import { alarm } from "../../state/alarm.js";
import { useCell } from "../../state/cell.js";
import { provenEntries } from "../../state/entries.js";
import { useTask } from "../../state/task.js";

const SHOWN = 8;

export function RecentCard({ head }: { readonly head: TreeHead | undefined }) {
  const task = useTask(
    async () => (head ? provenEntries(head, Math.max(0, head.tree_size - SHOWN), head.tree_size) : undefined),
    [head?.tree_size],
  );
  const raised = useCell(alarm);
  const { value: entries, error } = task;
  // What was there when the view was opened is not news.
  const newAfter = useRef(Number.POSITIVE_INFINITY);
  if (entries?.[0] && newAfter.current === Number.POSITIVE_INFINITY) newAfter.current = entries[0].id;
  return (
    <Card title="Newest entries" aside={<a href="#/entries">All entries</a>} class="recent">
      {error !== undefined && !entries ? (
        <Problem error={error} retry={task.retry} />
      ) : entries ? (
        <EntryList entries={entries} newAfter={newAfter.current} />
      ) : !head && raised ? (
        <Empty title="Nothing is listed while the alarm stands.">No head of this log is believed.</Empty>
      ) : (
        <Loading what="entries" rows={SHOWN} />
      )}
    </Card>
  );
}
