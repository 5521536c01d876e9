/**
 * What a monitor keeps in its folder: whose key signs the log and the newest head that held (`state.json`), the verified
 * copy of the log (`mirror/`, a data directory), and the evidence where the log was caught (`evidence/`). Whoever writes
 * here decides what is believed.
 */
import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import Type, { type Static } from "typebox";
import { Check } from "typebox/value";
import { CairnlogError } from "../../engine/error.js";
import { flushFolders } from "../../engine/flush.js";
import { ClientState, type State, type Store } from "../client/index.js";

/** How far watched events were told, which is never further than the mirror reaches. */
const Told = Type.Object({ entries: Type.Integer({ minimum: 0 }) });

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

  /** @returns where it is kept */
  keepEvidence(kind: string, observedAt: string, evidence: unknown): string {
    const name = `${observedAt.replaceAll(":", "")}-${kind}-${randomUUID().slice(0, 8)}.json`;
    return this.#write(join("evidence", name), evidence);
  }

  #read(name: string, schema: typeof ClientState | typeof Told): unknown {
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
      // Refused below, with what is no state.
    }
    if (Check(schema, value)) return value;
    throw new CairnlogError(
      "invalid-input",
      `${path} is damaged. Begin anew in another directory, and keep this one: what it holds may be evidence.`,
    );
  }

  #write(name: string, value: unknown): string {
    return keepFile(join(this.path, name), `${JSON.stringify(value, null, 2)}\n`);
  }
}

/** Writes a file whole or not at all: on disk before it has its name. @returns `path` */
export function keepFile(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  const fresh = `${path}.${randomUUID()}`;
  try {
    const file = openSync(fresh, "wx", 0o644);
    try {
      // Not `writeSync`: it may write a part alone, when there is room for no more, and says so by nothing but a number.
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(fresh, path);
    flushFolders(dirname(path));
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
  return path;
}
