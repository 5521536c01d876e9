/**
 * Rate limits by client address, which all threads that serve HTTP count in the same memory: N threads do not allow N
 * times the requests. Clients choose their addresses, so the number of remembered addresses is limited
 * (`window-table.ts`).
 */
import { randomBytes } from "node:crypto";
import { loadSodium } from "../../../engine/crypto/keys/ed25519.js";
import { limitKey } from "../transport/client-address.js";
import { type ClientWindow, TABLE_BYTES, WindowTable } from "./window-table.js";

/** Every limit: the default number of requests in each window, and the seconds of a window. */
export const LIMITS = {
  general: { requests: 100, seconds: 60, about: "all requests without a limit of their own" },
  "key-registration": { requests: 10, seconds: 3600, about: "key registrations" },
  attestation: { requests: 50, seconds: 3600, about: "attestations" },
  "endorsement-offer": { requests: 20, seconds: 86_400, about: "endorsement offers" },
  "claim-reveal": { requests: 30, seconds: 3600, about: "reveals of encrypted claims" },
  anchoring: { requests: 12, seconds: 3600, about: "anchorings of the log head" },
  "log-verification": { requests: 12, seconds: 3600, about: "verifications of the whole log" },
  tlog: { requests: 6000, seconds: 60, about: "checkpoints, tiles and entry bundles below /tlog/" },
} as const;
export type LimitName = keyof typeof LIMITS;
const LIMIT_NAMES = Object.keys(LIMITS) as LimitName[];

/** Key of the hash of addresses, at the beginning of the shared memory. The tables follow, in the order of `LIMITS`. */
const SECRET_BYTES = 16;
/** A limit's number and what a limit counts together (at most 24 characters), filled with zeros. */
const HASHED_BYTES = 32;

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
  /** Give it to another thread, whose `Limits` then count together with these. */
  readonly buffer: SharedArrayBuffer;
  readonly #requests: Readonly<Record<LimitName, number>>;
  readonly #tables: Readonly<Record<LimitName, WindowTable>>;
  readonly #hash: (limit: number, key: string) => bigint;

  /** Limits without any request yet. @param requests allowed in the window of each limit */
  static create(requests: Readonly<Record<LimitName, number>>): Limits {
    const buffer = new SharedArrayBuffer(SECRET_BYTES + LIMIT_NAMES.length * TABLE_BYTES);
    new Uint8Array(buffer).set(randomBytes(SECRET_BYTES));
    return new Limits(requests, buffer);
  }

  /**
   * Limits that another thread created.
   * @param requests the same as in that thread
   * @param buffer of the `Limits` there
   */
  constructor(requests: Readonly<Record<LimitName, number>>, buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#requests = requests;
    this.#hash = keyedHash(new Uint8Array(buffer, 0, SECRET_BYTES));
    const tables = LIMIT_NAMES.map((name, i) => {
      const offset = SECRET_BYTES + i * TABLE_BYTES;
      return [name, new WindowTable(buffer, offset, requests[name], LIMITS[name].seconds)];
    });
    this.#tables = Object.fromEntries(tables) as Record<LimitName, WindowTable>;
  }

  /** Counts `n` requests from `address` against a limit: all of them, or none if fewer are left. */
  count(name: LimitName, address: string, n = 1): Standing {
    return this.#standing(name, this.#tables[name].count(this.#client(name, address), n));
  }

  /** The state of `address` under a limit, without counting a request. */
  look(name: LimitName, address: string): Standing {
    return this.#standing(name, this.#tables[name].look(this.#client(name, address)));
  }

  #client(name: LimitName, address: string): bigint {
    return this.#hash(LIMIT_NAMES.indexOf(name), limitKey(address));
  }

  #standing(name: LimitName, { count, left, exceeded }: ClientWindow): Standing {
    const limit = this.#requests[name];
    const reset = Math.ceil(left / 1_000_000);
    return { name, limit, window: LIMITS[name].seconds, remaining: limit - count, reset, exceeded };
  }
}

/**
 * SipHash-2-4 with a secret key, which is different after each start. An attacker chooses the addresses, but cannot choose
 * two with the same hash, and cannot fill the set of somebody else.
 */
function keyedHash(secret: Uint8Array): (limit: number, key: string) => bigint {
  const sodium = loadSodium();
  // Copies: libsodium takes no memory that is shared between threads.
  const key = Buffer.from(secret);
  const hashed = Buffer.alloc(HASHED_BYTES);
  const word = new BigUint64Array(1);
  const bytes = new Uint8Array(word.buffer);
  return (limit, text) => {
    hashed.fill(0);
    hashed[0] = limit;
    hashed.write(text, 1, "latin1");
    sodium.crypto_shorthash(bytes, hashed, key);
    return word[0]!;
  };
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
