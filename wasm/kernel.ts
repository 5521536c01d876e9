/**
 * A `Kernel` over one WebAssembly instance: checks arguments, copies bytes in and out, and lets the instance hash whole
 * levels at a time. Inputs larger than its fixed memory are processed in pieces.
 */
import { assertLength, assertVersion, countOf, NODE } from "./border.js";
import type { Extension, Kernel, Sha256, TreeVersion } from "./contract.js";
import { extend } from "./extend.js";
import type { KernelModule } from "./module.js";
import { sha256, WasmSha256 } from "./stream.js";

const PAIR = 2 * NODE;

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
    assertLength(digest, NODE, "digest");
    const { memory, input, output } = this.#wasm;
    memory.set(digest, input);
    this.#wasm.hashLeaves(1, version);
    return memory.slice(output, output + NODE);
  }

  node(left: Uint8Array, right: Uint8Array, version: TreeVersion): Uint8Array {
    assertVersion(version);
    assertLength(left, NODE, "left");
    assertLength(right, NODE, "right");
    const { memory, input, output } = this.#wasm;
    memory.set(left, input);
    memory.set(right, input + NODE);
    this.#wasm.hashNodes(1, version);
    return memory.slice(output, output + NODE);
  }

  leaves(digests: Uint8Array, version: TreeVersion): Uint8Array {
    assertVersion(version);
    const count = countOf(digests, NODE, "digests");
    const { memory, input, output, capacity } = this.#wasm;
    const hashes = new Uint8Array(count * NODE);
    for (let done = 0; done < count; done += capacity) {
      const piece = Math.min(capacity, count - done);
      memory.set(digests.subarray(done * NODE, (done + piece) * NODE), input);
      this.#wasm.hashLeaves(piece, version);
      hashes.set(memory.subarray(output, output + piece * NODE), done * NODE);
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
    const hashes = new Uint8Array(countOf(nodes, PAIR, "nodes") * NODE);
    this.#parentsInto(nodes, hashes, hash);
    return hashes;
  }

  #subtree(nodes: Uint8Array, hash: HashPairs): Uint8Array {
    const count = countOf(nodes, NODE, "nodes");
    if (!Number.isInteger(Math.log2(count))) throw new RangeError(`nodes must be a power of two, not ${count}`);
    const hashes = new Uint8Array((count - 1) * NODE);
    let level = nodes;
    let end = 0;
    while (level.length > NODE) {
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
      hashes.set(memory.subarray(output, output + piece * NODE), done * NODE);
    }
  }
}
