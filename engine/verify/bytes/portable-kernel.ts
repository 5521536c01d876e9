/**
 * The hashes that verification needs, in JavaScript: where there is no WebAssembly, and for the explorer and the packages
 * `@cairnlog/verify` and `@cairnlog/client`, where 40 KB of WebAssembly would be a third of what a reader downloads. Their builds
 * leave out the kernels of `wasm/`, which hash whole trees and are several times as fast. A test compares both.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import {
  assertBytes,
  assertLength,
  assertVersion,
  type Kernel,
  NODE_BYTES,
  type TreeVersion,
} from "../../../wasm/contract.js";
import { toHex, utf8 } from "./encoding.js";

const DIGITS = 2 * NODE_BYTES;
/** The first byte of what is hashed for a leaf and for a node in version 2. Version 1 has none. */
const LEAF = 0;
const INNER = 1;

function hash(first: number, version: TreeVersion, ...operands: readonly Uint8Array[]): Uint8Array {
  const prefix = version === 2 ? 1 : 0;
  const input = new Uint8Array(prefix + operands.length * DIGITS);
  if (prefix) input[0] = first;
  for (const [i, operand] of operands.entries()) input.set(utf8(toHex(operand)), prefix + i * DIGITS);
  return sha256(input);
}

/** The part of `Kernel` that verification uses, with the same results and the same errors. */
export const kernel: Pick<Kernel, "sha256" | "leaf" | "node"> = {
  sha256(data) {
    assertBytes(data, "data");
    return sha256(data);
  },
  leaf(digest, version) {
    assertVersion(version);
    assertLength(digest, NODE_BYTES, "digest");
    return hash(LEAF, version, digest);
  },
  node(left, right, version) {
    assertVersion(version);
    assertLength(left, NODE_BYTES, "left");
    assertLength(right, NODE_BYTES, "right");
    return hash(INNER, version, left, right);
  },
};
