/**
 * The JavaScript side of the compiled kernels: functions over fixed areas of one WebAssembly memory. The areas are
 * described in `assembly/layout.ts`, `assembly/extend.ts` and `assembly/stream.ts`.
 */

/** A global of the module. Written out, because projects without the types of the DOM have no `WebAssembly.Global`. */
interface Constant {
  readonly value: number;
}

interface Exports {
  readonly memory: { readonly buffer: ArrayBufferLike };
  readonly CAPACITY: Constant;
  readonly EXTEND_CAPACITY: Constant;
  readonly INPUT: Constant;
  readonly OUTPUT: Constant;
  readonly LEAVES: Constant;
  readonly PEAKS: Constant;
  readonly RUNS: Constant;
  readonly STREAM: Constant;
  hashLeaves(count: number, version: number): void;
  hashNodes(count: number, version: number): void;
  hashRfc6962(count: number): void;
  extend(size: number, count: number, version: number, withRoots: number): void;
  restart(): void;
  absorb(blocks: number): void;
  finish(length: number, total: number): void;
}

/** One instance of a kernel. Addresses are offsets in `memory`, capacities are counts of 32-byte nodes. */
export interface KernelModule {
  /** All of the instance's memory. It never grows, so this view stays valid. */
  readonly memory: Uint8Array<ArrayBuffer>;
  readonly capacity: number;
  readonly extendCapacity: number;
  readonly input: number;
  readonly output: number;
  readonly leaves: number;
  readonly peaks: number;
  readonly runs: number;
  readonly stream: number;
  readonly hashLeaves: Exports["hashLeaves"];
  readonly hashNodes: Exports["hashNodes"];
  readonly hashRfc6962: Exports["hashRfc6962"];
  readonly extend: Exports["extend"];
  readonly restart: Exports["restart"];
  readonly absorb: Exports["absorb"];
  readonly finish: Exports["finish"];
}

/** The bytes of a base64 text, without using Node. */
export function decode(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** Compiles and instantiates a kernel, synchronously, so that importing this package needs no `await`. */
export function instantiate(bytes: Uint8Array<ArrayBuffer>): KernelModule {
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes));
  const wasm = instance.exports as unknown as Exports;
  return {
    memory: new Uint8Array(wasm.memory.buffer as ArrayBuffer),
    capacity: wasm.CAPACITY.value,
    extendCapacity: wasm.EXTEND_CAPACITY.value,
    input: wasm.INPUT.value,
    output: wasm.OUTPUT.value,
    leaves: wasm.LEAVES.value,
    peaks: wasm.PEAKS.value,
    runs: wasm.RUNS.value,
    stream: wasm.STREAM.value,
    hashLeaves: wasm.hashLeaves,
    hashNodes: wasm.hashNodes,
    hashRfc6962: wasm.hashRfc6962,
    extend: wasm.extend,
    restart: wasm.restart,
    absorb: wasm.absorb,
    finish: wasm.finish,
  };
}
