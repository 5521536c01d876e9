/**
 * The hashing core: SHA-256 for the shapes of this log, in WebAssembly, with no JavaScript per hash.
 * Depends on nothing and runs in Node and in browsers.
 */
import type { Kernel } from "./contract.js";
import { scalar, simd } from "./kernel.generated.js";
import { WasmKernel } from "./kernel.js";
import { decode, instantiate } from "./module.js";

export type { Extension, Kernel, NodeRun, Sha256, TreeVersion } from "./contract.js";

const simdBytes = decode(simd);

/** Every kernel that this machine can run, the fastest first. */
export const kernels: readonly Kernel[] = [
  ...(WebAssembly.validate(simdBytes) ? [new WasmKernel("simd", instantiate(simdBytes))] : []),
  new WasmKernel("scalar", instantiate(decode(scalar))),
];

/** The fastest kernel that this machine can run. */
export const kernel: Kernel = kernels[0]!;
