/** The page for an entry that the log does not have. */
import { LogHead } from "../../../wire/log/log.js";
import { Empty, Heading } from "../../components/index.js";
import { addressOf } from "../../state/location.js";
import { http } from "../../state/service.js";
import { useTask } from "../../state/task.js";

const NUMBER = new Intl.NumberFormat();

export function NoSuchEntry({ id }: { readonly id: number }) {
  const newest = useTask(() => http.get(LogHead, "/log/head"), []).value?.head?.id;
  return (
    <>
      <Heading title={`No entry ${NUMBER.format(id)}`} />
      <Empty title="The log has no such entry.">
        {newest !== undefined && (
          <>
            Its newest is <a href={addressOf(["entries", newest])}>entry {NUMBER.format(newest)}</a>.
          </>
        )}
      </Empty>
    </>
  );
}
