/** `cairnlog fsck`: checks a data directory, and restores what follows from the entries. */
import { createPool } from "../../../engine/crypto/pool/pool.js";
import { checkLog, type LogCheckOptions, type LogCheckReport } from "../../../engine/log/check/fsck.js";
import { rebuildLog } from "../../../engine/log/check/repair.js";
import { readPublishedHead } from "../../../engine/log/published.js";
import { PRIVATE_CHECKS } from "../../../engine/registry/privatechecks.js";
import { projection } from "../../../engine/registry/projection.js";
import { takeWriterLock } from "../../../engine/store/lmdb/writerlock.js";
import { openStore } from "../../../engine/store/store.js";
import { publishedHeadPath } from "../../settings.js";
import { interruptible } from "../terminal/interrupt.js";
import { printable, printableJson } from "../terminal/printable.js";
import { type Progress, startProgress } from "../terminal/progress.js";
import { readArguments, type Subcommand, UsageError } from "../usage.js";
import { existingLog, operatorKeyOf } from "./data-directory.js";

/** Sentences shown without --json. */
const MAX_SHOWN = 50;
const STAGES = { deriving: "Deriving:", verifying: "Verifying:" };
const AREAS = { entries: "entries and heads", derived: "derived from the entries", private: "private rows" };

const OPTIONS = {
  data: { type: "string", default: process.env.SERVICE_DATA_DIR || "./data" },
  "operator-key": { type: "string" },
  rebuild: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
} as const;

export const fsck: Subcommand = {
  help: `cairnlog fsck [--data DIR] [--operator-key FILE.pem] [--rebuild] [--json]

Checks all that is in a data directory whose service is stopped: every entry, link and hash, both trees, every tile,
every tree head, postings and tables, each against what the entries make. Names what differs.

Options:
  --data DIR               the data directory (default: SERVICE_DATA_DIR, or ./data)
  --operator-key FILE.pem  the key that signs the heads (default: operator.pem or operator.pub.pem in DIR)
  --rebuild                restore tiles, postings and derived tables from the entries; never touches an entry, a head or
                           a private row. Interrupted, it is to be run again: the service does not start before
  --json                   answer in JSON

Exit codes: 0 nothing differs (any more); 1 something does; 2 the command was not understood.

Example:
  cairnlog fsck --data ./data`,
  options: OPTIONS,
  async run(argv) {
    const { values } = readArguments(argv, OPTIONS);
    const path = existingLog(values.data);
    const key = operatorKeyOf(values.data, values["operator-key"]);
    if (!key) throw new UsageError("--operator-key is missing, and there is none in the data directory");
    const published = readPublishedHead(publishedHeadPath(values.data));
    const options = { path, operatorKey: key.pem, projection, privateChecks: PRIVATE_CHECKS, published };
    const { before, after } = await interruptible((signal) => check({ ...options, signal }, values.rebuild));
    const report = after ?? before;
    if (values.json) console.log(printableJson({ ...report, rebuilt: after !== null }));
    else console.log(after ? `${describe(before)}\nRebuilt.\n${describe(after)}` : describe(before));
    return report.ok ? 0 : 1;
  },
};

/** @returns the report, and the one after rebuilding where there was something to rebuild */
async function check(
  options: Omit<LogCheckOptions, "pool" | "progress">,
  isToRebuild: boolean,
): Promise<{ readonly before: LogCheckReport; readonly after: LogCheckReport | null }> {
  const lock = await takeWriterLock(options.path);
  const store = openStore({ path: options.path });
  const pool = createPool();
  const shown = showProgress();
  try {
    const complete = { ...options, pool, progress: shown.progress };
    const before = await checkLog(store, complete);
    if (!isToRebuild || !before.counts.derived || before.counts.entries) return { before, after: null };
    return { before, after: await rebuildLog(store, before, complete) };
  } finally {
    shown.end();
    await pool.close();
    await store.close();
    await lock.release();
  }
}

/** A bar for each stage. */
function showProgress(): { readonly progress: NonNullable<LogCheckOptions["progress"]>; end(): void } {
  let stage: string | undefined;
  let bar: Progress | undefined;
  return {
    progress(now, done, total) {
      if (now !== stage) {
        bar?.end();
        bar = startProgress(STAGES[now], total);
        stage = now;
      }
      bar?.update(done);
    },
    end: () => bar?.end(),
  };
}

function describe({ ok, entries, counts, differences }: LogCheckReport): string {
  if (ok) return `${entries} entries, and nothing differs.`;
  const lines = differences.slice(0, MAX_SHOWN).map(({ message }) => `  ${printable(message)}`);
  const total = counts.entries + counts.derived + counts.private;
  if (total > lines.length) lines.push(`  … and ${total - lines.length} more`);
  const areas = (Object.keys(AREAS) as (keyof typeof AREAS)[]).filter((area) => counts[area]);
  const sums = areas.map((area) => `${counts[area]} in ${AREAS[area]}`).join(", ");
  return [
    `${entries} entries, and ${total === 1 ? "one difference" : `${total} differences`}: ${sums}.`,
    ...lines,
    ...advice(counts),
  ].join("\n");
}

function advice({ entries, derived, private: own }: LogCheckReport["counts"]): string[] {
  if (entries)
    return ["Entries or heads are damaged, which nothing here can repair: restore a backup (cairnlog restore)."];
  return [
    ...(derived ? ["cairnlog fsck --rebuild restores what follows from the entries."] : []),
    ...(own ? ["Private rows follow from nothing: a backup has them (cairnlog restore)."] : []),
  ];
}
