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

import { closeAfter, closeAll } from "../../base/closing.js";
import { CairnlogError, inputError } from "../../base/error.js";
import { Lock } from "../../base/lock.js";
import { importPublicKey, type ServerKey } from "../../crypto/keys/spki.js";
import { type Pool, SignatureVerifier } from "../../crypto/pool/pool.js";
import type { Signer } from "../../crypto/signer/operator-key.js";
import { checkAlone, localJournal } from "../../journal/ledger.js";
import { byKey, Layer, type TileChange } from "../../store/changeset.js";
import { takeWriterLock, type WriterLock } from "../../store/lmdb/writerlock.js";
import { migrate } from "../../store/migrations.js";
import { packBatch } from "../../store/schema/batch.js";
import { FORMAT, HASH, type KeyOf, type RowOf, type TableName } from "../../store/schema/schema.js";
import type { Store } from "../../store/store.js";
import type { Entry } from "../../verify/tree/entry.js";
import type { OperatorTerm } from "../../verify/tree/operators.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { isProofOf, openPromises, putAnchor, statusOf } from "../anchor/proof.js";
import { Applier } from "../apply/applier.js";
import { deriveRows, refilingFor } from "../apply/derive.js";
import {
  type CheckedEntry,
  createHistoryReader,
  type HistoryReader,
  type HistoryWarning,
  NO_PREDECESSOR,
  type Predecessor,
} from "../apply/entry.js";
import { checkHead, isSigned, packedHeads } from "../apply/head.js";
import { LogMemory } from "../apply/memory.js";
import type { Frozen } from "../operator/entries.js";
import { Operators } from "../operator/operators.js";
import { SIGNING_VERSION } from "../read/frontier.js";
import { EntryReader } from "../read/reader.js";
import type { Edge } from "../read/seams.js";
import { isAnsweredFor } from "../read/withheld.js";
import { formatTimestamp, parseTimestamp, systemClock } from "../state/clock.js";
import { checkPath } from "../state/given.js";
import { type LoggedEvent, noProjection, type PrivateWriter, type Projection } from "../state/projection.js";
import { LayeredState } from "../state/rows.js";
import { freshHead } from "../tree/proofs.js";
import { type Erasure, openErased } from "./erase.js";
import { about, type Group, grouped, HEAD, type HistoryItem } from "./group.js";

export type { HistoryWarning } from "../apply/entry.js";
export type { HistoryItem } from "./group.js";

export interface HistoryOptions extends Erasure {
  /** Directory of the log; created if it does not exist. Only one process at a time may write it. */
  readonly path: string;
  /** PEM of the public key that signs this log's heads, or of another one in the chain of its operator keys. */
  readonly operatorKey: string;
  /**
   * The chain of operator keys that holds `operatorKey`, as `OperatorKeys.verify` accepted it. Needed if that is not the
   * first key and the log does not have the entries that tell so yet.
   */
  readonly operators?: readonly OperatorTerm[];
  /** State that is derived from entries. It must be the projection with which the log will be opened. */
  readonly projection?: Projection;
  /** Verifies the signatures of heads; without it they are verified on this thread. */
  readonly pool?: Pool;
  /** Bytes of address space, which is also the maximum size of the data. */
  readonly mapSize?: number;
  /** As in `LogOptions`. */
  readonly minFreeBytes?: number;
  /** As in `StoreOptions`: for a log that is being built. */
  readonly isUnshared?: boolean;
}

/**
 * Opens a log for writing history. No signer is needed.
 * @throws CairnlogError `storage-failed`, `corrupt-log`, `invalid-key`; `wrong-operator` for a log of another key;
 *   `in-use` if another process has it open for writing
 */
export async function openHistory(options: HistoryOptions): Promise<HistoryWriter> {
  checkPath("openHistory", options);
  const known = options.operators
    ? Operators.ofChain(options.operators)
    : Operators.of(importPublicKey(options.operatorKey));
  const { projection = noProjection } = options;
  const reader = await createHistoryReader(projection);
  const lock = await takeWriterLock(options.path);
  const store = await openErased({ ...options, projection }).catch((error) => closeAfter(error, () => lock.release()));
  try {
    checkAlone(store, options.path);
    const meta = store.get("meta", "log");
    if (meta) {
      Operators.read(store, meta, known);
      await migrate(store, meta, refilingFor(projection));
    }
    const memory = new LogMemory(store, projection, known);
    await memory.fileMissing();
    return new HistoryWriter({ store, memory, reader, lock }, options);
  } catch (error) {
    return closeAfter(
      error,
      () => store.close(),
      () => lock.release(),
    );
  }
}

