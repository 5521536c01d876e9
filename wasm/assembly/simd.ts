// Entry of the simd kernel: leaves and nodes in four lanes at a time.
import { extendTree } from "./extend";
import { leaves, nodes, rfc6962Nodes } from "./hash-x4";
import { INPUT, OUTPUT } from "./layout";

export { CAPACITY, INPUT, OUTPUT } from "./layout";
export { EXTEND_CAPACITY, LEAVES, PEAKS, RUNS } from "./extend";
export { STREAM, absorb, finish, restart } from "./stream";

/** Leaf hashes of `count` digests in INPUT, to OUTPUT. */
export function hashLeaves(count: i32, version: i32): void {
  leaves(INPUT, OUTPUT, count, version);
}

/** Parents of `count` pairs of nodes in INPUT, to OUTPUT. */
export function hashNodes(count: i32, version: i32): void {
  nodes(INPUT, OUTPUT, count, version);
}

/** Parents of `count` pairs of nodes in INPUT as RFC 6962 hashes them, to OUTPUT. */
export function hashRfc6962(count: i32): void {
  rfc6962Nodes(INPUT, OUTPUT, count);
}

/** See `extendTree`. */
export function extend(size: f64, count: i32, version: i32, withRoots: bool): void {
  extendTree(size, count, version, withRoots, leaves, nodes);
}
