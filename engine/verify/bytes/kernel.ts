/**
 * The hashes that verification needs: of the fastest kernel in WebAssembly or, where there is none, in JavaScript. The small
 * packages and the explorer have only the latter.
 */
import { kernels } from "../../../wasm/index.js";
import { kernel as portable } from "./portable-kernel.js";

export const kernel: typeof portable = kernels[0] ?? portable;
