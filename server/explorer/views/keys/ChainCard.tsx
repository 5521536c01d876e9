/** The chain of succession: the keys before and after this one. */
import { KeyDetail as KeySchema } from "../../../../engine/contract/identity/keys.js";
import type { KeyDetail } from "../../../client/index.js";
import { Card, KeyName, KeyStatusBadge, TaskView } from "../../components/index.js";
import { viewAddress } from "../../state/location.js";
import { http } from "../../state/service.js";
import { useTask } from "../../state/task.js";

/** Number of keys fetched in each direction; the last one has a link to continue. */
const REACH = 6;

interface Chain {
  readonly keys: readonly KeyDetail[];
  /** Fingerprints of the next keys beyond both ends. */
  readonly before: string | null;
  readonly after: string | null;
}

/** Renders nothing for a key without predecessor and successor. */
export function ChainCard({ shown }: { readonly shown: KeyDetail }) {
  const task = useTask(() => chainOf(shown), [shown]);
  if (shown.predecessor_fingerprint === null && shown.successor_fingerprint === null) return null;
  return (
    <Card title="Succession" aside="oldest first">
      <TaskView task={task} what="the keys before and after" rows={2}>
        {({ keys, before, after }) => (
          <ol class="chain">
            {before !== null && <Beyond fingerprint={before} text="Earlier keys" />}
            {keys.map((key) => (
              <li key={key.fingerprint} {...(key === shown ? { "aria-current": "true" as const } : {})}>
                <KeyName fingerprint={key.fingerprint} name={key.pseudonym} isLink={key !== shown} />
                {key === shown && <strong>(this key)</strong>}
                <KeyStatusBadge status={key.status} />
                {key.successor_confirmed === false && (
                  <span class="soft">named a successor, which has not signed that</span>
                )}
              </li>
            ))}
            {after !== null && <Beyond fingerprint={after} text="Later keys" />}
          </ol>
        )}
      </TaskView>
    </Card>
  );
}

const Beyond = ({ fingerprint, text }: { readonly fingerprint: string; readonly text: string }) => (
  <li>
    <a href={viewAddress(["keys", fingerprint])}>{text}</a>
  </li>
);

async function chainOf(shown: KeyDetail): Promise<Chain> {
  const [earlier, later] = await Promise.all([
    walk(shown, "predecessor_fingerprint"),
    walk(shown, "successor_fingerprint"),
  ]);
  const keys = [...earlier.keys.reverse(), shown, ...later.keys];
  return { keys, before: earlier.beyond, after: later.beyond };
}

/** Follows the chain in one direction; if the service answers with a cycle, it stops at the first repeated key. */
async function walk(from: KeyDetail, direction: "predecessor_fingerprint" | "successor_fingerprint") {
  const keys: KeyDetail[] = [];
  const seen = new Set([from.fingerprint]);
  let next = from[direction];
  while (next !== null && keys.length < REACH && !seen.has(next)) {
    seen.add(next);
    const key = await http.get(KeySchema, `/keys/${encodeURIComponent(next)}`);
    keys.push(key);
    next = key[direction];
  }
  return { keys, beyond: next };
}
