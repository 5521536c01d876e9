/** Faults that failing system calls must find, when planted in the service, and the cases that find each. */
import type { PlantedFault } from "../reliability/planted.js";
import type { Case } from "./plan.js";

interface SystemFault extends PlantedFault {
  /** Cases in which it shows. */
  readonly shows: (one: Case) => boolean;
}

/** Whether a case is one of these calls, at these times, on `path`. */
const at =
  (phase: Case["phase"], calls: readonly string[], path: string, errors: readonly string[] = ["EIO"]) =>
  (one: Case): boolean =>
    one.phase === phase && calls.includes(one.call) && one.path === path && errors.includes(one.error);

const commits = at("load", ["fdatasync@lmdb"], "log/data.mdb");

export const SYSTEM_FAULTS: readonly SystemFault[] = [
  {
    name: "acknowledges before the commit",
    file: "engine/log/write/writing.js",
    text: "await this.#applier.commit({ firstIndex, batch: packed, rows: recorded }, made);",
    replacement: "this.#applier.commit({ firstIndex, batch: packed, rows: recorded }, made).catch(() => {});",
    shows: commits,
  },
  {
    name: "takes a commit that could not be flushed for done",
    file: "engine/store/lmdb/environment.js",
    text: "throw health.judge(reason);",
    replacement: "return true;",
    shows: commits,
  },
  {
    name: "goes on after a write that failed",
    file: "engine/store/lmdb/health.js",
    text: "if (!this.#failure) {",
    replacement:
      'return new CairnlogError("storage-failed", "A write failed.", { cause: error }); if (!this.#failure) {',
    shows: commits,
  },
  {
    name: "does not end when its log has failed",
    file: "server/cli/operate/serve.js",
    text: "await fail(failure);",
    replacement: "await new Promise(() => {});",
    shows: commits,
  },
  {
    name: "says that an entry is not there when the log cannot be read",
    file: "server/http/route/problems.js",
    text: '"storage-failed": {\n        status: 503,',
    replacement: '"storage-failed": {\n        status: 404,',
    shows: commits,
  },
  {
    name: "ends after a failed write as if it had been told to",
    file: "server/cli/operate/serve.js",
    text: "process.exit(FAILED_EXIT_CODE);",
    replacement: "process.exit(0);",
    shows: commits,
  },
  {
    name: "goes on when a new log cannot be flushed",
    file: "engine/base/files.js",
    text: "fsyncSync(file);",
    replacement: "try { fsyncSync(file); } catch {}",
    shows: at("create", ["fsync@node"], "log/data.mdb"),
  },
  {
    name: "leaves what is withheld on the disk",
    file: "engine/log/history/erase.js",
    text: "if (!pending.payloads)",
    replacement: "if (true)",
    shows: at("start", ["open@node"], "published.json"),
  },
  {
    name: "goes on behind the end of the log after a restart",
    file: "engine/log/read/frontier.js",
    text: "this.frozen = frozenBy(newest);",
    replacement: "",
    shows: at("end", ["pwrite64@lmdb"], "log/data.mdb", ["EINTR"]),
  },
  {
    name: "starts without the newest head that it has shown, when that cannot be read",
    file: "engine/log/tlog/published.js",
    text: 'if (cause.code === "ENOENT")',
    replacement: "if (cause.code)",
    shows: at("start", ["open@node"], "published.json"),
  },
];

/** Of all cases those in which `fault` must be found. */
export const plantedCases =
  (fault: PlantedFault) =>
  (cases: readonly Case[]): readonly Case[] =>
    cases.filter((SYSTEM_FAULTS.find(({ name }) => name === fault.name) as SystemFault).shows).slice(0, 6);
