/**
 * History: entries that were made elsewhere, written into a log unchanged. An import, a restore of a backup and a
 * mirror of another log all write through here. The result on disk is the same as after live appends: the same batches,
 * trees, rows and postings.
 *
 * Nothing is signed: heads come with the entries and are checked, or there are none. Nothing is trusted either:
 * content, links, order, digests, roots and signatures are all checked.
 *
 * If we crash here: each batch is one transaction, so the log ends with a complete batch. The caller reads `size` and
 * `lastHash` and continues from there.
 */
import { importPublicKey, type ServerKey } from "../../crypto/keys/spki.js";
import type { Pool } from "../../crypto/pool/pool.js";
import { SignatureVerifier } from "../../crypto/pool/verifier.js";
import { CairnlogError } from "../../error.js";
import { localJournal } from "../../journal/local.js";
import { packBatch } from "../../store/batch.js";
import { byKey, Layer, type TileChange } from "../../store/changeset.js";
import { migrate } from "../../store/lmdb/migrations.js";
import { takeWriterLock, type WriterLock } from "../../store/lmdb/writerlock.js";
import { FORMAT, HASH } from "../../store/schema.js";
import { openStore, type Store } from "../../store/store.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { putAnchor } from "../anchor/commands.js";
import { isProofOf, openPromises, statusOf } from "../anchor/proof.js";
import { Applier } from "../apply/applier.js";
import { derive, refilingFor } from "../apply/derive.js";
import { LogMemory } from "../apply/memory.js";
import { formatTimestamp, parseTimestamp, systemClock } from "../clock.js";
import { EntryReader } from "../read/reader.js";
import type { Edge } from "../read/seams.js";
import { SIGNING_VERSION } from "../tree/frontier.js";
import { freshHead } from "../write/freshhead.js";
import { LayeredState } from "../write/layered.js";
import { type LoggedEvent, noProjection, type PrivateWriter, type Projection } from "../write/projection.js";
import type { Signer } from "../write/signer.js";
import {
  type CheckedEntry,
  createHistoryReader,
  type HistoryReader,
  type HistoryWarning,
  NO_PREDECESSOR,
  type Predecessor,
} from "./entry.js";
import { checkHead, headKind, isSigned, packedHeads } from "./head.js";

export type { HistoryWarning } from "./entry.js";

export interface HistoryOptions {
  /** Directory of the log; created if it does not exist. Only one process at a time may write it. */
  readonly path: string;
  /** PEM of the public key that signs this log's heads. */
  readonly operatorKey: string;
  /** State that is derived from entries. It must be the projection with which the log will be opened. */
  readonly projection?: Projection;
  /** Verifies the signatures of heads; without it they are verified on this thread. */
  readonly pool?: Pool;
  /** Bytes of address space, which is also the maximum size of the data. */
  readonly mapSize?: number;
}

/** One entry to add. */
export interface HistoryItem {
  /** JSON text of the entry as it was served; an `ots_proof` in it is used if `otsProof` is null. */
  readonly entry: Uint8Array;
  /** Its anchoring proof. */
  readonly otsProof: Uint8Array | null;
  /** The head of the size that the entry makes; null if the caller does not have it. */
  readonly head: TreeHead | null;
}

/** Added to the path of an item if its head is wrong. */
const HEAD = "/head";

/**
 * Opens a log for writing history. No signer is needed.
 * @throws CairnlogError `storage-failed`, `corrupt-log`, `invalid-key`; `wrong-operator` for a log of another key;
 *   `in-use` if another process has it open for writing
 */
