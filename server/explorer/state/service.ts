/**
 * The service that this page came from: the verifying client, and the plain API for data without proofs. Every answer
 * also says how many requests this address has left; polling stays within that number.
 */

import { sparingStore } from "../../client/base/demonstration.js";
import { Http } from "../../client/base/http.js";
import { type Client, createClient, type Signer, type Store } from "../../client/index.js";
import { isDemonstration, lastingStore } from "./memory.js";
import { timelyFetch } from "./timely.js";

/** Number of requests that this address may still make, and when the number is reset. */
interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds since 1970. */
  readonly resetsAt: number;
}

let allowance: Allowance | undefined;

/** Undefined if there is no limit. */
export const generalAllowance = (): Allowance | undefined =>
  allowance && allowance.resetsAt > Date.now() ? allowance : undefined;

/** The client asks for the operator key, and so does the page, which compares it with the pinned one: once is enough. */
const ASKED_ONCE = "/log/operator-key";
const ONCE_MS = 3_000;
let asked: { readonly at: number; readonly answer: Promise<Response> } | undefined;

const fetchOnce: typeof fetch = async (input, init) => {
  if (!String(input).endsWith(ASKED_ONCE)) return timelyFetch(input, init);
  if (!asked || Date.now() - asked.at > ONCE_MS) asked = { at: Date.now(), answer: timelyFetch(input, init) };
  const { answer } = asked;
  try {
    return (await answer).clone();
  } catch (error) {
    asked = undefined;
    throw error;
  }
};

const noted: typeof fetch = async (input, init) => {
  const response = await fetchOnce(input, init);
  const { headers } = response;
  if (headers.get("ratelimit-policy")?.startsWith('"general"')) {
    const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) =>
      Number(headers.get(`ratelimit-${name}`)),
    );
    allowance = { limit: limit!, remaining: remaining!, resetsAt: Date.now() + reset! * 1000 };
  }
  return response;
};

/** Where the page is: the root of the service, which a proxy may show below a path. */
const server = new URL(".", window.location.href).href;

/** Checks only the form of answers: `http.get(wire.AnchorStatus, "/log/anchor-status")`. */
export const http = new Http(server, noted);

const kept = sparingStore(lastingStore, server, timelyFetch, (_, isSpared) => {
  isDemonstration.value = isSpared;
});

/** The client's memory of the log. What it has seen, `http` must not get an older answer than: nodes may be behind. */
export const store: Store = {
  async load() {
    const state = await kept.load();
    http.hasSeen(state?.head?.tree_size ?? 0);
    return state;
  },
  async save(state) {
    http.hasSeen(state.head?.tree_size ?? 0);
    await kept.save(state);
  },
};

/** Verifies everything that it returns. */
export const client = createClient({ server, store, fetch: noted });

/** The client with a key, for requests that need a signature. */
export const clientOf = (signer: Signer): Client => createClient({ server, store, signer, fetch: noted });
