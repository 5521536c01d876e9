/** Size and root of the newest head, and the checks that this page made. */
import type { TreeHead } from "../../../../engine/verify/index.js";
import { Check, Hash, Time } from "../../components/index.js";
import { misbehavedAt } from "../../state/alarm.js";
import { useCell } from "../../state/cell.js";
import { isDemonstration, memoryLasts } from "../../state/memory.js";
import { lastVisit, operators } from "../../state/watching.js";
import { type ShownCheckpoint, witnessedSize } from "./checkpoint.js";

const NUMBER = new Intl.NumberFormat();

interface HeadCardProps {
  /** Undefined before it is known; null for an empty log. */
  readonly head: TreeHead | null | undefined;
  /** When it was last verified, in milliseconds since 1970. */
  readonly provenAt: number;
  /** Absent before it is known, and where nothing asks witnesses; null if there is none. */
  readonly checkpoint?: ShownCheckpoint | null | undefined;
}

export function HeadCard({ head, provenAt, checkpoint }: HeadCardProps) {
  return (
    <section class="card head-card" aria-label="The newest tree head">
      <div class="head-size">
        <p class="head-count number">{head === undefined ? "…" : NUMBER.format(head?.tree_size ?? 0)}</p>
        <p class="soft">{head?.tree_size === 1 ? "entry" : "entries"}</p>
        <p class="head-signed soft">
          {head ? (
            <>
              Head signed <Time at={head.timestamp} as="age" />
            </>
          ) : (
            "\u00a0"
          )}
        </p>
        {head && checkpoint && checkpoint.cosigners.length > 0 && (
          <Witnessed entries={head.tree_size} size={Math.min(head.tree_size, witnessedSize(checkpoint))} />
        )}
      </div>
      <div class="head-proof">
        <Proofs head={head} provenAt={provenAt} />
        <div class="head-root">
          <span class="soft">Root</span>
          {head ? (
            <Hash value={head.root_hash} label="root hash" show="whole" />
          ) : (
            <span class="soft">{head === null ? "none before the first entry" : "…"}</span>
          )}
        </div>
      </div>
    </section>
  );
}

/** How much of the log a witness has signed. */
const Witnessed = ({ entries, size }: { readonly entries: number; readonly size: number }) => (
  <p class="head-witnessed soft">
    <meter min={0} max={entries} value={size} aria-label="Entries that are witnessed" />
    {size ? `Witnessed up to entry ${NUMBER.format(size)}` : "Not witnessed yet"}
  </p>
);

function Proofs({ head, provenAt }: Omit<HeadCardProps, "checkpoint">) {
  const key = useCell(operators)?.current;
  const wrongAt = useCell(misbehavedAt);
  if (provenAt < wrongAt)
    return (
      <div class="head-checks">
        <Check holds={false}>The newest head could not be verified: see the alarm above.</Check>
        <p class="soft">
          {head ? "This is the last head that was verified." : "No head of this log has been verified before."}
        </p>
      </div>
    );
  if (head === undefined) return <p class="head-checks soft">Fetching the head and checking it…</p>;
  if (head === null)
    return <p class="head-checks soft">The log is empty. Its first head will be signed with its first entry.</p>;
  return (
    <div class="head-checks">
      <Check holds>
        <strong>Signed</strong> by the operator key ({key?.algorithm}); the signature was checked in this page.
      </Check>
      <Check holds={lastVisit?.head ? true : null}>
        <History head={head} />
      </Check>
      <details class="soft">
        <summary>Which code verifies this</summary>
        <p>
          The signature by <code>verifyTreeHead</code>, the consistency of heads by <code>verifyConsistency</code> of{" "}
          <code>cairnlog/verify</code>, the package that works offline.
        </p>
      </details>
    </div>
  );
}

/** The result of the consistency proof, in the reader's terms. */
function History({ head }: { readonly head: TreeHead }) {
  const before = lastVisit?.head;
  if (!lastVisit)
    return (
      <>
        <strong>First visit.</strong>{" "}
        {memoryLasts()
          ? "From now on this browser remembers the head, and verifies that every later head extends it."
          : isDemonstration.value
            ? "The log is a demonstration, which this browser does not remember: the page can only compare heads that it sees while it is open."
            : "This browser stores nothing, so the page can only compare heads that it sees while it is open."}
      </>
    );
  if (!before)
    return (
      <>
        The log was <strong>empty</strong> at your last visit on <Time at={lastVisit.seen_at} />: there was nothing that
        could be rewritten.
      </>
    );
  const joined = head.tree_size - before.tree_size;
  return (
    <>
      <strong>Nothing has been rewritten</strong> since your last visit on <Time at={lastVisit.seen_at} />
      {joined > 0
        ? `: ${NUMBER.format(joined)} ${joined === 1 ? "entry was" : "entries were"} added to the ${NUMBER.format(before.tree_size)} earlier ones.`
        : ", and nothing was added."}
    </>
  );
}
