/**
 * Re-derives one stretch of a log from its stored payloads; a task of the pool. Stretches are independent: each starts
 * from the peaks that the stored tiles give and ends by comparing its own with those that the tiles give there, so if
 * every stretch holds, the whole does.
 */
import { hash } from "node:crypto";
import { kernel, type TreeVersion } from "../../wasm/index.js";
import { verifySync } from "../crypto/signatures.js";
import { importPublicKey, type ServerKey } from "../crypto/spki.js";
import { CairnlogError } from "../error.js";
import { openStore, type Store } from "../store/store.js";
import { canonicalTimestamp, checkEntry, type Entry } from "../verify/entry.js";
import { peakPositions } from "../verify/merkle.js";
import { treeHeadMessage } from "../verify/treehead.js";
import { microsOf } from "./instant.js";
import { EntryReader } from "./reader.js";
import { TILE_WIDTH, Tree } from "./tree.js";

export interface ChunkTask {
  readonly path: string;
  readonly mapSize?: number;
  /** Leaf indexes [from, to). */
  readonly from: number;
  readonly to: number;
  /** Leaves that the tiles are expected to cover: the size verified. */
  readonly size: number;
  /** PEM of the operator key; heads by another key are errors. */
  readonly operatorKey: string;
  /** Environment to take tiles and seams from, instead of the log's own: where these are checked by themselves. */
  readonly derivedPath?: string;
}

type ChunkStretch = Omit<ChunkTask, "path" | "mapSize" | "derivedPath">;

export interface Finding {
  /** Id of the entry, or null where the finding is about a head or a tile. */
  readonly id: number | null;
  readonly tree_size: number | null;
  readonly code: string;
  readonly message: string;
}

export interface ChunkReport {
  readonly errors: Finding[];
  readonly warnings: Finding[];
}

const HASH = 32;
const sha256 = (preimage: Uint8Array): Buffer => hash("sha256", preimage, "buffer");
/** The one environment this worker has open. */
let open: { readonly path: string; readonly store: Store } | null = null;

/** The environment is shared with the writer of this process; a worker keeps the last one it opened. */
async function storeAt(path: string, mapSize: number | undefined): Promise<Store> {
  if (open?.path === path) return open.store;
  await open?.store.close();
  open = { path, store: openStore({ path, readOnly: true, ...(mapSize === undefined ? {} : { mapSize }) }) };
  return open.store;
}

export async function verifyChunk(task: ChunkTask): Promise<ChunkReport> {
  const store = await storeAt(task.path, task.mapSize);
  store.refresh();
  if (task.derivedPath === undefined) return checkChunk(store, task);
  // Scratch: gone when the whole check is, so it is not kept.
  const derived = openStore({ path: task.derivedPath, readOnly: true });
  try {
    return checkChunk(store, task, derived);
  } finally {
    await derived.close();
  }
}

/** The same against a store that is open already. */
export function checkChunk(store: Store, task: ChunkStretch, derived: Store = store): ChunkReport {
  const chunk = new Chunk(store, derived, task);
  chunk.checkEntries();
  chunk.checkTree(1);
  chunk.checkTree(2);
  return { errors: chunk.errors, warnings: chunk.warnings };
}

class Chunk {
  readonly errors: Finding[] = [];
  readonly warnings: Finding[] = [];
  readonly #store: Store;
  readonly #derived: Store;
  readonly #reader: EntryReader;
  readonly #task: ChunkStretch;
  readonly #key: ServerKey;
  /** Entry hashes as recomputed. */
  readonly #digests: Buffer;

  constructor(store: Store, derived: Store, task: ChunkStretch) {
    this.#store = store;
    this.#derived = derived;
    this.#reader = new EntryReader(store);
    this.#task = task;
    this.#key = importPublicKey(task.operatorKey);
    this.#digests = Buffer.alloc(HASH * (task.to - task.from));
  }

