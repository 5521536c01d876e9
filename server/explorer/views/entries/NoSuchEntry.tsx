/** An entry that the service says the log does not have. */
import { Empty, Heading, TaskView } from "../../components/index.js";
import { newestWithout } from "../../state/entries.js";
import { addressOf } from "../../state/location.js";
import { useTask } from "../../state/task.js";

const NUMBER = new Intl.NumberFormat();

export function NoSuchEntry({ id }: { readonly id: number }) {
  const task = useTask(() => newestWithout(id), [id]);
  return (
    <>
      <Heading title={`No entry ${NUMBER.format(id)}`} />
      <TaskView task={task} what="newest entry">
        {(newest) => (
          <Empty title="The log has no such entry.">
            {newest ? (
              <>
                Its newest is <a href={addressOf(["entries", newest.id])}>entry {NUMBER.format(newest.id)}</a>.
              </>
            ) : (
              "Nothing has been recorded yet."
            )}
          </Empty>
        )}
      </TaskView>
    </>
  );
}
