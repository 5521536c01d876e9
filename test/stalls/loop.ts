/** How long a service blocks its event loop, by the probe of the benchmarks. */
import { dirname } from "node:path";
import { probed, takeTurnsOf } from "../../bench/turns/turns.js";
import { DIST } from "../reliability/planted.js";

/** Maximum time for which a request, alone or with others, may block the loop. */
export const LIMIT_MS = 50;

/** The environment of a service in one thread, so that its event loop shows all that a request holds, wherever it does so. */
export const probedAlone = (turns: string): NodeJS.ProcessEnv => ({
  SERVICE_FRONT_ENDS: "0",
  ...probed(dirname(DIST), turns),
});

/**
 * The longest turn of the loop since the last call, in milliseconds of processor time. A service may have a process above it,
 * whose loop is measured too and has nothing to do.
 */
export async function longestTurn(turns: string): Promise<number> {
  const mains = (await takeTurnsOf(turns)).filter(({ thread }) => thread === "main");
  if (!mains.length) throw new Error("the service does not answer");
  return Math.max(...mains.map(({ milliseconds }) => milliseconds));
}
