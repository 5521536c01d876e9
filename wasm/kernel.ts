/**
 * A `Kernel` over one WebAssembly instance: checks arguments, copies bytes in and out, and lets the instance hash whole
 * levels at a time. Inputs larger than its fixed memory are processed in pieces.
 */
import {
  assertBytes,
  assertLength,
  assertSize,
  assertVersion,
  type Extension,
  type Kernel,
  NODE_BYTES,
  type NodeRun,
  type Sha256,
  type TreeVersion,
  unitsIn,
} from "./contract.js";
import type { KernelModule } from "./module.js";

// Plain SHA-256 over a kernel. A hash in progress keeps its state and unfinished block here, in JavaScript, and copies
// them to WebAssembly for each call, so any number of hashes may be in progress.

const BLOCK = 64;

/** SHA-256 of `data`, in one call to WebAssembly if it fits. */
function sha256(wasm: KernelModule, data: Uint8Array): Uint8Array {
  assertBytes(data, "data");
  if (data.length > wasm.capacity * NODE_BYTES) return new WasmSha256(wasm).update(data).digest();
  wasm.restart();
  wasm.memory.set(data, wasm.input);
  wasm.finish(data.length, data.length);
  return wasm.memory.slice(wasm.output, wasm.output + NODE_BYTES);
}

class WasmSha256 implements Sha256 {
  readonly #wasm: KernelModule;
  readonly #state: Uint8Array;
  /** The bytes since the last whole block. */
  readonly #tail = new Uint8Array(BLOCK);
  #length = 0;
  #finished = false;

  constructor(wasm: KernelModule) {
    this.#wasm = wasm;
    wasm.restart();
    this.#state = wasm.memory.slice(wasm.stream, wasm.stream + NODE_BYTES);
  }

  update(data: Uint8Array): this {
    assertBytes(data, "data");
    this.#assertUnfinished();
    const buffered = this.#length % BLOCK;
    this.#length += data.length;
    if (buffered + data.length < BLOCK) {
      this.#tail.set(data, buffered);
      return this;
    }
    const { memory, input, stream } = this.#wasm;
    this.#resume(buffered);
    let waiting = buffered;
    let taken = 0;
    while (waiting + data.length - taken >= BLOCK) {
      const available = Math.min(waiting + data.length - taken, this.#wasm.capacity * NODE_BYTES);
      const blocks = Math.floor(available / BLOCK);
      const end = taken + blocks * BLOCK - waiting;
      memory.set(data.subarray(taken, end), input + waiting);
      this.#wasm.absorb(blocks);
      taken = end;
      waiting = 0;
    }
    this.#state.set(memory.subarray(stream, stream + NODE_BYTES));
    this.#tail.set(data.subarray(taken));
    return this;
  }

  digest(): Uint8Array {
    this.#assertUnfinished();
    this.#finished = true;
    const { memory, output } = this.#wasm;
    const buffered = this.#length % BLOCK;
    this.#resume(buffered);
    this.#wasm.finish(buffered, this.#length);
    return memory.slice(output, output + NODE_BYTES);
  }

  /** Copies the state and the first `buffered` bytes of the tail to the memory of WebAssembly. */
  #resume(buffered: number): void {
    this.#wasm.memory.set(this.#state, this.#wasm.stream);
    this.#wasm.memory.set(this.#tail.subarray(0, buffered), this.#wasm.input);
  }

  #assertUnfinished(): void {
    if (this.#finished) throw new Error("this hash has already given its digest");
  }
}

const PAIR = 2 * NODE_BYTES;

/** Hashes so many pairs of nodes from the input to the output of the instance. */
type HashPairs = (pairs: number) => void;

export class WasmKernel implements Kernel {
  readonly name: Kernel["name"];
  readonly #wasm: KernelModule;

  constructor(name: Kernel["name"], wasm: KernelModule) {
    this.name = name;
    this.#wasm = wasm;
  }

