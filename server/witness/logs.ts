/**
 * The file that names the logs of a witness. Two forms are read: the log lists of the witness network, whose first line is
 * `logs/v0`, and the `log` lines of a tlog-policy file. In both, a line `frozen SIZE` says where the log above it has ended.
 */
import { CairnlogError } from "../../engine/base/error.js";
import { parseTreeSize } from "../../engine/verify/index.js";
import { type NoteKey, parseAnyVkey } from "../../engine/verify/note/key.js";

/** A log whose checkpoints are cosigned. */
export interface WitnessedLog {
  /** The first line of its checkpoints. */
  readonly origin: string;
  /** A checkpoint needs a signature by one of these. */
  readonly keys: readonly NoteKey[];
  /** The size at which it has ended; null while it may grow. A witness sees hashes alone, so its operator must say this. */
  readonly end: number | null;
}

/** The logs of a witness, by origin. */
export type WitnessedLogs = ReadonlyMap<string, WitnessedLog>;

const LIST_HEADER = "logs/v0";
/** Lines of a log list about the log of the last `vkey` line which change nothing here. */
const REMARKS: ReadonlySet<string> = new Set(["qpd", "contact"]);

interface KeyLine {
  readonly key: NoteKey;
  origin: string;
  end: number | null;
}

/**
 * Reads the text of such a file. A log may have several lines, each with another key, for example while it changes its
 * key. Keys of types that are not known here are passed over: they must not keep the others from being read.
 * @throws CairnlogError `invalid-input` with the number of the first line that cannot be read
 */
export function parseWitnessedLogs(text: string): WitnessedLogs {
  const lines = text.split("\n").flatMap((line, at): [number, string][] => {
    const content = line.trim();
    return content === "" || content.startsWith("#") ? [] : [[at + 1, content]];
  });
  const isList = lines[0]?.[1] === LIST_HEADER;
  const found: KeyLine[] = [];
  for (const [number, line] of isList ? lines.slice(1) : lines)
    try {
      if (/^frozen\b/.test(line)) readEnd(line, found.at(-1));
      else if (isList) readListLine(line, found);
      else readPolicyLine(line, found);
    } catch (cause) {
      throw new CairnlogError("invalid-input", `Line ${number} of the file of logs: ${(cause as Error).message}`, {
        cause,
      });
    }
  const logs = new Map<string, WitnessedLog>();
  for (const { origin, key, end } of found) {
    if (key.type === "unknown") continue;
    const { keys = [], end: known = null } = logs.get(origin) ?? {};
    if (known !== null && end !== null && known !== end)
      throw new CairnlogError("invalid-input", `The file of logs has two ends of ${origin}: ${known} and ${end}.`);
    if (keys.some(({ name, id }) => name === key.name && id === key.id))
      throw new CairnlogError("invalid-input", `The file of logs has two keys ${key.name}+${key.id} for one log.`);
    logs.set(origin, { origin, keys: [...keys, key], end: known ?? end });
  }
  return logs;
}

/** `frozen SIZE` */
function readEnd(line: string, log: KeyLine | undefined): void {
  const [, size, more] = line.split(/[ \t]+/);
  const end = more === undefined ? parseTreeSize(size ?? "") : undefined;
  if (!log) throw new Error("frozen is said of the log in a line above.");
  // A log that has ended has the entry that ended it.
  if (!end) throw new Error("behind frozen stands the size at which the log has ended.");
  log.end = end;
}

/** `log VKEY [URL]` */
function readPolicyLine(line: string, found: KeyLine[]): void {
  const [word, vkey, , more] = line.split(/[ \t]+/);
  if (word !== "log" || vkey === undefined || more !== undefined)
    throw new Error(
      `each line is "log" and a verifier key; in a list of the witness network, the first is ${LIST_HEADER}.`,
    );
  found.push(keyLine(vkey));
}

/** `vkey VKEY`, which begins a log, or a line about the log that the last one began. */
function readListLine(line: string, found: KeyLine[]): void {
  const [, word, value] = /^(\S+)\s*(.*)$/.exec(line)!;
  if (word === "vkey") {
    found.push(keyLine(value!));
    return;
  }
  const last = found.at(-1);
  if (!last) throw new Error("the first log begins with vkey.");
  if (word === "origin" && value) last.origin = value;
  else if (!REMARKS.has(word!)) throw new Error(`${word} is not a word of a log list.`);
}

function keyLine(vkey: string): KeyLine {
  const key = parseAnyVkey(vkey);
  // Such a cosignature is what a witness makes, not a log. With ML-DSA-44, both make the same.
  if (key.type === "cosignature/v1")
    throw new Error("the key of a log has the type 0x01 or 0x06; this is the key of a witness.");
  return { key, origin: key.name, end: null };
}
