/** The page for an entry that the log does not have. */
import { Empty, Heading, Verdict } from "../../components/index.js";
import { viewAddress } from "../../state/location.js";
import { server, source } from "../../state/source.js";
import { useTask } from "../../state/task.js";

const NUMBER = new Intl.NumberFormat();

export function NoSuchEntry({ id }: { readonly id: number }) {
  const newest = useTask(() => source().newestId(), []).value;
  return (
    <div class="stack">
      <Heading title={`No entry ${NUMBER.format(id)}`} />
      {/* No hash covers the number of an entry: whoever serves the files may leave one out. */}
      <Verdict finding="open">
        {server()} says that there is no entry {NUMBER.format(id)}. Nothing proves that.
      </Verdict>
      <Empty title="The log has no such entry.">
        {newest !== undefined && (
          <>
            Its newest is <a href={viewAddress(["entries", newest])}>entry {NUMBER.format(newest)}</a>.
          </>
        )}
      </Empty>
    </div>
  );
}
