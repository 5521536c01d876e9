/** Every write of the API, alone and among others: the answer, and the entries that it made. */
import { expect } from "vitest";
import { checkEntry, type Entry } from "#cairnlog/engine/verify/tree/entry.js";
import { newLookupKey, sealed } from "../../contract/signing/claimants.js";
import type { Said } from "../front/connections.js";
import { type Prepared, prepared, WRITES } from "../writes.js";
import { alike, type Facts, factsOf, lastingHeaders } from "./alike.js";
import type { Client, Traffic } from "./traffic.js";

export const WRITE_IDS = Object.keys(WRITES);
/** Writes of which a second one like it is refused by the command, which both have reached. */
export const TWINS = ["post_keys_register", "post_log_attestation_requests_request_id_respond"];

/** How a write ends: in the form of `alike`. */
interface Outcome {
  readonly answer: unknown;
  readonly entries: unknown;
}

/** By operation id; with `twin`, how a second one like it is refused. */
export type Alone = ReadonlyMap<string, Outcome>;

const ask = (traffic: Traffic, { write }: Prepared, client: Client): Promise<Said> => {
  const { method = "POST", path, body, headers = {} } = write;
  // The submissions of a batch are counted one by one.
  const parts = (body as { submissions?: unknown[] } | undefined)?.submissions?.length ?? 0;
  return traffic.ask({ method, path: `/api/v1${path}`, body, headers }, client, parts);
};

const answerOf = (said: Said, facts: Facts) => ({
  status: said.status,
  headers: alike(lastingHeaders(said), facts),
  body: alike(said.body ?? said.text, facts),
});

/** All entries about the keys of a write, each of which must be what its own hash says. */
async function entriesOf(traffic: Traffic, facts: Facts, client: Client): Promise<unknown> {
  const found: unknown[] = [];
  for (const fingerprint of facts.keys()) {
    if (!/^sha256:[0-9a-f]{64}$/.test(`${fingerprint}`)) continue;
    const { body } = await traffic.ask({ path: `/api/v1/log/by-fingerprint/${fingerprint}` }, client);
    for (const entry of (body.entries ?? []) as Entry[]) {
      expect(checkEntry(entry)).toEqual([]);
      found.push(alike(entry, facts));
    }
  }
  return found;
}

/** How each write ends that is alone. */
export async function alone(traffic: Traffic, client: Client): Promise<{ outcomes: Alone; made: Prepared[] }> {
  const outcomes = new Map<string, Outcome>();
  const made: Prepared[] = [];
  for (const id of WRITE_IDS) {
    const one = await prepared(traffic.service, id);
    made.push(one);
    const facts = factsOf(one);
    const said = await ask(traffic, one, client);
    expect([200, 201], `${id}: ${said.text}`).toContain(said.status);
    outcomes.set(id, { answer: answerOf(said, facts), entries: await entriesOf(traffic, facts, client) });
    if (!TWINS.includes(id)) continue;
    const again = await ask(traffic, one, client);
    expect(again.status).toBe(409);
    outcomes.set(`${id} twin`, { answer: answerOf(again, facts), entries: null });
  }
  return { outcomes, made };
}

/** Spends all that an address may store, to the last few bytes. */
export async function spend(traffic: Traffic, client: Client): Promise<void> {
  const { write } = await prepared(traffic.service, "post_claims");
  for (let bytes = 150_000; bytes > 20; ) {
    const body = { payload: sealed(newLookupKey(), "x".repeat(bytes)).payload };
    const { path, headers = {} } = write;
    const { status } = await traffic.ask({ method: "POST", path: `/api/v1${path}`, body, headers }, client);
    expect([200, 201, 429]).toContain(status);
    if (status === 429) bytes = Math.floor(bytes / 2);
  }
}

/** A write that is ready: sends it, and gives what is to be looked at when all are answered. */
export async function mixedWrite(traffic: Traffic, id: string, outcomes: Alone, isTwin: boolean) {
  const one = await prepared(traffic.service, id);
  const facts = factsOf(one);
  return async (client: Client, other: Client) => {
    const both = [ask(traffic, one, client), ...(isTwin ? [ask(traffic, one, other)] : [])];
    const said = (await Promise.all(both)).sort((a, b) => a.status - b.status);
    expect(answerOf(said[0]!, facts), id).toEqual(outcomes.get(id)!.answer);
    if (said[1]) expect(answerOf(said[1], facts), `${id}, twice`).toEqual(outcomes.get(`${id} twin`)!.answer);
    return async () => expect(await entriesOf(traffic, facts, other), id).toEqual(outcomes.get(id)!.entries);
  };
}
