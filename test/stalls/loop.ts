/** Measures how long a service blocks its event loop, by a probe that is loaded into its process (`probe.mjs`). */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { DIST } from "../reliability/planted.js";

/** Maximum time for which a request, alone or with others, may block the loop. */
export const LIMIT_MS = 50;

/** The environment in which a service listens for `Loop.open(path)`. */
export const probed = (path: string): NodeJS.ProcessEnv => ({
  // In one thread, so that its event loop shows all that a request holds, wherever it does so.
  SERVICE_FRONT_ENDS: "0",
  NODE_OPTIONS: `--import=${pathToFileURL(join(dirname(DIST), "test", "stalls", "probe.mjs"))}`,
  LOOP_PROBE: path,
});

export class Loop {
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Begins to measure. */
  static async open(path: string): Promise<Loop> {
    const socket = connect(path).setEncoding("latin1");
    await once(socket, "connect");
    const loop = new Loop(socket);
    await loop.longest();
    return loop;
  }

  /** The longest turn since the last call, in milliseconds of processor time. */
  async longest(): Promise<number> {
    this.#socket.write("read\n");
    const [line] = (await once(this.#socket, "data")) as [string];
    return Number(line);
  }

  close(): void {
    this.#socket.destroy();
  }
}
