/** Which HTTP library serves: the one that was set, or uWebSockets.js where its binary loads. */
import { CairnlogError } from "../../../engine/base/error.js";
import type { Transport, TransportName } from "../transport/transport.js";
import { loadUws } from "./binary.js";
import { nodeTransport } from "./node/serving.js";
import { uwsTransport } from "./uws.js";

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

/** The line that says what is missing; the library writes a sentence about supported systems in front of it. */
function reasonOf(error: unknown): string {
  const lines = (error as Error).message.split("\n").filter((line) => line.trim());
  const line = lines.find((text) => text.startsWith("Error: ")) ?? lines[0] ?? "no reason is given";
  return line.replace(/^Error: /, "").replace(/[.\s]+$/, "");
}
