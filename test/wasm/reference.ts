// The tree by its plain definition and by its peaks, with node:crypto, as the reference for the kernels.
import { createHash } from "node:crypto";
import type { TreeVersion } from "#cairnlog/wasm/index.js";

export const VERSIONS: readonly TreeVersion[] = [1, 2];

export function sha256(...parts: (Uint8Array | string)[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

export function leafHash(digest: Uint8Array, version: TreeVersion): Buffer {
  return sha256(version === 1 ? "" : Uint8Array.of(0), hex(digest));
}

export function nodeHash(left: Uint8Array, right: Uint8Array, version: TreeVersion): Buffer {
  return sha256(version === 1 ? "" : Uint8Array.of(1), hex(left), hex(right));
}

/** The i-th of a fixed, endless sequence of digests that look random. */
export function digest(i: number): Buffer {
  return sha256(String(i));
}

/** Digests `from` … `from + count - 1`, concatenated. */
export function digests(from: number, count: number): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, i) => digest(from + i)));
}

/** 32-byte items of `bytes`. */
export function split(bytes: Uint8Array): Buffer[] {
  return Array.from({ length: bytes.length / 32 }, (_, i) => Buffer.from(bytes.subarray(32 * i, 32 * i + 32)));
}

/** Parents of a level; an odd last node is paired with itself. */
export function levelAbove(level: readonly Uint8Array[], version: TreeVersion): Buffer[] {
  return Array.from({ length: Math.ceil(level.length / 2) }, (_, i) =>
    nodeHash(level[2 * i]!, level[2 * i + 1] ?? level[2 * i]!, version),
  );
}

/** Root of a tree by its definition, in O(n). */
export function rootOf(leaves: readonly Uint8Array[], version: TreeVersion): Uint8Array {
  let level = leaves;
  while (level.length > 1) level = levelAbove(level, version);
  return level[0]!;
}

export interface CompleteNode {
  readonly level: number;
  readonly index: number;
  readonly hash: Buffer;
}

/** A tree of which only the peaks are known, built one leaf at a time. Its own test compares it with `rootOf`. */
export class PeakTree {
  size: bigint;
  readonly #peaks = new Map<bigint, Buffer>();
  readonly #version: TreeVersion;

  /** `peaks`: lowest level first, one for every set bit of `size`. */
  constructor(size: number, peaks: readonly Buffer[], version: TreeVersion) {
    this.size = BigInt(size);
    this.#version = version;
    let next = 0;
    for (let level = 0n; this.size >> level > 0n; level++) {
      if ((this.size >> level) & 1n) this.#peaks.set(level, peaks[next++]!);
    }
  }

  /** Appends a leaf and returns the nodes that it completes. */
  append(leafDigest: Uint8Array): CompleteNode[] {
    let hash = leafHash(leafDigest, this.#version);
    let level = 0n;
    const complete: CompleteNode[] = [{ level: 0, index: Number(this.size), hash }];
    for (; (this.size >> level) & 1n; level++) {
      hash = nodeHash(this.#peaks.get(level)!, hash, this.#version);
      this.#peaks.delete(level);
      complete.push({ level: Number(level) + 1, index: Number(this.size >> (level + 1n)), hash });
    }
    this.#peaks.set(level, hash);
    this.size++;
    return complete;
  }

  peaks(): Buffer {
    return Buffer.concat([...this.#peaks].sort(([a], [b]) => Number(a - b)).map(([, hash]) => hash));
  }

  root(): Buffer {
    let level = 0n;
    while (!((this.size >> level) & 1n)) level++;
    let hash = this.#peaks.get(level)!;
    for (; (this.size - 1n) >> level > 0n; level++) {
      const isRightChild = ((this.size - 1n) >> level) & 1n;
      hash = nodeHash(isRightChild ? this.#peaks.get(level)! : hash, hash, this.#version);
    }
    return hash;
  }
}

/** These bytes as a view that begins at an odd offset of a larger buffer. */
export function unaligned(bytes: Uint8Array): Uint8Array {
  const room = new Uint8Array(bytes.length + 8).fill(0xa5);
  room.set(bytes, 3);
  return room.subarray(3, 3 + bytes.length);
}
