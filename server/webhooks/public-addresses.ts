/**
 * Which addresses deliveries may reach from where the service runs: those of the public internet, but for this machine's own
 * public addresses, and for addresses by which the network's NAT64 leads back to addresses that are not public. Also how the
 * addresses of a name are found, without the system's own resolver.
 */

import { Resolver } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import { isLocalhost, isPublicAddress } from "../../engine/registry/webhooks/publicaddress.js";

// Resolves names by DNS only. The system's own resolver runs on the thread pool that also writes the log. Anybody can
// set up a name server that never answers, and such servers would delay appends.

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

/** Milliseconds after which the network is looked at again: addresses and networks change while the service runs. */
const LOOK_AGAIN_MS = 60_000;
/** A name that has these two IPv4 addresses alone. IPv6 addresses of it are made by the network's NAT64 (RFC 7050 §2.2). */
const NAT64_NAME = "ipv4only.arpa";
const NAT64_ADDRESSES: readonly string[] = ["192.0.0.170", "192.0.0.171"];
/** Bytes of an IPv6 address that hold an IPv4 address, by the length of the prefix before it (RFC 6052 §2.2). */
const EMBEDDED: Readonly<Record<number, readonly [number, number, number, number]>> = {
  32: [4, 5, 6, 7],
  40: [5, 6, 7, 9],
  48: [6, 7, 9, 10],
  56: [7, 9, 10, 11],
  64: [9, 10, 11, 12],
  96: [12, 13, 14, 15],
};

const LENGTHS = Object.keys(EMBEDDED).map(Number);

/** The IPv4 address that an IPv6 address holds behind a prefix of this length. */
const embedded = (bytes: readonly number[], length: number): string =>
  EMBEDDED[length]!.map((place) => bytes[place]).join(".");

interface Prefix {
  readonly address: ipaddr.IPv6;
  readonly length: number;
}

/** The prefixes under which a network's NAT64 answers (RFC 7050 §3). @param addresses of `ipv4only.arpa` there */
function nat64Prefixes(addresses: readonly string[]): Prefix[] {
  return addresses.flatMap((text) => {
    if (!ipaddr.IPv6.isValid(text)) return [];
    const address = ipaddr.IPv6.parse(text);
    const bytes = address.toByteArray();
    const length = LENGTHS.find((one) => NAT64_ADDRESSES.includes(embedded(bytes, one)));
    return length === undefined ? [] : [{ address, length }];
  });
}

const systemAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));

/** One spelling of an address. */
const spelled = (address: string): string => (ipaddr.isValid(address) ? ipaddr.process(address).toString() : address);

export class PublicAddresses {
  readonly #resolve: Resolve;
  readonly #addresses: () => readonly string[];
  #own: ReadonlySet<string> = new Set();
  #prefixes: readonly Prefix[] = [];
  #looksAgainAt = Number.NEGATIVE_INFINITY;
  #first: Promise<void> | null = null;

  /** @param addresses those of this machine */
  constructor(resolve: Resolve, addresses: () => readonly string[] = systemAddresses) {
    this.#resolve = resolve;
    this.#addresses = addresses;
  }

  /**
   * Looks at the network, if the last look was long ago. To be called before `allows`.
   * @returns the first look, which must be waited for; later ones replace what is known when they have ended. One that fails,
   *   because the system has no descriptor left, is made again by the next call
   */
  look(): Promise<void> | null {
    if (performance.now() < this.#looksAgainAt) return this.#first;
    this.#looksAgainAt = performance.now() + LOOK_AGAIN_MS;
    const looking = this.#look();
    looking.catch(() => {
      this.#looksAgainAt = Number.NEGATIVE_INFINITY;
      if (this.#first === looking) this.#first = null;
    });
    this.#first ??= looking;
    return this.#first;
  }

  async #look(): Promise<void> {
    this.#own = new Set(this.#addresses().map(spelled));
    // A network that does not answer has no NAT64 that is known by this; what was known before stays.
    const found = await this.#resolve(NAT64_NAME, AbortSignal.timeout(LOOK_AGAIN_MS)).catch(() => null);
    if (found) this.#prefixes = nat64Prefixes(found);
  }

  /** Whether a delivery may go to an address, which its owner chooses. */
  allows(address: string): boolean {
    if (!isPublicAddress(address) || this.#own.has(spelled(address))) return false;
    const parsed = ipaddr.process(address);
    if (parsed.kind() === "ipv4") return true;
    return this.#prefixes.every(({ address: prefix, length }) => {
      const bytes = (parsed as ipaddr.IPv6).toByteArray();
      return !(parsed as ipaddr.IPv6).match(prefix, length) || this.#allowsIPv4(embedded(bytes, length));
    });
  }

  #allowsIPv4(address: string): boolean {
    return isPublicAddress(address) && !this.#own.has(address);
  }
}
