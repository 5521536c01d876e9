/** Which HTTP library serves: the one that was set, or uWebSockets.js where its binary loads. */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { CairnlogError } from "../../../engine/base/error.js";
import { loadChecked, NATIVE_CODE_VARIABLE } from "../../../engine/native/checked.js";
import type { Transport, TransportName } from "../transport/transport.js";
import { uwsBinary } from "./binary.js";
import { nodeTransport } from "./node/serving.js";
import { uwsTransport } from "./uws.js";

const require = createRequire(import.meta.url);
const PACKAGED = fileURLToPath(new URL("../../../uws", import.meta.url));

export interface ChosenTransport {
  readonly transport: Transport;
  /** Why uWebSockets.js does not load, where `node:http` serves because of that; null otherwise. */
  readonly whyNotUws: string | null;
}

/**
 * Loads the library `wanted`; with null, uWebSockets.js or else `node:http`.
 * @throws CairnlogError `precondition-failed` when uWebSockets.js is wanted and does not load, and when its binary is not
 *   known, whatever is wanted: something is wrong with what is installed
 */
export async function chooseTransport(wanted: TransportName | null): Promise<ChosenTransport> {
  if (wanted === "node") return { transport: nodeTransport, whyNotUws: null };
  try {
    return { transport: uwsTransport(loadUws()), whyNotUws: null };
  } catch (cause) {
    if (cause instanceof CairnlogError) throw cause;
    const whyNotUws = reasonOf(cause);
    if (wanted === null) return { transport: nodeTransport, whyNotUws };
    const reason = `uWebSockets.js does not load on this machine: ${whyNotUws}. Unset SERVICE_TRANSPORT, or set it to node.`;
    throw new CairnlogError("precondition-failed", reason, { cause });
  }
}

/**
 * Loads uWebSockets.js.
 * @throws CairnlogError `precondition-failed` for a binary that is not known
 * @throws Error where there is no binary for this platform and Node, or it does not load
 */
const loadUws = () => loadChecked("uWebSockets.js", () => require(uwsModule()) as typeof import("uWebSockets.js"));

function uwsModule(): string {
  // Whoever allows any native code may have installed a release of the authors.
  if (process.env[NATIVE_CODE_VARIABLE] === "any") {
    try {
      return require.resolve("uWebSockets.js");
    } catch {
      // It is not installed.
    }
  }
  return uwsBinary(PACKAGED);
}

/** The line that says what is missing; the library writes a sentence about supported systems in front of it. */
function reasonOf(error: unknown): string {
  const lines = (error as Error).message.split("\n").filter((line) => line.trim());
  const line = lines.find((text) => text.startsWith("Error: ")) ?? lines[0] ?? "no reason is given";
  return line.replace(/^Error: /, "").replace(/[.\s]+$/, "");
}
