/**
 * Plain SHA-256 over a kernel. A hash in progress keeps its state and unfinished block here, in JavaScript, and copies
 * them to WebAssembly for each call, so any number of hashes may be in progress.
 */
import { assertBytes, NODE_BYTES, type Sha256 } from "./contract.js";
import type { KernelModule } from "./module.js";

const BLOCK = 64;

/** SHA-256 of `data`, in one call to WebAssembly if it fits. */
export function sha256(wasm: KernelModule, data: Uint8Array): Uint8Array {
  assertBytes(data, "data");
  if (data.length > wasm.capacity * NODE_BYTES) return new WasmSha256(wasm).update(data).digest();
  wasm.restart();
  wasm.memory.set(data, wasm.input);
  wasm.finish(data.length, data.length);
  return wasm.memory.slice(wasm.output, wasm.output + NODE_BYTES);
}

export class WasmSha256 implements Sha256 {
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
