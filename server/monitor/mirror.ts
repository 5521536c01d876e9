/**
 * The verified copy: a data directory as `cairnlog serve` knows it, without private tables and private key. What gets in
 * was checked by the same code that imports history; what is in is what the service is held to from then on.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { CairnlogError } from "../../engine/error.js";
import { type HistoryWriter, openHistory } from "../../engine/log/history/history.js";
import { EntryReader } from "../../engine/log/read/reader.js";
import { projection } from "../../engine/registry/projection.js";
import { openStore, type Store } from "../../engine/store/store.js";
import {
  canonicalTimestamp,
  checkEntry,
  type Entry,
  type PublicKey,
  type TreeHead,
  verifyTreeHead,
} from "../../engine/verify/index.js";
import { checkpointPath, operatorPublicKeyPath } from "../settings.js";
import type { Misconduct } from "./alarm.js";
import { keepFile } from "./folder.js";

/** An entry of the log, and the head of the size that it made. */
export interface Received {
  readonly entry: Entry;
  /** Null for imported history, which has none. */
  readonly head: TreeHead | null;
}

/** What was found wrong with entries that should have come next. */
export interface Refusal {
  readonly kind: Misconduct;
  readonly detail: string;
  readonly entry: Entry;
  /** The entry before it. */
  readonly other: Entry | null;
  readonly shown: TreeHead | null;
}

export class Mirror {
  readonly #path: string;
  readonly #key: PublicKey;
  readonly #writer: HistoryWriter;
  readonly #store: Store;
  readonly #reader: EntryReader;

  private constructor(path: string, key: PublicKey, writer: HistoryWriter, store: Store) {
    this.#path = path;
    this.#key = key;
    this.#writer = writer;
    this.#store = store;
    this.#reader = new EntryReader(store);
  }

  /** Opens or creates the data directory at `path`. @throws CairnlogError as `openHistory` does */
  static async open(path: string, key: PublicKey): Promise<Mirror> {
    mkdirSync(path, { recursive: true });
    keepFile(operatorPublicKeyPath(path), key.pem);
    const log = join(path, "log");
    const writer = await openHistory({ path: log, operatorKey: key.pem, projection });
    return new Mirror(path, key, writer, openStore({ path: log, readOnly: true }));
  }

  /** Entries, all of them on disk. */
  get size(): number {
    return this.#writer.size;
  }

  /** The entry at a leaf index. */
  entry(leafIndex: number): Entry | undefined {
    return this.#reader.entry(leafIndex);
  }

  /** The head of a size; undefined where there is none. */
  head(treeSize: number): TreeHead | undefined {
    return treeSize > 0 ? this.#reader.head(treeSize) : undefined;
  }

  /**
   * Takes what comes next, or nothing of it.
   * @returns what is wrong with it; null when it was taken
   * @throws CairnlogError `storage-failed`
   */
  async add(received: readonly Received[]): Promise<Refusal | null> {
    const items = received.map(({ entry, head }) => ({
      entry: Buffer.from(JSON.stringify(entry)),
      otsProof: null,
      head,
    }));
    try {
      await this.#writer.add(items);
    } catch (error) {
      const fault = error instanceof CairnlogError ? error.details?.[0] : undefined;
      if (!fault) throw error;
      return this.#examined(received, Number(fault.path.slice(1)), fault.message);
    }
    this.#store.refresh();
    return null;
  }

  /** Keeps a checkpoint that was found to agree with the copy. */
  keepCheckpoint(note: string): void {
    keepFile(checkpointPath(this.#path), note);
  }

  async close(): Promise<void> {
    await this.#store.close();
    await this.#writer.close();
  }

  /** Which kind of lie item `i` is; that it is one is known. */
  async #examined(received: readonly Received[], i: number, detail: string): Promise<Refusal> {
    const { entry, head } = received[i]!;
    const other = received[i - 1]?.entry ?? this.entry(this.size + i - 1) ?? null;
    const before = received[i - 1]?.head ?? this.head(this.size + i) ?? null;
    const kind = await this.#kind(entry, other, head, before);
    return { kind, detail, entry, other, shown: head };
  }

  async #kind(entry: Entry, other: Entry | null, head: TreeHead | null, before: TreeHead | null): Promise<Misconduct> {
    if (checkEntry(entry).some(({ code }) => code !== "unknown-digest")) return "bad-entry";
    if (entry.previous_hash !== (other?.entry_hash ?? null) || (other && entry.id <= other.id)) return "broken-chain";
    if (entry.chain_version === 2 && other && isBefore(entry.timestamp, other.timestamp)) return "time-reversal";
    if (!head) return "bad-entry";
    if (!(await verifyTreeHead(head, this.#key))) return "bad-signature";
    if (before && isBefore(head.timestamp, before.timestamp)) return "time-reversal";
    return "wrong-root";
  }
}

function isBefore(later: string, earlier: string): boolean {
  const [now, then] = [canonicalTimestamp(later), canonicalTimestamp(earlier)];
  return now !== undefined && then !== undefined && now < then;
}
