/**
 * Every member of every answer that a client gets is changed, omitted, extended and duplicated. Either the client
 * reports an error, or it returns the same as without the lie, or the lie is in the table of `docs/client.md`. This
 * file checks that table.
 */
import { beforeAll, expect, test } from "vitest";
import { STEPS, WRITING } from "./believing/steps.js";
import { methodOf, Suite, tableOf } from "./believing/suite.js";

/** The manifest also names these members, and the proof also names the key. */
const MEANING = ["attestation_type", "attestation_type left out"];
const ownKey = (member: string) => [member, `${member} left out`];

/**
 * Changes of requests that nobody can notice, because they change nothing, or because only the service knows the value.
 */
const CHANGEABLE: Readonly<Record<string, readonly string[]>> = {
  // A key that was not named keeps the name that it has, which the receipt shows.
  attest: [...MEANING, "intent_statement", "intent_statement left out", ...ownKey("possession_signature")],
  "attest (again)": MEANING,
  attestAll: [...MEANING, ...ownKey("intent_statement"), ...ownKey("possession_signature")].map(
    (one) => `submissions[].${one}`,
  ),
  "attestAll (again)": MEANING.map((one) => `submissions[].${one}`),
  "requests.create": ownKey("requester_fingerprint"),
  "requests.create (declined by policy)": ownKey("requester_fingerprint"),
  "requests.respond": ownKey("responder_fingerprint"),
  "policies.publish": ownKey("target_fingerprint"),
  "policies.publish (at once)": ownKey("target_fingerprint"),
  "documents.prepare": ["public_key_pem"],
  "webhooks.create": ["events[] twice"],
  "accounts.open": ["possession_signature", "possession_signature left out"],
  "claims.reveal": ["commitment_key", "plaintext with another member", "plaintext.salary", "plaintext.salary left out"],
};

let suite: Suite;
beforeAll(async () => {
  suite = await Suite.begin();
});

const methods = [...new Set(Object.keys(STEPS).map(methodOf))];

test.each(methods)("%s believes nothing but what the table says", async (method) => {
  expect(await suite.believed(method)).toEqual(tableOf(method));
});

test.each(Object.keys(WRITING))("%s: what is sent arrives, or the client notices", async (name) => {
  expect(await suite.changeable(name)).toEqual(CHANGEABLE[name] ?? []);
});

test.each(Object.keys(WRITING))(
  "%s: nobody is blamed for a member of one's own that the service ignores",
  async (name) => {
    expect(await suite.blamed(name)).toEqual([]);
  },
);

test("the table has no other methods", () => {
  expect(tableOf.methods().filter((name) => !methods.includes(name))).toEqual([]);
});

test("together they lie about every route of the service", async () => {
  expect(await suite.routesWithoutLie()).toEqual([
    "GET /api/v1/openapi.json",
    "GET /follower",
    "GET /leader",
    "GET /livez",
    "GET /metrics",
    "GET /readyz",
  ]);
});
