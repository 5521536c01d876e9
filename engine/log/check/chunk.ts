/**
 * Verifies one stretch of a log by deriving it again from its stored payloads. Stretches are independent: each starts from the peaks in the stored tiles, and at its end compares its own peaks with the stored
 * ones. So if every stretch is right, the whole log is.
 */
import { hash } from "node:crypto";
import { kernel, type TreeVersion } from "../../../wasm/index.js";
import { CairnlogError } from "../../base/error.js";
import { verifySync } from "../../crypto/keys/signatures.js";
import type { Batch, HeadInfo, HeadRecord } from "../../store/schema/batch.js";
import { HASH } from "../../store/schema/schema.js";
import type { Store } from "../../store/store.js";
import { checkServiceEntry } from "../../verify/events/eventcheck.js";
import { canonicalTimestamp, checkEntry, type Entry } from "../../verify/tree/entry.js";
import { peakPositions } from "../../verify/tree/merkle.js";
import type { OperatorTerm } from "../../verify/tree/operators.js";
import { treeHeadMessage } from "../../verify/tree/treehead.js";
import { behindTheEnd, LOG_CONTINUES, LOG_FROZEN, NOT_THE_FIRST } from "../operator/entries.js";
import { OPERATOR_ROTATION, Operators } from "../operator/operators.js";
import { SIGNING_VERSION } from "../read/frontier.js";
import { isAnsweredFor, NOT_ANSWERED_FOR } from "../read/withheld.js";
import { formatTimestamp, instantOf, parseTimestamp } from "../state/clock.js";
import type { LoggedEvent } from "../state/projection.js";
import { hex, TILE_WIDTH, Tree } from "../tree/tree.js";

export interface ChunkTask {
  readonly path: string;
  readonly mapSize?: number;
  /** Leaf indexes [from, to). */
  readonly from: number;
  readonly to: number;
  /** Number of leaves that the tiles must cover: the size that is verified. */
  readonly size: number;
  /** The chain of operator keys; a head that another key signed than the one of its size is an error. */
  readonly operators: readonly OperatorTerm[];
  /** Environment for tiles and seams instead of the log's own, if these are checked separately. */
  readonly derivedPath?: string;
  /** Whether its thread lets all others go first, from now on. */
  readonly yields?: boolean;
  /** Whether every entry must be an event of the service's log (`Projection.checksEvents`). */
  readonly checksEvents?: boolean;
}

type ChunkStretch = Omit<ChunkTask, "path" | "mapSize" | "derivedPath">;

export interface Finding {
  /** Id of the entry, or null if the finding is about a head or a tile. */
  readonly id: number | null;
  readonly tree_size: number | null;
  readonly code: string;
  readonly message: string;
}

export interface ChunkReport {
  readonly errors: Finding[];
  readonly warnings: Finding[];
}

const sha256 = (preimage: Uint8Array): Buffer => hash("sha256", preimage, "buffer");

/** @param derived holds tiles and seams, if they are checked separately */
export function checkChunk(store: Store, task: ChunkStretch, derived: Store = store): ChunkReport {
  const chunk = new Chunk(store, derived, task);
  chunk.checkEntries();
  chunk.checkTree(1);
  chunk.checkTree(2);
  chunk.checkHeads();
  return { errors: chunk.errors, warnings: chunk.warnings };
}

/** An entry, and the values that are used more than once. */
interface ReadEntry {
  readonly entry: Entry;
  /** Its timestamp in canonical form; undefined if it has none. */
  readonly canonical: string | undefined;
  /** `canonical`, or the canonical form of the instant that the timestamp is read as; sorts as text. */
  readonly instant: string;
  /** Its digest in the batch, hex. */
  readonly digest: string;
}

class Chunk {
  readonly errors: Finding[] = [];
  readonly warnings: Finding[] = [];
  readonly #store: Store;
  readonly #derived: Store;
  readonly #task: ChunkStretch;
  readonly #operators: Operators;
  /** Entries of this stretch that record a rotation of an operator key. */
  readonly #rotations: LoggedEvent[] = [];
  /** Entry hashes, computed again. */
  readonly #digests: Buffer;
  /** Microseconds of each version 2 entry, as its hash covers them; NaN for all others. */
  readonly #moments: Float64Array;
  /** By tree version, the root of every new size; absent if no head needs it, or if the tiles do not give it. */
  readonly #roots = new Map<TreeVersion, Buffer>();
  /** The last batch that was read. Everything is read in order, so one is enough. */
  #batch: Batch | undefined;

