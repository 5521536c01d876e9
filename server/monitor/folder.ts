/**
 * The files in a monitor's folder: the operator key of the log and the newest verified head (`state.json`), the
 * verified copy of the log (`mirror/`, a data directory), and evidence of misbehaviour (`evidence/`). Anybody who can
 * write here decides what the monitor trusts.
 */
import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, futimesSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import Type, { type Static } from "typebox";
import { Check } from "typebox/value";
import { CairnlogError } from "../../engine/base/error.js";
import { flushFolders, makeFolders, throughDraft } from "../../engine/base/files.js";
import * as wire from "../../engine/contract/log/log.js";
import type { Entry } from "../../engine/verify/index.js";
import { ClientState, type State, type Store } from "../client/index.js";
import type { PublishedEntry } from "../client/static/end.js";

/** The number of entries whose watched events were reported, which never exceeds the mirror's size. */
const Told = Type.Object({ entries: Type.Integer({ minimum: 0 }) });

/** The entry that froze a log of tiles. */
const End = Type.Object({ leaf_index: Type.Integer({ minimum: 0 }), entry: wire.Entry });

export class MonitorFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = resolve(path);
  }

  /** A data directory: `cairnlog serve --read-only` serves it. */
  get mirror(): string {
    return join(this.path, "mirror");
  }

  /** The client's store: `state.json`. */
  get store(): Store {
    return {
      load: async () => this.#read("state.json", ClientState) as State | undefined,
      save: async (state) => void this.#write("state.json", state),
    };
  }

  get told(): number {
    return (this.#read("told.json", Told) as Static<typeof Told> | undefined)?.entries ?? 0;
  }

  set told(entries: number) {
    this.#write("told.json", { entries });
  }

  /** How a log of tiles ended; null while it may grow. */
  get end(): PublishedEntry | null {
    const kept = this.#read("end.json", End) as Static<typeof End> | undefined;
    return kept ? { entry: kept.entry as Entry, leafIndex: kept.leaf_index } : null;
  }

  set end(end: PublishedEntry | null) {
    if (end) this.#write("end.json", { leaf_index: end.leafIndex, entry: end.entry });
  }

  /** @returns the path of the file */
  keepEvidence(kind: string, observedAt: string, evidence: unknown): string {
    const name = `${observedAt.replaceAll(":", "")}-${kind}-${randomUUID().slice(0, 8)}.json`;
    return this.#write(join("evidence", name), evidence);
  }

  #read(name: string, schema: typeof ClientState | typeof Told | typeof End): unknown {
    const path = join(this.path, name);
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      // A text that is not JSON is refused below, like any other damaged file.
    }
    if (Check(schema, value)) return value;
    throw new CairnlogError(
      "corrupt-log",
      `${path} is damaged. Begin anew in another directory, and keep this one: what it holds may be evidence.`,
    );
  }

  #write(name: string, value: unknown): string {
    return keepFile(join(this.path, name), `${JSON.stringify(value, null, 2)}\n`);
  }
}

/**
 * Writes a whole file or none: its bytes are on disk before it gets its name.
 * @param modified when it shall have been changed last; now, if absent
 * @returns `path`
 */
export function keepFile(path: string, content: string | Uint8Array, modified?: Date): string {
  makeFolders(dirname(path));
  throughDraft(path, (draft) => writeFlushed(draft, content, modified));
  flushFolders(dirname(path));
  return path;
}

/** Makes a file whose bytes are on disk; its name may not be. @throws the file system's error, also if it is there */
export function writeFlushed(path: string, content: string | Uint8Array, modified?: Date): void {
  const file = openSync(path, "wx", 0o644);
  try {
    // `writeSync` is not used: on a full disk it may write only a part, and reports that only by its result.
    writeFileSync(file, content);
    if (modified) futimesSync(file, modified, modified);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
