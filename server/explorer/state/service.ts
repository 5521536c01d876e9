/**
 * The service that this page came from: the verifying client, and the bare interface for what no proof exists of. Every
 * answer also tells how many requests this address has left, which the polling keeps to.
 */

import { Http } from "../../client/http.js";
import { type Client, createClient, type Signer } from "../../client/index.js";
import { store } from "./memory.js";

/** How many requests this address may still make, and until when that is counted. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds since 1970. */
  readonly resetsAt: number;
}

let allowance: Allowance | undefined;

/** Undefined while nothing is limited. */
export const generalAllowance = (): Allowance | undefined =>
  allowance && allowance.resetsAt > Date.now() ? allowance : undefined;

const noted: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const { headers } = response;
  if (headers.get("ratelimit-policy")?.startsWith('"general"')) {
    const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) =>
      Number(headers.get(`ratelimit-${name}`)),
    );
    allowance = { limit: limit!, remaining: remaining!, resetsAt: Date.now() + reset! * 1000 };
  }
  return response;
};

const server = window.location.origin;

/** Proves what it hands over. */
export const client = createClient({ server, store, fetch: noted });

/** The same with a key, for what takes a signature. */
export const clientOf = (signer: Signer): Client => createClient({ server, store, signer, fetch: noted });

/** Checks the form of answers and nothing else: `http.get(wire.AnchorStatus, "/log/anchor-status")`. */
export const http = new Http(server, noted);
