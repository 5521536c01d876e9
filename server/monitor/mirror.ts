/**
 * The verified copy: a data directory for `cairnlog serve`, without private tables and private key. New entries are
 * checked by the code that imports history. The service must keep serving the mirrored entries unchanged.
 */
import { join } from "node:path";
import { closeAll } from "../../engine/base/closing.js";
import { CairnlogError } from "../../engine/base/error.js";
import type { Erasure } from "../../engine/log/history/erase.js";
import { type HistoryWriter, openHistory } from "../../engine/log/history/history.js";
import { LOG_FROZEN } from "../../engine/log/operator/entries.js";
import { EntryReader } from "../../engine/log/read/reader.js";
import { publishedCheckpoint } from "../../engine/log/tlog/publisher.js";
import { projection } from "../../engine/registry/events/projection.js";
import { openStore, type Store } from "../../engine/store/store.js";
import {
  canonicalTimestamp,
  checkServiceEntry,
  type Entry,
  type OperatorKeys,
  type TreeHead,
  verifyTreeHead,
} from "../../engine/verify/index.js";
import { checkpointPath, operatorPublicKeyPath } from "../settings/settings.js";
import type { Misconduct } from "./alarm.js";
import { keepFile } from "./folder.js";
import { KeptCheckpoints } from "./tlog.js";

/** An entry of the log, and the head of the size that ends with it. */
interface Received {
  readonly entry: Entry;
  /** Null for an entry of imported history, which has no head. */
  readonly head: TreeHead | null;
}

/** The fault of entries that should have come next. */
interface Refusal {
  readonly kind: Misconduct;
  readonly detail: string;
  readonly entry: Entry;
  /** The entry before the wrong one. */
  readonly other: Entry | null;
  readonly shown: TreeHead | null;
}

const KEEPING: Erasure = { keepsWithheld: true };

export class Mirror {
  readonly #path: string;
  /** The keys that sign the heads, as they are known: they may be ahead of the entries. */
  operators: OperatorKeys;
  /** PEM of the key that signed the newest head of the copy. */
  #shownKey = "";
  readonly #writer: HistoryWriter;
  readonly #store: Store;
  readonly #reader: EntryReader;
  /** The log's checkpoints at `/tlog/`. */
  readonly checkpoints: KeptCheckpoints;

  private constructor(path: string, operators: OperatorKeys, writer: HistoryWriter, store: Store) {
    this.#path = path;
    this.operators = operators;
    this.#writer = writer;
    this.#store = store;
    this.#reader = new EntryReader(store);
    this.checkpoints = new KeptCheckpoints(path, store, () => this.size);
  }

  /** Opens or creates the data directory at `path`. @param erasure of payloads that the log withholds. @throws CairnlogError as `openHistory` does */
  static async open(path: string, operators: OperatorKeys, erasure: Erasure = KEEPING): Promise<Mirror> {
    const log = join(path, "log");
    const { current, chain } = operators;
    const writer = await openHistory({ path: log, operatorKey: current.pem, operators: chain, projection, ...erasure });
    const mirror = new Mirror(path, operators, writer, openStore({ path: log, readOnly: true }));
    mirror.#showKey();
    return mirror;
  }

  /**
   * Writes the public key with which a service opens the mirror. If we crash before it is written, the next opening writes
   * it.
   */
  #showKey(): void {
    const keyId = this.#store.get("meta", "log")?.key_id ?? this.#writer.operators.first.fingerprint;
    const { pem } = this.#writer.operators.named(keyId)!.key;
    if (pem !== this.#shownKey) keepFile(operatorPublicKeyPath(this.#path), pem);
    this.#shownKey = pem;
  }

  /** The number of mirrored entries. All of them are on disk. */
  get size(): number {
    return this.#writer.size;
  }

  /** The entry at a leaf index. */
  entry(leafIndex: number): Entry | undefined {
    return this.#reader.entry(leafIndex);
  }

  /** The head of a size; undefined if there is none. */
  head(treeSize: number): TreeHead | undefined {
    return treeSize > 0 ? this.#reader.head(treeSize) : undefined;
  }

  /** The entry that froze the log; null if the newest one did not. */
  get end(): Entry | null {
    const newest = this.entry(this.size - 1);
    return newest?.event_type === LOG_FROZEN ? newest : null;
  }

  /**
   * Adds the next entries, all or none of them.
   * @returns the fault; null if they were added
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
      const [, i, part] = fault.path.split("/");
      return this.#examined(received, Number(i), fault.message, part === "head");
    }
    this.#store.refresh();
    this.#showKey();
    return null;
  }

  /** Keeps a checkpoint that agrees with the copy, unless it is older than the kept one: a cache may have had it. */
  keepCheckpoint(note: string, treeSize: number): void {
    const file = checkpointPath(this.#path);
    if (treeSize >= (publishedCheckpoint(file)?.treeSize ?? 0)) keepFile(file, note);
  }

  async close(): Promise<void> {
    await closeAll(
      () => this.#store.close(),
      () => this.#writer.close(),
    );
  }

  /** The kind of misbehaviour that item `i` or its head shows. The caller knows that one of them is wrong. */
  async #examined(received: readonly Received[], i: number, detail: string, isHeadAtFault: boolean): Promise<Refusal> {
    const { entry, head } = received[i]!;
    const before = received[i - 1] ?? this.#received(this.size);
    const other = before?.entry ?? null;
    const kind = isHeadAtFault ? await this.#headKind(head!, before?.head) : entryKind(entry, other);
    return { kind, detail, entry, other, shown: head };
  }

  /** The last entry of a size, with the head of that size. */
  #received(treeSize: number): Received | undefined {
    const entry = this.entry(treeSize - 1);
    return entry && { entry, head: this.head(treeSize) ?? null };
  }

  async #headKind(head: TreeHead, before: TreeHead | null | undefined): Promise<Misconduct> {
    if (!(await verifyTreeHead(head, this.operators))) return "bad-signature";
    return before && isBefore(head.timestamp, before.timestamp) ? "time-reversal" : "wrong-root";
  }
}

function entryKind(entry: Entry, other: Entry | null): Misconduct {
  if (other?.event_type === LOG_FROZEN) return "after-freeze";
  if (checkServiceEntry(entry).some(({ code }) => code !== "unknown-digest")) return "bad-entry";
  if (entry.previous_hash !== (other?.entry_hash ?? null) || (other && entry.id <= other.id)) return "broken-chain";
  const isReversed = entry.chain_version === 2 && other && isBefore(entry.timestamp, other.timestamp);
  return isReversed ? "time-reversal" : "bad-entry";
}

function isBefore(later: string, earlier: string): boolean {
  // A version 1 timestamp may be invalid. The result is then false.
  return canonicalTimestamp(later)! < canonicalTimestamp(earlier)!;
}