  #entryError(id: number, code: string, message: string): void {
    this.errors.push({ id, tree_size: null, code, message });
  }

  #treeError(tree_size: number, code: string, message: string): void {
    this.errors.push({ id: null, tree_size, code, message });
  }

  /** Content, links, ids and order of every entry; the first is also compared with the one before the stretch. */
  checkEntries(): void {
    const { from, to } = this.#task;
    let previous = from > 0 ? this.#read(from - 1) : undefined;
    for (let index = from; index < to; index++) {
      const entry = this.#read(index);
      if (!entry) {
        this.errors.push({
          id: null,
          tree_size: index + 1,
          code: "missing-entry",
          message: `The entry at leaf ${index} cannot be read.`,
        });
        previous = undefined;
        continue;
      }
      this.#checkContent(entry);
      this.#checkPlace(previous, entry, index);
      if (this.#reader.digest(index) !== entry.entry_hash)
        this.#entryError(entry.id, "digest-mismatch", "The batch holds another digest than the entry.");
      this.#digests.write(entry.entry_hash, HASH * (index - from), "hex");
      if (index === 0 ? entry.previous_hash !== null : previous && entry.previous_hash !== previous.entry_hash)
        this.#entryError(entry.id, "broken-link", "previous_hash is not the hash of the entry before.");
      if (previous) this.#checkOrder(previous, entry);
      previous = entry;
    }
  }

  #checkContent(entry: Entry): void {
    // Nothing says that it is wrong: imported history may carry digests that are not known here.
    for (const { code, message } of checkEntry(entry, sha256))
      if (code === "unknown-digest") this.warnings.push({ id: entry.id, tree_size: null, code, message });
      else this.#entryError(entry.id, code, message);
  }

  /** Ids are dense, but where imported history has a seam. */
  #checkPlace(previous: Entry | undefined, entry: Entry, index: number): void {
    const { id } = entry;
    const isNext = index === 0 ? id === 1 : !previous || id === previous.id + 1;
    const isBehind = previous !== undefined && microsOf(entry.timestamp) < microsOf(previous.timestamp);
    const isSeam = (!isNext || isBehind) && this.#derived.get("seams", id)?.leaf_index === index;
    if (!isNext && !isSeam)
      this.#entryError(id, "id-mismatch", `The id does not follow that of the entry before, at leaf ${index}.`);
    else if (isBehind && !isSeam)
      this.#entryError(id, "seam-missing", "The entry is earlier than the one before, and no row says so.");
    if (previous && id <= previous.id) this.#entryError(id, "id-mismatch", "The id does not ascend.");
  }

  #read(index: number): Entry | undefined {
    try {
      return this.#reader.entry(index);
    } catch {
      // Damaged bytes: the caller reports the entry as unreadable.
      return undefined;
    }
  }

  /** `spec.md`, timestamp ordering: v1 timestamps are bound by nothing, so only a later v2 entry makes it an error. */
  #checkOrder(previous: Entry, entry: Entry): void {
    const version = entry.chain_version ?? 1;
    if (version === 1 && previous.chain_version === 2)
      this.warnings.push({
        id: entry.id,
        tree_size: null,
        code: "v1-after-v2",
        message: "A version 1 entry follows a version 2 entry.",
      });
    const before = canonicalTimestamp(previous.timestamp);
    const now = canonicalTimestamp(entry.timestamp);
    if (version === 2 && before !== undefined && now !== undefined && now < before)
      this.#entryError(entry.id, "timestamp-decrease", "The timestamp is before that of the entry before.");
  }

  /** Tiles, roots and heads under one lens. */
  checkTree(version: TreeVersion): void {
    try {
      this.#compareTree(version);
    } catch (error) {
      if (!(error instanceof CairnlogError)) throw error;
      // A batch that cannot be read has been named with its entries already.
      this.#treeError(this.#task.to, "tile-missing", error.message);
    }
  }

  #compareTree(version: TreeVersion): void {
    const { from, to } = this.#task;
    const tree = new Tree(version, this.#derived);
    tree.restore(this.#task.size, this.#tail());
    const signed = this.#hasHeads(version);
    const grown = kernel.extend(from, peaksAt(tree, from), this.#digests, version, signed);
    if (Buffer.compare(grown.peaks, peaksAt(tree, to)) !== 0)
      this.#treeError(to, "tile-mismatch", `The tiles of tree version ${version} do not follow from the entries.`);
    for (const run of grown.runs) this.#checkTiles(tree, run.level / 8, run.firstIndex, run.hashes);
    if (signed) this.#checkHeads(version, Buffer.from(grown.roots));
  }

  /** Digests since the last full level-0 tile of the size that is verified. */
  #tail(): Buffer {
    const { size } = this.#task;
    const parts: Buffer[] = [];
    for (let index = size - (size % TILE_WIDTH); index < size; index++)
      parts.push(Buffer.from(this.#reader.digest(index) ?? "", "hex"));
    return Buffer.concat(parts);
  }

  #hasHeads(version: TreeVersion): boolean {
    for (let size = this.#task.from + 1; size <= this.#task.to; size++)
      if (this.#reader.headVersion(size) === version) return true;
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
      // The row is damaged: then a head that is not there is missed.
      return false;
    }
  }

  #checkHeads(version: TreeVersion, roots: Buffer): void {
    const isSparse = this.#mayLackHeads();
    let previous = this.#reader.head(this.#task.from)?.timestamp;
    for (let size = this.#task.from + 1; size <= this.#task.to; size++) {
      const head = this.#reader.head(size);
      if (!head && previous !== undefined && !isSparse)
        this.#treeError(size, "head-missing", "There is no head of this size.");
      if (head?.tree_version !== version) continue;
      const at = HASH * (size - this.#task.from - 1);
      if (head.root_hash !== roots.toString("hex", at, at + HASH))
        this.#treeError(size, "root-mismatch", "The head's root is not that of the entries.");
      if (head.key_id !== this.#key.fingerprint)
        this.#treeError(size, "foreign-head", "The head is signed by another key than the operator's.");
      const message = treeHeadMessage(head.root_hash, size, head.timestamp);
      if (!verifySync(this.#key, message, Buffer.from(head.signature, "base64")))
        this.#treeError(size, "signature-invalid", "The head's signature does not verify.");
      if (previous !== undefined && head.timestamp < previous)
        this.#treeError(size, "timestamp-decrease", "The head is before the one before it.");
      previous = head.timestamp;
    }
  }
}

/** Peaks of the first `size` leaves, lowest level first, as the kernel takes them. */
function peaksAt(tree: Tree, size: number): Buffer {
  const nodes = peakPositions(size).map(({ level, index }) => tree.node(level, index));
  return Buffer.concat(nodes.reverse());
}
