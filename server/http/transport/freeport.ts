/** A port for several listeners of this process, which nobody else has. */
import { type AddressInfo, createServer } from "node:net";
import { cannotListen } from "./transport.js";

/**
 * A port that nobody listens on: `port`, or any one for 0. Whoever shares it, threads or an app and its successor, would share it
 * with another service, too, and nobody would notice that there are two; and uWebSockets.js shares no port that it chose itself.
 * @throws CairnlogError `precondition-failed`
 */
export function freePort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (cause) => reject(cannotListen(host, port, cause)));
    probe.listen(port, host, () => {
      const { port: free } = probe.address() as AddressInfo;
      probe.close(() => resolve(free));
    });
  });
}
