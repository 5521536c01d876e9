/**
 * The interface of the hashing kernels, which all of them implement in the same way. Nodes and digests are 32 raw bytes
 * here; the hex over which tree hashes are defined exists only inside a kernel.
 */

/** The two hash versions ("lenses") of the tree; docs/spec §3.1. */
export type TreeVersion = 1 | 2;

/**
 * Complete nodes of one tree level, in index order; `hashes` holds 32 bytes a node, the first at index `firstIndex`.
 */
export interface NodeRun {
  readonly level: number;
  readonly firstIndex: number;
  readonly hashes: Uint8Array;
}

/**
 * The result of `Kernel.extend` for `k` new leaves on a tree of `size` leaves. All arrays are the caller's own copies.
 */
export interface Extension {
  /** Roots of the complete subtrees of the new size, lowest level first, 32 bytes each. */
  readonly peaks: Uint8Array;
  /** Root of every size from `size + 1` to `size + k`, 32 bytes each; empty if no roots were requested. */
  readonly roots: Uint8Array;
  /** The new complete nodes of levels 0, 8, 16, … (the levels that tiles store), lowest level first; level 0 always. */
  readonly runs: readonly NodeRun[];
}

/** Incremental SHA-256 (FIPS 180-4). Any number may be in progress at once. */
export interface Sha256 {
  /**
   * Throws `TypeError` unless `data` is a Uint8Array, and `Error` after `digest`. The bytes are processed at once and
   * not kept.
   */
  update(data: Uint8Array): this;
  /** 32 bytes. The object is finished afterwards, and every further call throws `Error`. */
  digest(): Uint8Array;
}

/**
 * One implementation of the hashing interface; SIMD and scalar agree bit for bit. Node and digest arguments are 32 raw
 * bytes each and may be views of any buffer at any offset; every result is the caller's own copy. Calls are synchronous
 * and keep no state. Before it does anything, every method throws `TypeError` for an argument of the wrong type, and
 * `RangeError` for one of the right type that is out of range (a wrong length, a version other than 1 and 2).
 */
export interface Kernel {
  readonly name: "simd" | "scalar";
  sha256(data: Uint8Array): Uint8Array;
  createSha256(): Sha256;
  leaf(digest: Uint8Array, version: TreeVersion): Uint8Array;
  node(left: Uint8Array, right: Uint8Array, version: TreeVersion): Uint8Array;
  /** Leaf hashes of `digests` (32·n bytes) → 32·n bytes. */
  leaves(digests: Uint8Array, version: TreeVersion): Uint8Array;
  /** Parents of `nodes` taken in pairs (64·n bytes) → 32·n bytes. */
  parents(nodes: Uint8Array, version: TreeVersion): Uint8Array;
  /**
   * All nodes above 2^r `nodes`, level by level from their parents up to the one root, concatenated: 32·(2^r − 1)
   * bytes.
   */
  subtree(nodes: Uint8Array, version: TreeVersion): Uint8Array;
  /** Parents of `nodes` taken in pairs (64·n bytes) as RFC 6962 §2.1 hashes them: 0x01 and the bytes of both → 32·n bytes. */
  rfc6962Parents(nodes: Uint8Array): Uint8Array;
  /** Like `subtree`, with the nodes of RFC 6962 §2.1. */
  rfc6962Subtree(nodes: Uint8Array): Uint8Array;
  /**
   * Appends leaves for `digests` to the tree of `size` leaves with the given peaks (lowest level first). Without roots
   * it costs one node hash a leaf; with roots, up to one more a leaf and level of the tree.
   */
  extend(size: number, peaks: Uint8Array, digests: Uint8Array, version: TreeVersion, withRoots: boolean): Extension;
}

/**
 * Argument checks before any byte reaches WebAssembly: `TypeError` for a wrong type, `RangeError` for a wrong value.
 */

/** Bytes of a node, a leaf hash or a digest. */
export const NODE_BYTES = 32;

export function assertBytes(value: unknown, name: string): asserts value is Uint8Array {
  if (!(value instanceof Uint8Array)) throw new TypeError(`${name} must be a Uint8Array`);
}

/** `length` bytes, exactly. */
export function assertLength(value: unknown, length: number, name: string): void {
  assertBytes(value, name);
  if (value.length !== length) throw new RangeError(`${name} must be ${length} bytes, not ${value.length}`);
}

/** Checks that the value is any number of items of `unit` bytes, possibly none; returns that number. */
export function unitsIn(value: unknown, unit: number, name: string): number {
  assertBytes(value, name);
  if (value.length % unit !== 0)
    throw new RangeError(`${name} must be a multiple of ${unit} bytes, not ${value.length}`);
  return value.length / unit;
}

export function assertVersion(version: unknown): void {
  if (typeof version !== "number") throw new TypeError("version must be a number");
  if (version !== 1 && version !== 2) throw new RangeError(`version must be 1 or 2, not ${version}`);
}

export function assertSize(size: unknown, name: string): void {
  if (typeof size !== "number") throw new TypeError(`${name} must be a number`);
  if (!Number.isSafeInteger(size) || size < 0) throw new RangeError(`${name} must be an integer from 0 to 2^53 - 1`);
}
