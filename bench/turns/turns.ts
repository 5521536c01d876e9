/** The longest turn of each thread of a service, by a probe that is loaded into its process (`probe.mjs`). */
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

export interface Turn {
  /** `main` for the thread that writes the log, `front-3` for a thread of `server/front`, and so on. */
  readonly thread: string;
  /** Processor time of the longest turn of its event loop. */
  readonly milliseconds: number;
  /** Number of turns. */
  readonly count: number;
  /** Functions on the stack in the longest turn, with milliseconds; empty without a profile. */
  readonly stack: readonly (readonly [string, number])[];
}

/**
 * The environment of a service whose turns are measured.
 * @param root the checkout
 * @param folder where its threads listen; made if absent
 */
export const probed = (root: string, folder: string, profile = false): Record<string, string> => ({
  NODE_OPTIONS: `--import=${pathToFileURL(join(root, "bench", "turns", "probe.mjs"))}`,
  TURNS: folder,
  ...(profile ? { TURNS_PROFILE: "on" } : {}),
});

async function ask(path: string): Promise<Turn[]> {
  const socket = connect(path).on("error", () => {});
  try {
    await once(socket, "connect");
    socket.write("read\n");
    const ended = once(socket, "close").then(() => null);
    const line = await Promise.race([once(createInterface({ input: socket }), "line"), ended]);
    return line ? [JSON.parse(line[0] as string) as Turn] : [];
  } catch {
    // This thread has ended.
    return [];
  } finally {
    socket.destroy();
  }
}

/** The longest turn of each thread since the last call. */
export async function takeTurnsOf(folder: string): Promise<Turn[]> {
  return (await Promise.all(readdirSync(folder).map((name) => ask(join(folder, name))))).flat();
}
