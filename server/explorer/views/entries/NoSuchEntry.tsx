/** An entry that the log does not have. */
import { Empty, Heading } from "../../components/index.js";
import { useCell } from "../../state/cell.js";
import { addressOf } from "../../state/location.js";
import { sight } from "../../state/watching.js";

const NUMBER = new Intl.NumberFormat();

export function NoSuchEntry({ id }: { readonly id: number }) {
  const seen = useCell(sight);
  const size = seen.status === "proven" ? (seen.head?.tree_size ?? 0) : 0;
  return (
    <>
      <Heading title={`No entry ${NUMBER.format(id)}`} />
      <Empty title="The log has no such entry.">
        {size === 0 ? (
          "It has none yet."
        ) : (
          <>
            Its newest is <a href={addressOf(["entries", size])}>entry {NUMBER.format(size)}</a>.
          </>
        )}
      </Empty>
    </>
  );
}
