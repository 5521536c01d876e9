/** The entries about a key: its attestations, and every other entry that names it, newest first. */
import { Card, Empty, EntryList, Paging, TaskView } from "../../components/index.js";
import { matchingEntries } from "../../state/entries.js";
import { viewAddress } from "../../state/location.js";
import { useTask } from "../../state/task.js";
import { pageNumberIn } from "./ListPage.js";

const PER_PAGE = 10;
const NUMBER = new Intl.NumberFormat();

interface EntriesCardProps {
  readonly fingerprint: string;
  readonly query: URLSearchParams;
}

export function EntriesCard({ fingerprint, query }: EntriesCardProps) {
  const page = pageNumberIn(query, "entries");
  const task = useTask(() => {
    const list = { path: `/log/by-fingerprint/${encodeURIComponent(fingerprint)}`, filter: {} };
    return matchingEntries(list, { skip: (page - 1) * PER_PAGE, count: PER_PAGE });
  }, [fingerprint, page]);
  const total = task.value?.total ?? 0;
  const at = (number: number) =>
    viewAddress(["keys", fingerprint], { ...Object.fromEntries(query), entries: number > 1 ? number : undefined });
  return (
    <Card
      title="Attestations and other entries"
      aside={task.value && <span class="number">{NUMBER.format(total)} in the log</span>}
    >
      <TaskView task={task} what="entries of this key" rows={5}>
        {({ entries }) =>
          entries.length > 0 ? <EntryList entries={entries} /> : <Empty title="No entry names this key." />
        }
      </TaskView>
      <Paging page={page} pages={Math.ceil(total / PER_PAGE)} what="entries of this key" addressOf={at} />
    </Card>
  );
}
