/**
 * Rate limits by client address, in memory. Clients choose their addresses, so the number of remembered addresses is
 * limited. Beyond it, the address that was seen longest ago is forgotten, which can only allow more requests. The
 * service has one `Limits`, which belongs to the thread that serves HTTP.
 */
import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";
import { limitKey } from "./transport/client-address.js";

/** Every limit: the default number of requests in each window, and the seconds of a window. */
export const LIMITS = {
  general: { requests: 100, seconds: 60, about: "all requests without a limit of their own" },
  "key-registration": { requests: 10, seconds: 3600, about: "key registrations" },
  attestation: { requests: 50, seconds: 3600, about: "attestations" },
  "endorsement-offer": { requests: 20, seconds: 86_400, about: "endorsement offers" },
  "claim-reveal": { requests: 30, seconds: 3600, about: "reveals of encrypted claims" },
  anchoring: { requests: 12, seconds: 3600, about: "anchorings of the log head" },
} as const;
export type LimitName = keyof typeof LIMITS;
const LIMIT_NAMES = Object.keys(LIMITS) as LimitName[];

/** Maximum number of addresses that are remembered for each limit; about 20 MB. */
const MAX_ADDRESSES = 50_000;

/** The state of a client under one limit. */
export interface Standing {
  readonly name: LimitName;
  readonly limit: number;
  readonly window: number;
  readonly remaining: number;
  /** Seconds until `remaining` is `limit` again, rounded up: at least 1. */
  readonly reset: number;
  readonly exceeded: boolean;
}

export class Limits {
  readonly #counters: Record<LimitName, Counter>;

  /** @param requests allowed in the window of each limit */
  constructor(requests: Readonly<Record<LimitName, number>>) {
    const counters = LIMIT_NAMES.map((name) => [name, new Counter(name, requests[name])]);
    this.#counters = Object.fromEntries(counters) as Record<LimitName, Counter>;
  }

  /** Counts one request from `address` against a limit. */
  count(name: LimitName, address: string): Promise<Standing> {
    return this.#counters[name].count(limitKey(address));
  }

  /** The state of `address` under a limit, without counting a request. */
  look(name: LimitName, address: string): Promise<Standing> {
    return this.#counters[name].look(limitKey(address));
  }
}

class Counter {
  readonly #name: LimitName;
  readonly #points: number;
  readonly #limiter: RateLimiterMemory;
  /** Least recently seen first. */
  readonly #seen = new Set<string>();

  constructor(name: LimitName, requests: number) {
    this.#name = name;
    this.#points = requests;
    this.#limiter = new RateLimiterMemory({ points: requests, duration: LIMITS[name].seconds });
  }

  async count(key: string): Promise<Standing> {
    this.#remember(key);
    try {
      return this.#standing(await this.#limiter.consume(key), false);
    } catch (refusal) {
      if (refusal instanceof Error) throw refusal;
      return this.#standing(refusal as RateLimiterRes, true);
    }
  }

  async look(key: string): Promise<Standing> {
    return this.#standing(await this.#limiter.get(key), false);
  }

  #remember(key: string): void {
    if (!this.#seen.delete(key) && this.#seen.size >= MAX_ADDRESSES) {
      const [oldest] = this.#seen;
      this.#seen.delete(oldest!);
      void this.#limiter.delete(oldest!);
    }
    this.#seen.add(key);
  }

  #standing(result: RateLimiterRes | null, exceeded: boolean): Standing {
    const { seconds: window } = LIMITS[this.#name];
    // A window that has ended may still be stored for a moment.
    const current = result && result.msBeforeNext > 0 ? result : null;
    return {
      name: this.#name,
      limit: this.#points,
      window,
      remaining: current ? current.remainingPoints : this.#points,
      // The clock may have been set back. That must not make a window longer.
      reset: current ? Math.min(window, Math.ceil(current.msBeforeNext / 1000)) : window,
      exceeded,
    };
  }
}

/**
 * Headers with the state of a client under a limit, names and values in turn: the fields of
 * draft-ietf-httpapi-ratelimit-headers, and the three older ones that clients read today.
 */
export const limitHeaders = ({ name, limit, window, remaining, reset }: Standing): string[] => [
  "ratelimit-policy",
  `"${name}";q=${limit};w=${window}`,
  "ratelimit",
  `"${name}";r=${remaining};t=${reset}`,
  "ratelimit-limit",
  `${limit}`,
  "ratelimit-remaining",
  `${remaining}`,
  "ratelimit-reset",
  `${reset}`,
];