  sha256(data: Uint8Array): Uint8Array {
    return sha256(this.#wasm, data);
  }

  createSha256(): Sha256 {
    return new WasmSha256(this.#wasm);
  }

  leaf(digest: Uint8Array, version: TreeVersion): Uint8Array {
    assertVersion(version);
    assertLength(digest, NODE_BYTES, "digest");
    const { memory, input, output } = this.#wasm;
    memory.set(digest, input);
    this.#wasm.hashLeaves(1, version);
    return memory.slice(output, output + NODE_BYTES);
  }

  node(left: Uint8Array, right: Uint8Array, version: TreeVersion): Uint8Array {
    assertVersion(version);
    assertLength(left, NODE_BYTES, "left");
    assertLength(right, NODE_BYTES, "right");
    const { memory, input, output } = this.#wasm;
    memory.set(left, input);
    memory.set(right, input + NODE_BYTES);
    this.#wasm.hashNodes(1, version);
    return memory.slice(output, output + NODE_BYTES);
  }

  leaves(digests: Uint8Array, version: TreeVersion): Uint8Array {
    assertVersion(version);
    const count = unitsIn(digests, NODE_BYTES, "digests");
    const { memory, input, output, capacity } = this.#wasm;
    const hashes = new Uint8Array(count * NODE_BYTES);
    for (let done = 0; done < count; done += capacity) {
      const piece = Math.min(capacity, count - done);
      memory.set(digests.subarray(done * NODE_BYTES, (done + piece) * NODE_BYTES), input);
      this.#wasm.hashLeaves(piece, version);
      hashes.set(memory.subarray(output, output + piece * NODE_BYTES), done * NODE_BYTES);
    }
    return hashes;
  }

  parents(nodes: Uint8Array, version: TreeVersion): Uint8Array {
    assertVersion(version);
    return this.#parents(nodes, (pairs) => this.#wasm.hashNodes(pairs, version));
  }

  subtree(nodes: Uint8Array, version: TreeVersion): Uint8Array {
    assertVersion(version);
    return this.#subtree(nodes, (pairs) => this.#wasm.hashNodes(pairs, version));
  }

  rfc6962Parents(nodes: Uint8Array): Uint8Array {
    return this.#parents(nodes, (pairs) => this.#wasm.hashRfc6962(pairs));
  }

  rfc6962Subtree(nodes: Uint8Array): Uint8Array {
    return this.#subtree(nodes, (pairs) => this.#wasm.hashRfc6962(pairs));
  }

  extend(size: number, peaks: Uint8Array, digests: Uint8Array, version: TreeVersion, withRoots: boolean): Extension {
    return extend(this.#wasm, size, peaks, digests, version, withRoots);
  }

  #parents(nodes: Uint8Array, hash: HashPairs): Uint8Array {
    const hashes = new Uint8Array(unitsIn(nodes, PAIR, "nodes") * NODE_BYTES);
    this.#parentsInto(nodes, hashes, hash);
    return hashes;
  }

  #subtree(nodes: Uint8Array, hash: HashPairs): Uint8Array {
    const count = unitsIn(nodes, NODE_BYTES, "nodes");
    if (!Number.isInteger(Math.log2(count))) throw new RangeError(`nodes must be a power of two, not ${count}`);
    const hashes = new Uint8Array((count - 1) * NODE_BYTES);
    let level = nodes;
    let end = 0;
    while (level.length > NODE_BYTES) {
      const above = hashes.subarray(end, end + level.length / 2);
      this.#parentsInto(level, above, hash);
      end += above.length;
      level = above;
    }
    return hashes;
  }

  #parentsInto(nodes: Uint8Array, hashes: Uint8Array, hash: HashPairs): void {
    const { memory, input, output, capacity } = this.#wasm;
    const count = nodes.length / PAIR;
    for (let done = 0; done < count; done += capacity / 2) {
      const piece = Math.min(capacity / 2, count - done);
      memory.set(nodes.subarray(done * PAIR, (done + piece) * PAIR), input);
      hash(piece);
      hashes.set(memory.subarray(output, output + piece * NODE_BYTES), done * NODE_BYTES);
    }
  }
}

// Appends leaves to a tree of which only the peaks are known. Splits a batch into pieces for one call each of
// `assembly/extend.ts`, and writes the results of consecutive pieces into arrays that are made once for the whole
// batch.

/** Tiles begin at every eighth level; a size below 2^53 has complete nodes on levels 0 … 52. */
const STORED_LEVELS = [0, 8, 16, 24, 32, 40, 48];

/** See `Kernel.extend`. */
function extend(
  wasm: KernelModule,
  size: number,
  peaks: Uint8Array,
  digests: Uint8Array,
  version: TreeVersion,
  withRoots: boolean,
): Extension {
  assertVersion(version);
  assertSize(size, "size");
  assertLength(peaks, peakCount(size) * NODE_BYTES, "peaks");
  const count = unitsIn(digests, NODE_BYTES, "digests");
  assertSize(size + count, "the new size");
  if (typeof withRoots !== "boolean") throw new TypeError("withRoots must be a boolean");

  const { memory } = wasm;
  const roots = new Uint8Array(withRoots ? count * NODE_BYTES : 0);
  const runs: NodeRun[] = [];
  for (const level of STORED_LEVELS) {
    const firstIndex = completeNodes(size, level);
    const added = completeNodes(size + count, level) - firstIndex;
    if (level === 0 || added > 0) runs.push({ level, firstIndex, hashes: new Uint8Array(added * NODE_BYTES) });
  }

  memory.set(peaks, wasm.peaks);
  for (let done = 0; done < count; done += wasm.extendCapacity) {
    const piece = Math.min(wasm.extendCapacity, count - done);
    const before = size + done;
    memory.set(digests.subarray(done * NODE_BYTES, (done + piece) * NODE_BYTES), wasm.input);
    wasm.extend(before, piece, version, withRoots ? 1 : 0);
    if (withRoots) roots.set(memory.subarray(wasm.output, wasm.output + piece * NODE_BYTES), done * NODE_BYTES);
    let stored = wasm.runs;
    for (const { level, firstIndex, hashes } of runs) {
      const first = completeNodes(before, level);
      const length = (completeNodes(before + piece, level) - first) * NODE_BYTES;
      const from = level === 0 ? wasm.leaves : stored;
      hashes.set(memory.subarray(from, from + length), (first - firstIndex) * NODE_BYTES);
      if (level !== 0) stored += length;
    }
  }
  return {
    peaks: memory.slice(wasm.peaks, wasm.peaks + peakCount(size + count) * NODE_BYTES),
    roots,
    runs,
  };
}

function completeNodes(size: number, level: number): number {
  return Math.floor(size / 2 ** level);
}

/** One peak for every set bit of `size`. */
function peakCount(size: number): number {
  let count = 0;
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) count += rest % 2;
  return count;
}
