/**
 * Names to addresses, by DNS alone. The system's own resolver runs on the thread pool that also writes the log: name
 * servers that never answer, which anybody can set up, would hold up appends.
 */
import { Resolver } from "node:dns/promises";
import { isLocalhost } from "../../engine/registry/webhooks/publicaddress.js";

/** Milliseconds in which a name server must answer, and how often it is asked. */
const TIMEOUT_MS = 3_000;
const TRIES = 2;
const LOOPBACK = ["127.0.0.1", "::1"];

/**
 * The addresses of a name; rejects when it has none. Both the name and what it resolves to are the choice of whoever
 * subscribed, and the answer may be another one each time.
 */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/**
 * Asks name servers; `/etc/hosts` and search domains do not count. An attempt that is given up is given up here, too.
 * @param servers addresses with or without ports; those of this machine when absent
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