export async function openHistory(options: HistoryOptions): Promise<HistoryWriter> {
  const operator = importPublicKey(options.operatorKey);
  const reader = await createHistoryReader(options.projection ?? noProjection);
  const lock = await takeWriterLock(options.path);
  const store = openStore(options);
  try {
    const meta = store.get("meta", "log");
    if (meta && meta.key_id !== operator.fingerprint)
      throw new CairnlogError(
        "wrong-operator",
        `This log is signed by operator key ${meta.key_id}, not by ${operator.fingerprint}.`,
      );
    const { projection = noProjection } = options;
    if (meta) await migrate(store, meta, refilingFor(projection));
    const memory = new LogMemory(store, projection);
    await memory.fileMissing();
    return new HistoryWriter({ store, memory, operator, reader, lock }, options);
  } catch (error) {
    await store.close();
    await lock.release();
    throw error;
  }
}

/** Entries that become one batch: either all of them have heads of one kind, or none has a head. */
interface Group {
  readonly entries: readonly CheckedEntry[];
  /** Either empty, or one head for each entry. */
  readonly heads: readonly TreeHead[];
}

/** A group that has been added to the trees. */
interface PreparedGroup extends Group {
  readonly firstIndex: number;
  readonly digests: Buffer;
  readonly tiles: readonly TileChange[];
}

/** Opened by `openHistory`. */
interface HistoryParts {
  readonly store: Store;
  /** The memory of this thread. */
  readonly memory: LogMemory;
  readonly operator: ServerKey;
  readonly reader: HistoryReader;
  /** Released when the log is closed. */
  readonly lock: WriterLock;
}

export class HistoryWriter {
  readonly #store: Store;
  readonly #lock: WriterLock;
  readonly #operator: ServerKey;
  readonly #projection: Projection;
  readonly #reader: HistoryReader;
  readonly #entries: EntryReader;
  readonly #applier: Applier;
  readonly #verifier: SignatureVerifier | null;
  #last: Predecessor = NO_PREDECESSOR;
  /** Timestamp of the newest head, microseconds; null before the first. */
  #lastHead: number | null = null;
  #size = 0;
  #adding: Promise<unknown> = Promise.resolve();
  #closed = false;

  /** Use `openHistory`. */
  constructor({ store, memory, operator, reader, lock }: HistoryParts, options: HistoryOptions) {
    this.#store = store;
    this.#lock = lock;
    this.#operator = operator;
    this.#reader = reader;
    this.#projection = options.projection ?? noProjection;
    this.#verifier = options.pool ? new SignatureVerifier(options.pool) : null;
    this.#entries = new EntryReader(store);
    this.#applier = new Applier({ store, journal: localJournal, projection: this.#projection, operator, memory });
    this.#restore();
  }