  constructor(store: Store, derived: Store, task: ChunkStretch) {
    this.#store = store;
    this.#derived = derived;
    this.#task = task;
    this.#operators = Operators.ofChain(task.operators);
    this.#digests = Buffer.alloc(HASH * (task.to - task.from));
    this.#moments = new Float64Array(task.to - task.from).fill(Number.NaN);
  }

  #entryError(id: number, code: string, message: string): void {
    this.errors.push({ id, tree_size: null, code, message });
  }

  #treeError(tree_size: number, code: string, message: string): void {
    this.errors.push({ id: null, tree_size, code, message });
  }

  /**
   * Checks content, links, ids and order of every entry; the first one is also compared with the entry before the
   * stretch.
   */
  checkEntries(): void {
    const { from, to } = this.#task;
    let previous = this.#read(from - 1);
    for (let index = from; index < to; index++) {
      const read = this.#read(index);
      if (!read) this.#treeError(index + 1, "missing-entry", `The entry at leaf ${index} cannot be read.`);
      if (!read || !this.#checkContent(read.entry, index)) {
        previous = undefined;
        continue;
      }
      const { entry, digest, canonical } = read;
      this.#checkPlace(previous, read, index);
      if (digest !== entry.entry_hash)
        this.#entryError(entry.id, "digest-mismatch", "The batch holds another digest than the entry.");
      this.#digests.write(entry.entry_hash, HASH * (index - from), "hex");
      this.#noteRotation(read, index);
      if (entry.chain_version === 2 && canonical !== undefined) this.#moments[index - from] = parseTimestamp(canonical);
      if (index === 0 ? entry.previous_hash !== null : previous && entry.previous_hash !== previous.entry.entry_hash)
        this.#entryError(entry.id, "broken-link", "previous_hash is not the hash of the entry before.");
      if (previous?.entry.event_type === LOG_FROZEN)
        this.#entryError(entry.id, "after-the-end", behindTheEnd(previous.entry.id));
      if (entry.event_type === LOG_CONTINUES && index > 0) this.#entryError(entry.id, "not-the-first", NOT_THE_FIRST);
      if (previous) this.#checkOrder(previous, read);
      previous = read;
    }
  }

  #noteRotation({ entry: { id, event_type, payload }, instant }: ReadEntry, leafIndex: number): void {
    if (event_type !== OPERATOR_ROTATION || !payload) return;
    this.#rotations.push({ id, leafIndex, event_type, payload, timestamp: instant });
  }

  /** @returns false if this is not an entry: its members may be anything */
  #checkContent(entry: Entry, index: number): boolean {
    // Not an error: imported history may have digests of algorithms that are unknown here.
    const check = this.#task.checksEvents ? checkServiceEntry : checkEntry;
    for (const { code, message } of check(entry, sha256))
      if (code === "unknown-digest") this.warnings.push({ id: entry.id, tree_size: null, code, message });
      else if (code === "withheld") this.#checkWithheld(entry);
      else if (code === "malformed-entry") {
        this.#treeError(index + 1, code, `The entry at leaf ${index} is not a valid entry: ${message}`);
        return false;
      } else this.#entryError(entry.id, code, message);
    return true;
  }

  /** The row follows from the entry that withholds the payload, which is checked where it is. */
  #checkWithheld(entry: Entry): void {
    if (!isAnsweredFor(entry, this.#derived.get("withheld", entry.id)))
      this.#entryError(entry.id, "payload-missing", NOT_ANSWERED_FOR);
  }

  /** Ids are dense, except where imported history has a seam. */
  #checkPlace(previous: ReadEntry | undefined, { entry: { id }, instant }: ReadEntry, index: number): void {
    const previousId = previous?.entry.id;
    const isNext = index === 0 ? id === 1 : previousId === undefined || id === previousId + 1;
    const isBehind = previous !== undefined && instant < previous.instant;
    const isSeam = (!isNext || isBehind) && this.#derived.get("seams", id)?.leaf_index === index;
    if (!isNext && !isSeam)
      this.#entryError(id, "id-mismatch", `The id does not follow that of the entry before, at leaf ${index}.`);
    else if (isBehind && !isSeam)
      this.#entryError(id, "seam-missing", "The entry is earlier than the one before, and no stored row allows it.");
    if (previousId !== undefined && id <= previousId) this.#entryError(id, "id-mismatch", "The id does not ascend.");
  }

  /** The entry at a leaf index; undefined if there is none, as at −1, and if it cannot be read. */
  #read(index: number): ReadEntry | undefined {
    try {
      const batch = this.#batchOf(index);
      if (!batch) return undefined;
      const i = index - batch.firstIndex;
      const entry = JSON.parse(batch.text(i)) as Entry;
      const canonical = canonicalTimestamp(entry.timestamp);
      const instant = canonical ?? instantOf(entry.timestamp) ?? "";
      return { entry, canonical, instant, digest: batch.digest(i) };
    } catch {
      // Damaged bytes: the caller reports that the entry cannot be read.
      return undefined;
    }
  }

  /** The batch that contains a leaf. @throws CairnlogError `corrupt-log` */
  #batchOf(index: number): Batch | undefined {
    const last = this.#batch;
    if (last && index >= last.firstIndex && index < last.firstIndex + last.count) return last;
    this.#batch = this.#store.batchAt(index);
    return this.#batch;
  }

  /** docs/spec §2.3: no hash covers v1 timestamps, so a decrease is an error only for a v2 entry. */
  #checkOrder(previous: ReadEntry, { entry, canonical: now }: ReadEntry): void {
    const version = entry.chain_version ?? 1;
    const before = previous.canonical;
    if (version === 1 && previous.entry.chain_version === 2)
      this.warnings.push({
        id: entry.id,
        tree_size: null,
        code: "v1-after-v2",
        message: "A version 1 entry follows a version 2 entry.",
      });
    if (version === 2 && before !== undefined && now !== undefined && now < before)
      this.#entryError(entry.id, "timestamp-decrease", "The timestamp is earlier than that of the entry before.");
  }

  /** Checks the tiles of one tree version, and computes the roots for its heads. */
  checkTree(version: TreeVersion): void {
    try {
      this.#compareTree(version);
    } catch (error) {
      if (!(error instanceof CairnlogError)) throw error;
      // An unreadable batch has already been reported with its entries.
      this.#treeError(this.#task.to, "tile-missing", error.message);
    }
  }

  #compareTree(version: TreeVersion): void {
    const { from, to } = this.#task;
    const tree = new Tree(version, this.#derived);
    tree.restore(this.#task.size, this.#tail());
    const signed = this.#hasHeads(version);
    const grown = kernel.extend(from, peaksAt(tree, from), this.#digests, version, signed);
    if (signed) this.#roots.set(version, Buffer.from(grown.roots));
    if (Buffer.compare(grown.peaks, peaksAt(tree, to)) !== 0)
      this.#treeError(to, "tile-mismatch", `The tiles of tree version ${version} do not follow from the entries.`);
    for (const run of grown.runs) this.#checkTiles(tree, run.level / 8, run.firstIndex, run.hashes);
    if (version === SIGNING_VERSION) for (const event of this.#rotations) this.#checkRotation(event, tree);
  }

  /** A rotation must be signed by both keys, and be one of those that the chain of operator keys is made of. */
  #checkRotation(event: LoggedEvent, tree: Tree): void {
    const code = "rotation-invalid";
    try {
      if (this.#operators.after(event, tree) === this.#operators) return;
      this.#entryError(event.id, code, "The rotation is not in the stored chain of operator keys.");
    } catch (error) {
      if (!(error instanceof CairnlogError)) throw error;
      this.#entryError(event.id, code, error.message);
    }
  }

  /** Digests since the last full level-0 tile of the verified size. */
  #tail(): Buffer {
    const { size } = this.#task;
    const parts: Buffer[] = [];
    for (let index = size - (size % TILE_WIDTH); index < size; index++) {
      const batch = this.#batchOf(index);
      if (batch) parts.push(Buffer.from(batch.digest(index - batch.firstIndex), "hex"));
    }
    return Buffer.concat(parts);
  }

  #hasHeads(version: TreeVersion): boolean {
    const { from, to } = this.#task;
    for (let index = from; index < to; ) {
      const batch = this.#batchOf(index);
      if (batch?.headInfo?.treeVersion === version) return true;
      index = batch ? batch.firstIndex + batch.count : index + 1;
    }
    return false;
  }

  #checkTiles(tree: Tree, level: number, firstIndex: number, hashes: Uint8Array): void {
    for (let at = 0; at < hashes.length; ) {
      const node = firstIndex + at / HASH;
      const offset = node % TILE_WIDTH;
      const taken = Math.min(hashes.length - at, (TILE_WIDTH - offset) * HASH);
      const stored = tree.tile(level, Math.floor(node / TILE_WIDTH)).subarray(offset * HASH, offset * HASH + taken);
      if (Buffer.compare(stored, hashes.subarray(at, at + taken)) !== 0)
        this.#treeError(
          this.#task.to,
          "tile-mismatch",
          `Tile ${Math.floor(node / TILE_WIDTH)} of level ${level} (tree version ${tree.version}) does not follow from the entries.`,
        );
      at += taken;
    }
  }

  #mayLackHeads(): boolean {
    try {
      return this.#store.get("meta", "log")?.sparse_heads === true;
    } catch {
      // If this row is damaged, a missing head is reported.
      return false;
    }
  }

  /** Checks every head, of either tree version: after the first head none is missing, and time does not go back. */
  checkHeads(): void {
    const { from, to } = this.#task;
    const isSparse = this.#mayLackHeads();
    let previous = this.#headTime(from - 1);
    for (let index = from; index < to; index++) {
      const batch = this.#readableBatch(index);
      // An unreadable batch has already been reported with its entries.
      if (!batch) continue;
      const head = batch.head(index - batch.firstIndex);
      if (head) {
        this.#checkHead(head, batch.headInfo!, index + 1, previous);
        previous = head.timestamp;
      } else if (previous !== undefined && !isSparse)
        this.#treeError(index + 1, "head-missing", "There is no head of this size.");
    }
  }

  /** @param previous when the previous head was signed, microseconds; undefined if there is none */
  #checkHead(head: HeadRecord, { treeVersion, keyId }: HeadInfo, size: number, previous: number | undefined): void {
    const { from } = this.#task;
    const at = HASH * (size - 1 - from);
    if (this.#roots.get(treeVersion)?.compare(head.root, 0, HASH, at, at + HASH))
      this.#treeError(size, "root-mismatch", "The head's root is not the root of the entries.");
    if (`sha256:${keyId.toString("hex")}` !== this.#operators.keyAt(size).fingerprint)
      this.#treeError(size, "foreign-head", "The head is signed by another key than the operator's.");
    if (!this.#isSigned(head, size))
      this.#treeError(size, "signature-invalid", "The head's signature does not verify.");
    if (previous !== undefined && head.timestamp < previous)
      this.#treeError(size, "timestamp-decrease", "The head is earlier than the head before it.");
    if (head.timestamp < this.#moments[size - 1 - from]!)
      this.#treeError(size, "timestamp-decrease", "The head is earlier than its entry.");
  }

  #isSigned({ root, timestamp, signature }: HeadRecord, size: number): boolean {
    // Damaged bytes may not be a valid time.
    if (!Number.isSafeInteger(timestamp)) return false;
    return verifySync(
      this.#operators.keyAt(size),
      treeHeadMessage(hex(root), size, formatTimestamp(timestamp)),
      signature,
    );
  }

  /** When the head of the entry at a leaf index was signed, microseconds; undefined if there is none, as at −1. */
  #headTime(index: number): number | undefined {
    const batch = this.#readableBatch(index);
    return batch?.head(index - batch.firstIndex)?.timestamp;
  }

  #readableBatch(index: number): Batch | undefined {
    try {
      return this.#batchOf(index);
    } catch (error) {
      if (!(error instanceof CairnlogError)) throw error;
      return undefined;
    }
  }
}

/** Peaks of the first `size` leaves, lowest level first, in the form that the kernel takes. */
function peaksAt(tree: Tree, size: number): Buffer {
  const nodes = peakPositions(size).map(({ level, index }) => tree.node(level, index));
  return Buffer.concat(nodes.reverse());
}
