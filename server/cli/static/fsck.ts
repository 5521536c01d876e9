/** `cairnlog fsck LOG`: checks published files against their checkpoint. */
import type { Policy } from "../../../engine/verify/index.js";
import { persistentFetch } from "../../outgoing/traced.js";
import { checkPublished, type PublishedReport } from "../../publishing/check.js";
import { interruptible } from "../terminal/interrupt.js";
import { printable, printableJson } from "../terminal/printable.js";
import { startProgress } from "../terminal/progress.js";
import { filesAt } from "./place.js";

/** Sentences shown without --json. */
const MAX_SHOWN = 50;

/** @returns the exit code. @throws UsageError; ClientError if it cannot be read, or has no checkpoint of the policy */
export async function fsckPublished(place: string, policy: Policy, json: boolean): Promise<number> {
  const say = (sentence: string) => console.error(printable(sentence));
  let bar: ReturnType<typeof startProgress> | null = null;
  try {
    const report = await interruptible((signal) =>
      checkPublished({
        files: filesAt(place, (send) => persistentFetch({ signal, say, send })),
        policy,
        signal,
        progress: (done, total) => {
          bar ??= startProgress("Checking:", total);
          bar.update(done);
        },
      }),
    );
    bar = end(bar);
    console.log(json ? printableJson(asJson(report)) : printable(describe(report)));
    return report.ok ? 0 : 1;
  } finally {
    end(bar);
  }
}

function end(bar: ReturnType<typeof startProgress> | null): null {
  bar?.end();
  return null;
}

function asJson({ ok, verdict, hasEntries, objects, differences }: PublishedReport): object {
  const { origin, treeSize: tree_size, rootHash: root_hash } = verdict.checkpoint;
  return {
    ok,
    entries: tree_size,
    head: { origin, tree_size, root_hash },
    has_entries: hasEntries,
    objects,
    differences,
  };
}

function describe({ verdict, hasEntries, objects, differences }: PublishedReport): string {
  const { treeSize, origin } = verdict.checkpoint;
  const what = `${treeSize} entries of ${origin} in ${objects} objects${hasEntries ? "" : ", of hashes alone"}`;
  if (!differences.length) return `${what}, and nothing differs.`;
  const shown = differences.slice(0, MAX_SHOWN).map(({ message }) => `  ${message}`);
  if (differences.length > shown.length) shown.push(`  … and ${differences.length - shown.length} more`);
  const count = differences.length === 1 ? "one difference" : `${differences.length} differences`;
  return [
    `${what}, and ${count}:`,
    ...shown,
    "cairnlog publish --audit makes what is missing. What is wrong stays until you know who wrote it, and remove it.",
  ].join("\n");
}