  /** Reads the state from disk again: at the start, and after a failed write, which may still have reached the disk. */
  #restore(): void {
    this.#applier.restore();
    const { size } = this.#applier.frontier;
    this.#last = this.#applier.last;
    const head = size ? this.#entries.head(size) : undefined;
    this.#lastHead = head ? parseTimestamp(head.timestamp) : null;
    this.#size = size;
  }

  /** Number of entries in the log, all of them on disk. */
  get size(): number {
    return this.#size;
  }

  /** Id of the newest entry on disk; 0 on an empty log. */
  get lastId(): number {
    return this.#last.id;
  }

  /** Entry hash of the newest entry on disk, hex; null on an empty log. */
  get lastHash(): string | null {
    return this.#last.entryHash;
  }

  /**
   * Checks entries that follow those in the log, and writes them. Resolves when they are on disk, with warnings about
   * unusual but valid values. Writes one batch, unless items with and without heads are mixed: then one for each
   * stretch.
   * @throws CairnlogError `invalid-input`, `not-i-json`, `payload-too-large`, `invalid-signature`, `wrong-operator` for
   *   an item that is not a valid next entry: `details` has its number in `items` as path (`/3`, or `/3/head` if the
   *   head is wrong), and nothing was written; `storage-failed`: read `size` before trying again; `closed`
   */
  add(items: readonly HistoryItem[]): Promise<readonly HistoryWarning[]> {
    return this.#inTurn(() => this.#add(items));
  }

  /**
   * Adds one entry, for which `signer` makes a head now, so that a history without heads ends with one.
   * @throws CairnlogError as `add` does; `signer-unavailable`
   */
  seal(item: HistoryItem, signer: Signer): Promise<readonly HistoryWarning[]> {
    return this.#inTurn(() => this.#add([item], signer));
  }

  /** Files the postings of all entries, and merges what is due. Otherwise the next start would do that work. */
  settled(): Promise<void> {
    return this.#inTurn(() => this.#applier.postings.fileAll());
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new CairnlogError("closed", "The log is closed."));
    const run = this.#adding.then(work);
    this.#adding = run.catch(() => undefined);
    return run;
  }

  async #add(items: readonly HistoryItem[], signer?: Signer): Promise<readonly HistoryWarning[]> {
    if (!items.length) return [];
    const entries = this.#checkEntries(items);
    try {
      const groups = signer
        ? [await this.#sealed(entries, signer)]
        : await this.#checkHeads(grouped(items, entries).map((group) => this.#prepare(group)));
      for (const group of groups) await this.#write(group);
    } catch (error) {
      // The trees are ahead of the disk.
      this.#restore();
      throw error;
    }
    await this.#applier.relieved();
    return entries.flatMap(({ warnings }) => warnings);
  }

  #checkEntries(items: readonly HistoryItem[]): CheckedEntry[] {
    let previous = this.#last;
    return items.map(({ entry, otsProof }, i) => {
      previous = about(i, () => this.#reader.read(entry, previous, this.#size + i, otsProof));
      return previous as CheckedEntry;
    });
  }

  /** Adds a group's entries to both trees. @returns also the root of every new size, if there are heads */
  #prepare(group: Group): PreparedGroup & { readonly roots: Buffer } {
    const { frontier } = this.#applier;
    const firstIndex = frontier.size;
    const digests = Buffer.concat(group.entries.map(({ entryHash }) => Buffer.from(entryHash, "hex")));
    const { roots, tiles } = frontier.extend(digests, group.heads[0]?.tree_version ?? null);
    return { ...group, firstIndex, digests, tiles, roots: Buffer.from(roots.buffer, roots.byteOffset, roots.length) };
  }

  async #sealed(entries: readonly CheckedEntry[], signer: Signer): Promise<PreparedGroup> {
    const group = this.#prepare({ entries, heads: [] });
    const { size, trees, lastTimestamp } = this.#applier.frontier;
    const micros = Math.max(systemClock(), entries.at(-1)!.micros, this.#lastHead ?? 0, lastTimestamp);
    const head = await freshHead(trees[SIGNING_VERSION], size, formatTimestamp(micros), signer, this.#operator);
    return { ...group, heads: [head] };
  }

  /** Checks every head; an error names the item of the head. */
  async #checkHeads(
    groups: readonly (PreparedGroup & { readonly roots: Buffer })[],
  ): Promise<readonly PreparedGroup[]> {
    let lastHead = this.#lastHead;
    for (const { firstIndex, heads, roots } of groups)
      for (const [i, head] of heads.entries()) {
        const expected = {
          size: firstIndex + i + 1,
          root: roots.toString("hex", HASH * i, HASH * i + HASH),
          notBefore: lastHead,
        };
        about(firstIndex + i - this.#size, () => checkHead(head, expected, this.#operator), HEAD);
        lastHead = parseTimestamp(head.timestamp);
      }
    // Verification starts only now. If it had started before another head was refused, its rejection would be unhandled
    // and end the process.
    const signatures = groups.flatMap(({ firstIndex, heads }) =>
      heads.map((head, i) => this.#checkSignature(head, firstIndex + i - this.#size)),
    );
    await Promise.all(signatures);
    return groups;
  }

  async #checkSignature(head: TreeHead, number: number): Promise<void> {
    const isValid = await isSigned(head, this.#operator, this.#verifier);
    const check = () => {
      if (!isValid) throw new CairnlogError("invalid-signature", "The tree head's signature does not verify.");
    };
    about(number, check, HEAD);
  }

  async #write(group: PreparedGroup): Promise<void> {
    const { entries, heads, firstIndex, digests, tiles } = group;
    const layer = this.#derive(entries);
    const size = firstIndex + entries.length;
    this.#putMeta(layer, firstIndex, entries[0]!, heads);
    const batch = packBatch(
      entries.map(({ json }) => json),
      digests,
      heads.length ? packedHeads(heads, this.#operator.fingerprint) : null,
    );
    const { recorded, derived } = layer.split();
    // In key order: neighbours in a table then share the pages that are written.
    const made = { rows: derived.sort(byKey), tiles, terms: layer.terms, size };
    await this.#applier.commit({ firstIndex, batch, rows: recorded }, made);
    this.#last = entries.at(-1)!;
    const head = heads.at(-1);
    if (head) this.#lastHead = parseTimestamp(head.timestamp);
    this.#size = size;
  }

  /** The rows and terms derived from the entries, and the rows of the proofs that came with them. */
  #derive(entries: readonly CheckedEntry[]): Layer {
    const layer = new Layer();
    const state = new LayeredState(this.#store, this.#applier.postings, [layer]);
    let previous: Edge = this.#last;
    for (const entry of entries) {
      derive(entry, previous, this.#projection, state, layer.terms);
      previous = entry;
      const { event, otsProof } = entry;
      if (otsProof) importAnchor(event, entry.entryHash, otsProof, state);
    }
    return layer;
  }

  #putMeta(layer: Layer, firstIndex: number, first: CheckedEntry, heads: readonly TreeHead[]): void {
    const meta = this.#store.get("meta", "log");
    if (firstIndex === 0) {
      // The operator key is valid since the first entry of the log, even if this copy is younger.
      const created_at = [first.event.timestamp, meta?.created_at ?? formatTimestamp(systemClock())].sort()[0]!;
      layer.put("meta", "log", { format: FORMAT, key_id: this.#operator.fingerprint, created_at });
    } else if (!heads.length && this.#lastHead !== null && meta && !meta.sparse_heads)
      layer.put("meta", "log", { ...meta, sparse_heads: true });
  }

  /** Finishes the running work, then closes. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#adding;
    await this.#applier.postings.close();
    await this.#store.close();
    await this.#lock.release();
  }
}

/** Runs `check` on item number `i`, and adds that number to an error. */
function about<T>(i: number, check: () => T, part = ""): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    const { code, message } = error;
    throw new CairnlogError(code, `Item ${i}: ${message}`, {
      cause: error,
      details: [{ path: `/${i}${part}`, message }],
    });
  }
}

/**
 * Stretches of items whose heads fit into one batch: either without heads, or with one tree version and signature
 * length.
 */
function grouped(items: readonly HistoryItem[], entries: readonly CheckedEntry[]): Group[] {
  const groups: { kind: string; entries: CheckedEntry[]; heads: TreeHead[] }[] = [];
  for (const [i, { head }] of items.entries()) {
    const kind = head ? about(i, () => headKind(head), HEAD) : "none";
    let group = groups.at(-1);
    if (group?.kind !== kind) {
      group = { kind, entries: [], heads: [] };
      groups.push(group);
    }
    group.entries.push(entries[i]!);
    if (head) group.heads.push(head);
  }
  return groups;
}

/** A proof that cannot be read is kept unchanged and never completed. */
function importAnchor(event: LoggedEvent, entryHash: string, proof: Uint8Array, state: PrivateWriter): void {
  const isReadable = isProofOf(proof, Buffer.from(entryHash, "hex"));
  const status = isReadable ? statusOf(proof) : "pending";
  const isSettled = !isReadable || (status === "confirmed" && !openPromises(proof).length);
  putAnchor(state, event.leafIndex, { proof, status, isSettled }, event.timestamp);
}
