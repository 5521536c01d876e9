/**
 * The effect of request events, including events that no command made: odd payloads change nothing, and none throws.
 */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import type { EventInput } from "#cairnlog/engine/log/state/projection.js";
import { jsonValues } from "../../texts.js";
import { at, closeWorlds, DAY, nodeSigner, openWorld, registration, type World } from "../world.js";

afterAll(closeWorlds);

const [asker, target] = [nodeSigner().fingerprint, nodeSigner()];
const request = (more: Record<string, unknown> = {}): EventInput => ({
  event_type: "attestation_request",
  payload: {
    request_id: randomUUID(),
    requester_fingerprint: asker,
    target_fingerprint: target.fingerprint,
    attestation_type: "authorship",
    nonce: randomUUID(),
    intent_statement: null,
    claims: {},
    deadline: "2030-01-01T00:00:00Z",
    status: "open",
    policy_entry_id: null,
    ...more,
  },
});
const response = (request_id: unknown, more: Record<string, unknown> = {}): EventInput => ({
  event_type: "attestation_request_response",
  payload: { request_id, responder_fingerprint: asker, decision: "decline", ...more },
});
const policy = (more: Record<string, unknown> = {}): EventInput => ({
  event_type: "request_policy",
  payload: {
    target_fingerprint: target.fingerprint,
    predicates: { any: [] },
    default_action_on_failure: "decline",
    effective_from: "2025-01-01T00:00:00Z",
    ...more,
  },
});

async function open(): Promise<World> {
  const world = await openWorld();
  await world.registry.keys.register(registration(target));
  return world;
}

/** Everything that readers see of requests and policies. */
const seen = ({ registry }: World) => ({
  requests: registry.requestQueries.list({ target: target.fingerprint, per_page: 200 }),
  policies: registry.policies.view(target.fingerprint),
});

test("events that make no sense change nothing", async () => {
  const world = await open();
  const [first, answered] = [request(), request({ status: "held" })];
  await world.append(first, answered, response(answered.payload.request_id), policy());
  const before = seen(world);
  expect(before.requests.requests.map(({ status }) => status)).toEqual(["open", "declined"]);
  expect(before.policies.active).not.toBeNull();
  const values = [undefined, null, 7, "", "x", "x".repeat(5000), [], {}, true];
  const members = [
    "request_id",
    "requester_fingerprint",
    "target_fingerprint",
    "attestation_type",
    "nonce",
    "deadline",
  ];
  const isFine = (name: string, value: unknown) => value === "x" && (name === "nonce" || name === "attestation_type");
  const odd = [
    ...members.flatMap((name) =>
      values.flatMap((value) => (isFine(name, value) || value === undefined ? [] : [request({ [name]: value })])),
    ),
    ...["accepted", "declined", "OPEN", null].map((status) => request({ status })),
    request({ request_id: first.payload.request_id }),
    request({ nonce: first.payload.nonce }),
    request({ request_id: randomUUID().toUpperCase() }),
    { event_type: "attestation_request", payload: {} },
    response(answered.payload.request_id),
    response(answered.payload.request_id, { decision: "accept", attestation_id: "x" }),
    response(randomUUID()),
    ...[null, 7, "x".repeat(5000), {}].map((id) => response(id)),
    ...[null, 7, "accepted", {}].map((decision) => response(first.payload.request_id, { decision })),
    ...[null, 7, {}].map((attestation_id) =>
      response(first.payload.request_id, { decision: "accept", attestation_id }),
    ),
    ...[null, 7, "x", {}].map((responder_fingerprint) => response(first.payload.request_id, { responder_fingerprint })),
    { event_type: "attestation_request_response", payload: {} },
    policy(),
    policy({ effective_from: "2024-01-01T00:00:00Z" }),
    ...[null, 7, "later", {}].map((effective_from) => policy({ effective_from })),
    ...[null, 7, [], "all", {}, { all: [7] }].map((predicates) =>
      policy({ effective_from: at(world.now), predicates }),
    ),
    ...[null, 7, "refuse", {}].map((default_action_on_failure) =>
      policy({ effective_from: at(world.now + DAY), default_action_on_failure }),
    ),
    ...[null, 7, "x", {}].map((target_fingerprint) => policy({ effective_from: at(world.now), target_fingerprint })),
    { event_type: "request_policy", payload: {} },
  ];
  for (const event of odd) {
    await world.append(event);
    expect(seen(world), JSON.stringify(event).slice(0, 300)).toEqual(before);
  }
  expect(world.registry.log.stateDifferences()).toEqual([]);
  await world.reopen();
  expect(seen(world)).toEqual(before);
});

test("events never throw, for any JSON, and queries agree with them", async () => {
  const world = await open();
  const ids = Array.from({ length: 4 }, () => randomUUID());
  const member = fc.constantFrom(
    ...Object.keys({ ...request().payload, ...policy().payload, ...response("").payload }),
  );
  const value = fc.oneof(
    jsonValues(),
    fc.constantFrom(...ids, asker, target.fingerprint, "accept", "decline", "open", "held", "2030-01-01T00:00:00Z"),
  );
  const base = fc.oneof(
    fc.constantFrom(...ids).map((request_id) => request({ request_id })),
    fc.constantFrom(...ids).map((id) => response(id, { attestation_id: "x" })),
    fc.integer({ min: 0, max: 9 }).map((day) => policy({ effective_from: at(world.now + day * DAY) })),
  );
  await fc.assert(
    fc.asyncProperty(base, fc.dictionary(member, value, { maxKeys: 2 }), async ({ event_type, payload }, more) => {
      await world.append({ event_type, payload: { ...payload, ...more } });
      world.now += DAY / 4;
      const { requests } = seen(world);
      for (const { request_id } of requests.requests) world.registry.requestQueries.find(request_id);
    }),
    { numRuns: 200 },
  );
  expect(world.registry.log.stateDifferences()).toEqual([]);
  const before = seen(world);
  await world.reopen();
  expect(seen(world)).toEqual(before);
});
