/**
 * Resolves names by DNS only. The system's own resolver runs on the thread pool that also writes the log. Anybody can
 * set up a name server that never answers, and such servers would delay appends.
 */
import { Resolver } from "node:dns/promises";
import { isLocalhost } from "../../engine/registry/webhooks/publicaddress.js";

/** Time limit for an answer of a name server in milliseconds; the number of tries follows. */
const TIMEOUT_MS = 3_000;
const TRIES = 2;
const LOOPBACK = ["127.0.0.1", "::1"];

/**
 * The addresses of a name; rejects if it has none. The subscription's owner controls both the name and its addresses,
 * and the answer may differ each time.
 */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/**
 * Asks name servers; `/etc/hosts` and search domains are not used. If an attempt is cancelled, its query is cancelled
 * too.
 * @param servers addresses with or without ports; by default those of this machine
 */
export function dnsResolver(servers?: readonly string[]): Resolve {
  return async (hostname, signal) => {
    if (isLocalhost(hostname)) return LOOPBACK;
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    if (servers) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
      const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
      if (addresses.length) return addresses;
      throw (answers[0] as PromiseRejectedResult).reason;
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  };
}
