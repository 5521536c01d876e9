/**
 * The hashing core: SHA-256 for the shapes of this log, in WebAssembly, with no JavaScript per hash.
 * Depends on nothing and runs in Node and in browsers.
 */
import type { Kernel } from "./contract.js";
import { scalar, simd } from "./kernel.generated.js";
import { WasmKernel } from "./kernel.js";
import { decode, instantiate } from "./module.js";

export type { Extension, Kernel, NodeRun, Sha256, TreeVersion } from "./contract.js";

/** Every kernel that this machine can run, the fastest first: none where there is no WebAssembly, or it must not be compiled. */
export const kernels: readonly Kernel[] = runnable();

/** The fastest kernel that this machine can run. Node has one; browsers may have none. */
export const kernel: Kernel = kernels[0]!;

function runnable(): Kernel[] {
  // Browsers leave it out where safety is worth more than speed, and the policy of a page may forbid it.
  if (typeof WebAssembly === "undefined") return [];
  try {
    const simdBytes = decode(simd);
    const fastest = WebAssembly.validate(simdBytes) ? [new WasmKernel("simd", instantiate(simdBytes))] : [];
    return [...fastest, new WasmKernel("scalar", instantiate(decode(scalar)))];
  } catch {
    return [];
  }
}
