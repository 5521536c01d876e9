/** `cairnlog fsck`: checks a data directory, and restores what follows from the entries. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { CairnlogError } from "../../../engine/base/error.js";
import { checkFiles, filesOnly } from "../../../engine/log/check/files.js";
import type { LogCheckOptions, LogCheckReport } from "../../../engine/log/check/fsck.js";
import { readPublishedHead } from "../../../engine/log/tlog/published.js";
import { publishedCheckpoint } from "../../../engine/log/tlog/publisher.js";
import { takeWriterLock } from "../../../engine/store/lmdb/writerlock.js";
import { publishedHeadPath } from "../../settings/settings.js";
import { shownCheckpointPaths } from "../../tlog/shown.js";
import { existingLog, operatorKeyOf } from "../files/data-directory.js";
import { flag, subcommand, text, textOr } from "../line/subcommand.js";
import { none, UsageError } from "../line/usage.js";
import { trustedBy } from "../printing/proof-file.js";
import { interruptible } from "../terminal/interrupt.js";
import { printable, printableJson } from "../terminal/printable.js";
import { type Progress, startProgress } from "../terminal/progress.js";
import type { FsckMessage, FsckResult, FsckTask } from "./fsck-worker.js";

type ShownProgress = NonNullable<LogCheckOptions["progress"]>;

const WORKER = fileURLToPath(new URL("./fsck-worker.js", import.meta.url));

/** Sentences shown without --json. */
const MAX_SHOWN = 50;
const STAGES = { deriving: "Deriving:", verifying: "Verifying:" };
const AREAS = { entries: "entries and heads", derived: "derived from the entries", private: "private rows" };

export const fsck = subcommand({
  forms: ["[--data DIR] [--operator-key FILE.pem] [--rebuild]", "FOLDER|URL (--vkey VKEY | --policy FILE)"],
  about: `Checks all that is in a data directory whose service is stopped: every page of its files, every entry, link and hash, both
trees, the RFC 6962 tree and its checkpoints, every tile, every tree head, postings and tables, each against what the entries
make. Names what differs. If a file is damaged, it reads what can be read.

Of files that cairnlog publish has put into a FOLDER, s3://BUCKET/PREFIX or behind a URL it checks every tile, bundle and run of the
index against the checkpoint, and names what is missing or wrong.`,
  options: {
    data: textOr("DIR", process.env.SERVICE_DATA_DIR || "./data", "the data directory"),
    "operator-key": text("FILE.pem", "the key that signs the heads (default: operator.pem or operator.pub.pem in DIR)"),
    rebuild: flag(
      "restore tiles, postings and derived tables from the entries; never touches an entry, a head or a private row. Interrupted, it is to be run again: the service does not start before",
    ),
    vkey: text("VKEY", "published files: the key that signs the checkpoint, from a source that you trust"),
    policy: text("FILE", "published files: the logs and witnesses that you trust (tlog-policy)"),
    json: flag("answer in JSON"),
  },
  notes: "Exit codes: 0 nothing differs (any more); 1 something does; 2 the command was not understood.",
  examples: `cairnlog fsck --data ./data
cairnlog fsck s3://logs/tlog --vkey log.example/tlog+…`,
  async run(operands, values) {
    const [place, ...more] = operands;
    const { vkey, policy } = values;
    none(more);
    if (place !== undefined) {
      if (vkey === undefined && policy === undefined) throw new UsageError("published files need --vkey or --policy");
      if (values.rebuild || values["operator-key"] !== undefined)
        throw new UsageError("--rebuild and --operator-key are for a data directory");
      // Loaded only here: with the client and all that publishes, it is half of all that the command has.
      const { fsckPublished } = await import("../static/fsck.js");
      return fsckPublished(place, trustedBy(vkey, policy), values.json);
    }
    if (vkey !== undefined || policy !== undefined)
      throw new UsageError("--vkey and --policy are for published files: name them");
    const path = existingLog(values.data);
    const key = operatorKeyOf(values.data, values["operator-key"]);
    if (!key) throw new UsageError("--operator-key is missing, and there is none in the data directory");
    const published = readPublishedHead(publishedHeadPath(values.data));
    const checkpoints = shownCheckpointPaths(values.data).flatMap((file) => publishedCheckpoint(file) ?? []);
    const task = { path, operatorKey: key.pem, published, checkpoints, isToRebuild: values.rebuild };
    const { before, after } = await interruptible((signal) => check(task, signal));
    const report = after ?? before;
    if (values.json) console.log(printableJson({ ...report, rebuilt: after !== null }));
    else console.log(after ? `${describe(before)}\nRebuilt.\n${describe(after)}` : describe(before));
    return report.ok ? 0 : 1;
  },
});

/** Looks at the files, and has the rest done by a process of its own (fsck-worker.ts). */
async function check(task: Omit<FsckTask, "files">, signal: AbortSignal): Promise<FsckResult> {
  const lock = await takeWriterLock(task.path);
  const shown = showProgress();
  try {
    const files = checkFiles(task.path);
    if (files.log === "closed") return { before: filesOnly(files, 0, null), after: null };
    return await delegate({ ...task, files }, shown.progress, signal);
  } finally {
    shown.end();
    await lock.release();
  }
}

/** @throws CairnlogError as `checkLog` and `rebuildLog` do */
async function delegate(task: FsckTask, progress: ShownProgress, signal: AbortSignal): Promise<FsckResult> {
  signal.throwIfAborted();
  const worker = fork(WORKER, { serialization: "advanced", execArgv: [] });
  const stop = () => worker.connected && worker.send("stop");
  signal.addEventListener("abort", stop);
  let doing = "before it could read an entry";
  let entries = 0;
  let last: Exclude<FsckMessage, { progress: unknown }> | undefined;
  worker.on("message", (message: FsckMessage) => {
    if (!("progress" in message)) {
      last = message;
      return;
    }
    const [stage, done, total] = message.progress;
    entries = done;
    doing = `while it was ${stage} the entries after the first ${done}`;
    progress(stage, done, total);
  });
  worker.send(task);
  // Messages may arrive after the exit, but not after the disconnect.
  const [ended] = await Promise.all([once(worker, "exit"), once(worker, "disconnect")]);
  const [code, killer] = ended as [number | null, NodeJS.Signals | null];
  signal.removeEventListener("abort", stop);
  if (last && "result" in last) return last.result;
  if (last && "refused" in last) {
    if (task.files.log === "sound" || signal.aborted) throw new CairnlogError(last.refused.code, last.refused.message);
    return { before: filesOnly(task.files, entries, last.refused.message), after: null };
  }
  const end = last ? `failed (${last.failed})` : `ended with ${killer ?? `exit code ${code}`}`;
  return { before: filesOnly(task.files, entries, `Reading the log ${end} ${doing}.`), after: null };
}

/** A bar for each stage. */
function showProgress(): { readonly progress: ShownProgress; end(): void } {
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