/** Items whose bytes and heads are their own: those of the caller may be changed as soon as a call has returned. */
function copied(items: readonly HistoryItem[]) {
  try {
    return items.map((item) => ({
      ...item,
      entry: Buffer.from(item.entry),
      otsProof: item.otsProof && Buffer.from(item.otsProof),
      head: item.head && { ...item.head },
    }));
  } catch (cause) {
    throw inputError("Items of history are { entry, otsProof, head }, with bytes for the first two.", { cause });
  }
}

type OwnItem = ReturnType<typeof copied>[number];

/** A group that has been added to the trees. */
interface PreparedGroup extends Group {
  readonly firstIndex: number;
  readonly digests: Buffer;
  readonly tiles: readonly TileChange[];
  /** The operator keys after its entries. */
  readonly operators: Operators;
}

/** Opened by `openHistory`. */
interface HistoryParts {
  readonly store: Store;
  /** The memory of this thread. */
  readonly memory: LogMemory;
  readonly reader: HistoryReader;
  /** Released when the log is closed. */
  readonly lock: WriterLock;
}

export class HistoryWriter {
  readonly #store: Store;
  readonly #lock: WriterLock;
  readonly #projection: Projection;
  readonly #reader: HistoryReader;
  readonly #entries: EntryReader;
  readonly #applier: Applier;
  readonly #memory: LogMemory;
  readonly #verifier: SignatureVerifier | null;
  #last: Predecessor = NO_PREDECESSOR;
  /** Timestamp of the newest head, microseconds; null before the first. */
  #lastHead: number | null = null;
  #size = 0;
  /** Leaf indexes of the entries that were added without their payload. */
  readonly #cut: number[] = [];
  readonly #adding = new Lock();
  #closed = false;

  /** Use `openHistory`. */
  constructor({ store, memory, reader, lock }: HistoryParts, options: HistoryOptions) {
    this.#store = store;
    this.#lock = lock;
    this.#reader = reader;
    this.#projection = options.projection ?? noProjection;
    this.#verifier = options.pool ? new SignatureVerifier(options.pool) : null;
    this.#entries = new EntryReader(store);
    this.#memory = memory;
    this.#applier = new Applier({ store, journal: localJournal, projection: this.#projection, memory });
    this.#restore();
  }

  /** Reads the state from disk again: at the start, and after a failed write, which may still have reached the disk. */
  #restore(): void {
    this.#applier.restore();
    const { size } = this.#applier.frontier;
    this.#last = this.#applier.last;
    const head = this.#entries.head(size);
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

  /** How the log on disk ended; null while entries may follow. */
  get frozen(): Frozen | null {
    return this.#applier.frontier.frozen;
  }

  /** Entry hash of the newest entry on disk, hex; null on an empty log. */
  get lastHash(): string | null {
    return this.#last.entryHash;
  }

  /** The keys that sign the heads. A chain that was given may be ahead of the entries. */
  get operators(): Operators {
    return this.#applier.operators;
  }

