/** Faults that states of the disk must show, when planted in the build. */
import type { PlantedFault } from "../reliability/planted.js";
import type { RecordingName } from "./recordings.js";

export interface PowerlossFault extends PlantedFault {
  /** The recordings that show it. */
  readonly only: readonly RecordingName[];
}

export const POWERLOSS_FAULTS: readonly PowerlossFault[] = [
  {
    name: "acknowledges before the commit",
    file: "engine/log/write/writing.js",
    text: "await this.#applier.commit({ firstIndex, batch: packed, rows: recorded }, made);",
    replacement: "this.#applier.commit({ firstIndex, batch: packed, rows: recorded }, made).catch(() => {});",
    only: ["service"],
  },
  {
    name: "acknowledges what is written, before it is flushed",
    file: "engine/store/lmdb/environment.js",
    text: "const openHandle = () => open({",
    replacement:
      'const openHandle = () => ((options) => Object.defineProperty(open({ ...options, overlappingSync: !options.noSync }), "flushed", { value: Promise.resolve() }))({',
    only: ["service"],
  },
  {
    name: "opens LMDB so that it does not flush",
    file: "engine/store/lmdb/environment.js",
    text: "        noSync,\n",
    replacement: "        noSync: true,\n",
    only: ["service"],
  },
  {
    name: "does not flush the folders of a new log",
    file: "engine/store/lmdb/environment.js",
    text: "    flushFolders(path);\n",
    replacement: "",
    only: ["service"],
  },
  {
    name: "does not flush folders that are new above the data directory",
    file: "engine/base/files.js",
    text: "flushFolders(parent);",
    replacement: "flushFolder(parent);",
    only: ["service"],
  },
  {
    name: "does not flush the operator key",
    file: "engine/crypto/signer/operator-key.js",
    text: "fsyncSync(file);",
    replacement: "",
    only: ["service"],
  },
  {
    name: "opens the writer's lock file as it is",
    file: "engine/store/lmdb/writerlock.js",
    text: 'if (state === "damaged" || state === "unborn")',
    replacement: "if (false)",
    only: ["service"],
  },
  {
    name: "takes a file that was never written for one that it can open",
    file: "engine/store/lmdb/environment.js",
    text: 'if (state === "unborn")',
    replacement: "if (false)",
    only: ["service"],
  },
  {
    name: "does not start with a published.json that was cut",
    file: "engine/log/tlog/published.js",
    text: '        text = readFileSync(file, "utf8");\n',
    replacement: '        text = readFileSync(file, "utf8");\n        JSON.parse(text);\n',
    only: ["service"],
  },
  {
    name: "keeps a newer head in published.json than the log has",
    file: "engine/log/tlog/published.js",
    text: "JSON.stringify(head)",
    replacement: "JSON.stringify({ ...head, tree_size: head.tree_size + 1 })",
    only: ["service"],
  },
  {
    name: "does not start with a failure.json that was cut",
    file: "server/failure.js",
    text: 'readFileSync(path, "utf8").trim()',
    replacement: 'JSON.parse(readFileSync(path, "utf8"))',
    only: ["failure"],
  },
  {
    name: "leaves what is withheld on the disk",
    file: "engine/log/history/erase.js",
    text: "if (!pending.payloads)",
    replacement: "if (true)",
    only: ["service"],
  },
  {
    name: "goes on behind the end of a log",
    file: "engine/log/read/frontier.js",
    text: "this.frozen = frozenBy(newest);",
    replacement: "",
    only: ["end"],
  },
  {
    name: "renames an imported log without a flush",
    file: "engine/log/history/import.js",
    text: "        flushFolders(path);\n        renameSync(postingsFolder(building), postingsFolder(path));\n        flushFolder(path);\n",
    replacement: "        renameSync(postingsFolder(building), postingsFolder(path));\n",
    only: ["import after a start"],
  },
  {
    name: "renames a restored log without a flush",
    file: "engine/log/history/restore.js",
    text: "        flushFolders(dirname(path));\n",
    replacement: "",
    only: ["restore"],
  },
];
