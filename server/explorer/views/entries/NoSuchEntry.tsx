/** The page for an entry that the log does not have. */
import { LogHead } from "../../../wire/log/log.js";
import { Empty, Heading, Verdict } from "../../components/index.js";
import { addressOf } from "../../state/location.js";
import { http } from "../../state/service.js";
import { useTask } from "../../state/task.js";

const NUMBER = new Intl.NumberFormat();

export function NoSuchEntry({ id }: { readonly id: number }) {
  const newest = useTask(() => http.get(LogHead, "/log/head"), []).value?.head?.id;
  return (
    <div class="stack">
      <Heading title={`No entry ${NUMBER.format(id)}`} />
      <Verdict finding="open">
        The service says that there is no entry {NUMBER.format(id)}. Nothing proves that.
      </Verdict>
      <Empty title="The log has no such entry.">
        {newest !== undefined && (
          <>
            Its newest is <a href={addressOf(["entries", newest])}>entry {NUMBER.format(newest)}</a>.
          </>
        )}
      </Empty>
    </div>
  );
}