  /** The newest head, and the earliest time that the next entry may have, in microseconds; null without a newest head. */
  get end(): { readonly head: TreeHead; readonly rootHash: string; readonly micros: number } | null {
    const head = this.#entries.head(this.#size);
    if (!head) return null;
    const { trees, lastTimestamp } = this.#applier.frontier;
    // Only what was read from disk is in `lastTimestamp`.
    const micros = Math.max(lastTimestamp, this.#last.micros, parseTimestamp(head.timestamp));
    return { head, rootHash: trees[SIGNING_VERSION].rightEdge(this.#size).rootHex, micros };
  }

  /** The first entry that was added here without its payload, and that no entry on disk withholds; undefined if there is none. */
  get unanswered(): Entry | undefined {
    const cut = this.#cut.map((leafIndex) => this.#entries.entry(leafIndex)!);
    return cut.find((entry) => !isAnsweredFor(entry, this.#store.get("withheld", entry.id)));
  }

  /** A row of state, as it is on disk. */
  row<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined {
    return this.#store.get(table, key);
  }

  /**
   * Checks entries that follow those in the log, and writes them. Resolves when they are on disk, with warnings about
   * unusual but valid values. Writes one batch, unless items with and without heads are mixed: then one for each
   * stretch.
   * @throws CairnlogError `invalid-input`, `not-i-json`, `payload-too-large`, `invalid-signature`, `wrong-operator` for
   *   an item that is not a valid next entry: `details` has its number in `items` as path (`/3`, or `/3/head` if the
   *   head is wrong), and nothing was written; `storage-failed`: read `size` before trying again; `closed`
   */
  async add(items: readonly HistoryItem[]): Promise<readonly HistoryWarning[]> {
    const own = copied(items);
    return this.#inTurn(() => this.#add(own));
  }

  /**
   * Adds one entry, for which `signer` makes a head now, so that a history without heads ends with one.
   * @throws CairnlogError as `add` does; `wrong-operator` if another key is the operator's after the entry;
   *   `signer-unavailable`
   */
  async seal(item: HistoryItem, signer: Signer): Promise<readonly HistoryWarning[]> {
    const own = copied([item]);
    return this.#inTurn(() => this.#add(own, signer));
  }

  /** Files the postings of all entries, and merges what is due. Otherwise the next start would do that work. */
  settled(): Promise<void> {
    return this.#inTurn(() => this.#applier.postings.fileAll());
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new CairnlogError("closed", "The log is closed."));
    return this.#adding.run(work);
  }

  async #add(items: readonly OwnItem[], signer?: Signer): Promise<readonly HistoryWarning[]> {
    if (!items.length) return [];
    const entries = this.#checkEntries(items);
    try {
      const groups = signer
        ? [await this.#sealed(entries, signer)]
        : await this.#checkHeads(grouped(items, entries).map((group) => this.#prepare(group)));
      for (const group of groups) if (!group.heads.length) this.#checkUnsigned(group);
      for (const group of groups) await this.#write(group);
    } catch (error) {
      // The trees are ahead of the disk.
      this.#restore();
      throw error;
    }
    await this.#applier.relieved();
    return entries.flatMap(({ warnings }) => warnings);
  }

  #checkEntries(items: readonly OwnItem[]): CheckedEntry[] {
    let previous = this.#last;
    return items.map(({ entry, otsProof }, i) => {
      previous = about(i, () => this.#reader.read(entry, previous, this.#size + i, otsProof));
      return previous as CheckedEntry;
    });
  }

  /**
   * Adds a group's entries to both trees, and follows the rotations in it. @returns also the root of every new size, if
   * there are heads
   */
  #prepare(group: Group): PreparedGroup & { readonly roots: Buffer } {
    const { frontier } = this.#applier;
    const firstIndex = frontier.size;
    const digests = Buffer.concat(group.entries.map(({ entryHash }) => Buffer.from(entryHash, "hex")));
    const { roots, tiles } = frontier.extend(digests, group.heads[0]?.tree_version);
    for (const [i, { event }] of group.entries.entries())
      about(firstIndex + i - this.#size, () => {
        // Like the trees, ahead of the disk from here on.
        this.#applier.operators = this.#applier.operators.after(event, frontier.trees[SIGNING_VERSION]);
      });
    const { operators } = this.#applier;
    const bytes = Buffer.from(roots.buffer, roots.byteOffset, roots.length);
    return { ...group, firstIndex, digests, tiles, operators, roots: bytes };
  }

  /**
   * Refuses a rotation without a head. A history from elsewhere may hand over the key that is to sign its end; then
   * only a head of the new key could follow.
   */
  #checkUnsigned({ firstIndex, entries, operators }: PreparedGroup): void {
    const end = firstIndex + entries.length;
    const lost = operators.rotations.find(({ tree_size }) => tree_size >= firstIndex && tree_size < end);
    if (!lost) return;
    const { old_fingerprint, fingerprint, tree_size } = lost;
    const check = () => {
      const why = `This entry hands the log over from operator key ${old_fingerprint} to ${fingerprint}, and comes without a head.`;
      throw new CairnlogError("wrong-operator", why);
    };
    about(tree_size - this.#size, check);
  }

  async #sealed(entries: readonly CheckedEntry[], signer: Signer): Promise<PreparedGroup> {
    const group = this.#prepare({ entries, heads: [] });
    group.operators.checkCurrent(signer.fingerprint);
    const { size, trees, lastTimestamp } = this.#applier.frontier;
    const micros = Math.max(systemClock(), entries.at(-1)!.micros, this.#lastHead ?? 0, lastTimestamp);
    const { current } = group.operators;
    const head = await freshHead(trees[SIGNING_VERSION], size, formatTimestamp(micros), signer, current);
    return { ...group, heads: [head] };
  }

  /** Checks every head; an error names the item of the head. */
  async #checkHeads(
    groups: readonly (PreparedGroup & { readonly roots: Buffer })[],
  ): Promise<readonly PreparedGroup[]> {
    let lastHead = this.#lastHead;
    for (const { firstIndex, entries, heads, roots, operators } of groups)
      for (const [i, head] of heads.entries()) {
        const size = firstIndex + i + 1;
        const { chainVersion, micros } = entries[i]!;
        // The hash of an entry of version 1 does not cover its timestamp.
        const notBefore = chainVersion === 2 ? Math.max(micros, lastHead ?? micros) : lastHead;
        const expected = { size, root: roots.toString("hex", HASH * i, HASH * i + HASH), notBefore };
        about(firstIndex + i - this.#size, () => checkHead(head, expected, operators.keyAt(size)), HEAD);
        lastHead = parseTimestamp(head.timestamp);
      }
    // Verification starts only now. If it had started before another head was refused, its rejection would be unhandled
    // and end the process.
    const signatures = groups.flatMap(({ heads, operators }) =>
      heads.map((head) => this.#checkSignature(head, operators.keyAt(head.tree_size))),
    );
    await Promise.all(signatures);
    return groups;
  }

  async #checkSignature(head: TreeHead, key: ServerKey): Promise<void> {
    const isValid = await isSigned(head, key, this.#verifier);
    const check = () => {
      if (!isValid) throw new CairnlogError("invalid-signature", "The tree head's signature does not verify.");
    };
    about(head.tree_size - 1 - this.#size, check, HEAD);
  }

  async #write(group: PreparedGroup): Promise<void> {
    const { entries, heads, firstIndex, digests, tiles, operators } = group;
    const layer = this.#derive(entries);
    const size = firstIndex + entries.length;
    this.#putMeta(layer, group, operators.keyAt(size).fingerprint);
    const batch = packBatch(
      entries.map(({ json }) => json),
      digests,
      heads.length ? packedHeads(heads, heads[0]!.key_id) : null,
    );
    const { recorded, derived } = layer.split();
    // In key order: neighbours in a table then share the pages that are written.
    const made = { rows: derived.sort(byKey), tiles, terms: layer.terms, size };
    await this.#applier.commit({ firstIndex, batch, rows: recorded }, made);
    this.#last = entries.at(-1)!;
    const head = heads.at(-1);
    if (head) this.#lastHead = parseTimestamp(head.timestamp);
    this.#size = size;
    for (const [i, { isCut }] of entries.entries()) if (isCut) this.#cut.push(firstIndex + i);
  }

  /** The rows and terms derived from the entries, and the rows of the proofs that came with them. */
  #derive(entries: readonly CheckedEntry[]): Layer {
    const layer = new Layer();
    const state = new LayeredState(this.#store, this.#applier.postings, [layer]);
    let previous: Edge = this.#last;
    for (const entry of entries) {
      deriveRows(entry, previous, this.#projection, state, layer.terms);
      previous = entry;
      const { event, otsProof } = entry;
      if (otsProof) importAnchor(event, entry.entryHash, otsProof, state);
    }
    return layer;
  }

  /** @param keyId of the key that signs the head of the last entry */
  #putMeta(layer: Layer, { firstIndex, entries: [first], heads }: Group & { firstIndex: number }, keyId: string): void {
    const meta = this.#store.get("meta", "log");
    if (firstIndex === 0) {
      // The operator key is valid since the first entry of the log, even if this copy is younger.
      const created_at = [first!.event.timestamp, meta?.created_at ?? formatTimestamp(systemClock())].sort()[0]!;
      const named = meta?.name === undefined ? {} : { name: meta.name };
      layer.put("meta", "log", { format: FORMAT, key_id: keyId, created_at, ...named });
      return;
    }
    if (!meta) return;
    const isSparse = !heads.length && this.#lastHead !== null && !meta.sparse_heads;
    const isRotated = meta.key_id !== keyId;
    if (!isSparse && !isRotated) return;
    const rotated = isRotated ? { key_id: keyId, first_key_id: meta.first_key_id ?? meta.key_id } : {};
    layer.put("meta", "log", { ...meta, ...rotated, ...(isSparse ? { sparse_heads: true } : {}) });
  }

  /** Finishes the running work, then closes. */
  async close(): Promise<void> {
    this.#closed = true;
    await closeAll(
      () => this.#adding.settled(),
      () => this.#memory.close(),
      () => this.#store.close(),
      () => this.#lock.release(),
    );
  }
}

/** A proof that cannot be read is kept unchanged and never completed. */
function importAnchor(event: LoggedEvent, entryHash: string, proof: Uint8Array, state: PrivateWriter): void {
  const isReadable = isProofOf(proof, Buffer.from(entryHash, "hex"));
  const status = isReadable ? statusOf(proof) : "pending";
  const isSettled = !isReadable || (status === "confirmed" && !openPromises(proof).length);
  putAnchor(state, event.leafIndex, { proof, status, isSettled }, event.timestamp);
}
