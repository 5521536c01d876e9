/** Requests, answers, policies and inboxes in the engine, with a clock that the test sets. */
import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, test } from "vitest";
import type { RegistryOptions } from "#cairnlog/engine/registry/registry.js";
import type { RequestInput } from "#cairnlog/engine/registry/requests/input.js";
import { keyNamed, putEndorsements, putKeys } from "../graph/graphrows.js";
import {
  at,
  closeWorlds,
  DAY,
  failure,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  registration,
  SECOND,
  submission,
  type TestSigner,
  type World,
} from "../world.js";

const MAX_NOTIFICATIONS = 1000;
const DROPPED_AT_ONCE = 100;

afterAll(closeWorlds);

const HOUR = 3600 * SECOND;

interface Scene {
  readonly world: World;
  readonly asker: string;
  readonly target: string;
  ask(more?: Partial<RequestInput>): ReturnType<World["registry"]["requests"]["create"]>;
  publish(
    more?: Partial<Parameters<World["registry"]["policies"]["publish"]>[1]>,
  ): ReturnType<World["registry"]["policies"]["publish"]>;
  kinds(fingerprint: string): string[];
}

async function register(world: World, signer: TestSigner = nodeSigner()): Promise<TestSigner> {
  await world.registry.keys.register(registration(signer));
  return signer;
}

async function scene(options: Partial<RegistryOptions> = {}): Promise<Scene> {
  const world = await openWorld(newFolder(), undefined, { requestQuota: null, policyQuota: null, ...options });
  const [asker, target] = [(await register(world)).fingerprint, (await register(world)).fingerprint];
  return {
    world,
    asker,
    target,
    ask: (more = {}) =>
      world.registry.requests.create(asker, {
        target_fingerprint: target,
        attestation_type: "peer_review",
        nonce: randomUUID(),
        ...more,
      }),
    publish: (more = {}) =>
      world.registry.policies.publish(target, { predicates: REFUSE, default_action_on_failure: "decline", ...more }),
    kinds: (fingerprint) => world.registry.inbox.list(fingerprint, {}).notifications.map(({ kind }) => kind),
  };
}

const REFUSE = { any: [] };
const agreesWithEntries = (world: World) => expect(world.registry.log.stateDifferences()).toEqual([]);

describe("deadlines", () => {
  test("are 14 days ahead, or as given up to 90", async () => {
    const { world, ask } = await scene();
    expect((await ask()).deadline).toBe(at(world.now + 14 * DAY));
    for (const deadline of [at(world.now + 90 * DAY), at(world.now + 1)])
      expect((await ask({ deadline })).deadline).toBe(deadline);
    for (const deadline of [
      at(world.now + 90 * DAY + 1),
      at(world.now),
      at(world.now - 1),
      "2025-02-30T00:00:00Z",
      "x",
    ])
      expect(await failure(() => ask({ deadline }))).toMatchObject({ code: "invalid-input", paths: ["/deadline"] });
  });

  test("a request can be answered up to its deadline and not a microsecond later", async () => {
    const { world, ask, target } = await scene();
    const [one, two] = [await ask(), await ask()];
    world.now += 14 * DAY;
    const { requests, requestQueries } = world.registry;
    expect((await requests.respond(target, one.request_id, { decision: "decline" })).status).toBe("declined");
    world.now += 1;
    expect((await failure(() => requests.respond(target, two.request_id, { decision: "decline" }))).code).toBe("gone");
    expect(requestQueries.find(two.request_id).status).toBe("open");
    expect((await failure(() => requests.respond(target, one.request_id, { decision: "decline" }))).code).toBe(
      "already-exists",
    );
    agreesWithEntries(world);
  });
});

describe("policies", () => {
  test("decline at once, with an answer by the operator key beside the request", async () => {
    const { world, ask, publish, asker, target, kinds } = await scene();
    const policy = await publish();
    const request = await ask();
    expect(request).toMatchObject({
      status: "declined",
      policy_entry_id: policy.log_entry_id,
      response: {
        decision: "decline",
        responder_fingerprint: world.operator.fingerprint,
        attestation_id: null,
        log_entry_id: request.log_entry_id + 1,
      },
    });
    const { log, requests } = world.registry;
    expect(log.entry(request.log_entry_id + 1)).toMatchObject({
      event_type: "attestation_request_response",
      timestamp: log.entry(request.log_entry_id)!.timestamp,
      payload: { request_id: request.request_id, policy_entry_id: policy.log_entry_id },
    });
    // The policy has answered for the target, so only the requester is notified.
    expect([kinds(asker), kinds(target)]).toEqual([["attestation_request_declined"], []]);
    // The target may still answer for itself.
    expect(await requests.respond(target, request.request_id, { decision: "decline" })).toMatchObject({
      status: "declined",
    });
    expect(world.registry.requestQueries.find(request.request_id).response).toMatchObject({ by_target: true });
    agreesWithEntries(world);
  });

  test("hold: the target is notified, and may still answer", async () => {
    const { world, ask, publish, target, asker, kinds } = await scene();
    await publish({ default_action_on_failure: "hold" });
    const request = await ask();
    expect(request).toMatchObject({ status: "held", response: null });
    expect(kinds(target)).toEqual(["attestation_request_held"]);
    const { requests, requestQueries } = world.registry;
    expect(requestQueries.list({ target, status: "held" }).total).toBe(1);
    await requests.respond(target, request.request_id, { decision: "decline" });
    expect(requestQueries.list({ target, status: "held" })).toMatchObject({ total: 0, requests: [] });
    expect(requestQueries.list({ requester: asker, status: "declined" }).total).toBe(1);
    agreesWithEntries(world);
  });

  test("allow: a request that fails is still open; one that passes is open for every action", async () => {
    const { ask, publish, world } = await scene();
    await publish({ default_action_on_failure: "allow" });
    expect((await ask()).status).toBe("open");
    world.now += SECOND;
    const { log_entry_id } = await publish({
      predicates: { all: [{ field: "claims.topic", op: "prefix", value: "geo" }] },
    });
    expect(await ask({ claims: { topic: "geology" } })).toMatchObject({
      status: "open",
      policy_entry_id: log_entry_id,
    });
    expect((await ask({ claims: { topic: "theology" } })).status).toBe("declined");
    expect((await ask()).status).toBe("declined");
  });

  test("ask for the requester, its status and its trust", async () => {
    const { ask, publish, world, asker } = await scene();
    const conditions: [object, string][] = [
      [{ field: "requester_fingerprint", op: "eq", value: asker }, "open"],
      [{ field: "requester_fingerprint", op: "not_in", value: [asker.slice(7).toUpperCase()] }, "declined"],
      [{ field: "requester_status", op: "eq", value: "active" }, "open"],
      // Nobody has endorsed the requester.
      [{ field: "requester_trust", op: "ge", value: 0.1 }, "open"],
      [{ field: "requester_trust", op: "le", value: 0.1 }, "open"],
      [{ field: "requester_trust", op: "gt", value: 0.1 }, "declined"],
    ];
    for (const [predicates, status] of conditions) {
      world.now += 1;
      await publish({ predicates });
      expect((await ask()).status, JSON.stringify(predicates)).toBe(status);
    }
  });

  describe.each([
    // Three hops from the operator, an anchor: 0.1 + 0.9 / 8, in double precision a little more than 0.2125.
    { level: 0.2125, path: 3, others: 0 },
    // One of 75 keys that the operator endorses with a capacity of 50: 0.1 + 0.9 / 3, which is computed slightly below
    // 0.4.
    { level: 0.4, path: 1, others: 74 },
  ])("see a trust level of $level", ({ level, path, others }) => {
    test("without the rounding of its computation", async () => {
      const { ask, publish, world, asker } = await scene();
      const { fingerprint: operator } = world.operator;
      const between = Array.from({ length: path - 1 }, (_, i) => keyNamed(`between ${i}`));
      const beside = Array.from({ length: others }, (_, i) => keyNamed(`beside ${i}`));
      await putKeys(
        world,
        [...between, ...beside].map((fingerprint) => ({ fingerprint })),
      );
      const way = [operator, ...between, asker];
      const pairs = [...way.slice(1).map((to, i) => [way[i]!, to]), ...beside.map((to) => [operator, to])];
      await putEndorsements(
        world,
        pairs.map(([from, to], i) => ({ id: 1_000 + i, from: from!, to: to! })),
      );
      for (const [op, value, status] of [
        ["eq", level, "open"],
        ["le", level, "open"],
        ["ge", level, "open"],
        ["lt", level, "declined"],
        ["gt", level, "declined"],
        ["gt", level - 1e-7, "open"],
        ["lt", level + 1e-7, "open"],
      ] as const) {
        world.now += 1;
        await publish({ predicates: { field: "requester_trust", op, value } });
        expect((await ask()).status, `${op} ${value}`).toBe(status);
      }
    });
  });

  test("are one's own only, for requests to oneself as well", async () => {
    const { world, ask, publish, target, asker } = await scene();
    await publish();
    expect((await ask({ target_fingerprint: asker })).status).toBe("open");
    const nonce = randomUUID();
    const own = { target_fingerprint: target, attestation_type: "authorship", nonce };
    expect((await world.registry.requests.create(target, own)).status).toBe("declined");
  });

  test("come into force at their moment, and supersede the one before", async () => {
    const { world, ask, publish, target } = await scene();
    const { policies } = world.registry;
    const start = world.now;
    expect(policies.view(target)).toEqual({ target_fingerprint: target, active: null, scheduled: null });
    const first = await publish({ effective_from: at(start + HOUR) });
    expect(first).toMatchObject({ status: "scheduled", effective_from: at(start + HOUR) });
    expect(policies.view(target)).toMatchObject({ active: null, scheduled: { log_entry_id: first.log_entry_id } });
    world.now = start + HOUR - 1;
    expect((await ask()).status).toBe("open");
    world.now = start + HOUR;
    expect((await ask()).status).toBe("declined");
    expect(policies.view(target)).toMatchObject({ active: { log_entry_id: first.log_entry_id }, scheduled: null });

    for (const effective_from of [at(start + HOUR), at(start)])
      expect((await failure(() => publish({ effective_from }))).code).toBe("precondition-failed");
    const second = await publish({ effective_from: at(start + 2 * HOUR), default_action_on_failure: "hold" });
    expect(policies.view(target)).toMatchObject({
      active: { log_entry_id: first.log_entry_id },
      scheduled: { log_entry_id: second.log_entry_id },
    });
    // A third policy replaces the second before that was in force, even with an earlier date.
    const third = await publish({ effective_from: at(start + HOUR + 1), default_action_on_failure: "allow" });
    expect(third.status).toBe("scheduled");
    agreesWithEntries(world);
    world.now = start + 3 * HOUR;
    expect((await ask()).policy_entry_id).toBe(third.log_entry_id);
    await world.reopen();
    expect(world.registry.policies.view(target)).toMatchObject({
      active: { log_entry_id: third.log_entry_id, predicates: REFUSE, leaf_index: third.leaf_index },
      scheduled: null,
    });
    agreesWithEntries(world);
  });

  test("one that is in force at once also replaces a scheduled one", async () => {
    const { world, publish, target } = await scene();
    await publish({ effective_from: at(world.now + HOUR) });
    const now = await publish({ effective_from: at(world.now - DAY) });
    expect(now.status).toBe("active");
    expect(world.registry.policies.view(target)).toMatchObject({ scheduled: null });
    agreesWithEntries(world);
  });
});

describe("quotas", () => {
  test("of requests: 50 to one target in an hour, counted when they are logged", async () => {
    const { world, ask, target } = await scene({ requestQuota: 50 });
    const nonce = "the same";
    for (let i = 0; i < 50; i++) {
      await ask(i === 0 ? { nonce } : {});
      // None of these was logged, so none counts.
      if (i === 10) {
        await failure(() => ask({ nonce }));
        await failure(() => ask({ deadline: at(world.now) }));
        await failure(() => ask({ target_fingerprint: nodeSigner().fingerprint }));
      }
    }
    const other = await register(world);
    const refused = await failure(() => ask());
    expect(refused).toMatchObject({ code: "rate-limited", message: expect.stringContaining("3600 seconds") });
    const more = { target_fingerprint: target, attestation_type: "authorship", nonce };
    expect((await failure(() => world.registry.requests.create(other.fingerprint, more))).code).toBe("rate-limited");
    expect((await ask({ target_fingerprint: other.fingerprint })).status).toBe("open");
    await world.reopen();
    expect((await failure(() => world.registry.requests.create(other.fingerprint, more))).code).toBe("rate-limited");
    world.now += HOUR - 1;
    expect((await failure(() => world.registry.requests.create(other.fingerprint, more))).code).toBe("rate-limited");
    world.now += 1;
    expect((await world.registry.requests.create(other.fingerprint, more)).status).toBe("open");
    agreesWithEntries(world);
  });

  test("of answers to requests between others: ten in an hour; target and requester are not limited", async () => {
    const { world, ask, asker, target } = await scene({ requestQuota: 100 });
    const stranger = (await register(world)).fingerprint;
    const declined = async (key: string) =>
      world.registry.requests.respond(key, (await ask()).request_id, { decision: "decline" });
    // What the stranger asks for itself is counted apart.
    const own = { target_fingerprint: asker, attestation_type: "authorship", nonce: "its own" };
    await world.registry.requests.create(stranger, own);
    for (let i = 0; i < 10; i++) expect((await declined(stranger)).responder_fingerprint).toBe(stranger);
    expect((await failure(() => declined(stranger))).code).toBe("rate-limited");
    for (const key of [target, asker])
      for (let i = 0; i < 11; i++) expect((await declined(key)).status).toBe("declined");
    await world.reopen();
    expect((await failure(() => declined(stranger))).code).toBe("rate-limited");
    world.now += HOUR;
    expect((await declined(stranger)).status).toBe("declined");
    agreesWithEntries(world);
  });

  test.each(["decline", "hold"])("of requests: those that a policy answers with %s count like any", async (action) => {
    const { world, ask, publish, target } = await scene({ requestQuota: 3 });
    await publish({ default_action_on_failure: action });
    for (let i = 0; i < 3; i++) expect((await ask()).status).toBe(action === "hold" ? "held" : "declined");
    const { size } = world.registry.log;
    expect((await failure(() => ask())).code).toBe("rate-limited");
    expect(world.registry.requestQueries.list({ target }).total).toBe(3);
    expect(world.registry.log.size).toBe(size);
    world.now += HOUR;
    await ask();
    agreesWithEntries(world);
  });

  test("of requests: one that waits for the requester's trust counts once", async () => {
    const { world, ask, publish } = await scene({ requestQuota: 3 });
    await publish({ predicates: { field: "requester_trust", op: "gt", value: 0.5 } });
    for (let i = 0; i < 3; i++) expect((await ask()).status).toBe("declined");
    expect((await failure(() => ask())).code).toBe("rate-limited");
    agreesWithEntries(world);
  });

  test("of policies: 20 for one target in an hour", async () => {
    const { world, publish, asker } = await scene({ policyQuota: 20 });
    for (let i = 0; i < 20; i++) {
      await publish({ effective_from: at(world.now + i) });
      if (i) expect((await failure(() => publish({ effective_from: at(world.now) }))).code).toBe("precondition-failed");
    }
    expect((await failure(() => publish({ effective_from: at(world.now + HOUR) }))).code).toBe("rate-limited");
    const policy = { predicates: REFUSE, default_action_on_failure: "hold" };
    expect((await world.registry.policies.publish(asker, policy)).status).toBe("active");
    world.now += HOUR;
    expect((await publish()).status).toBe("active");
  });
});

describe("at one moment", () => {
  test("a nonce sent 50 times makes one request", async () => {
    const { world, ask } = await scene();
    const before = world.registry.log.size;
    const results = await Promise.allSettled(Array.from({ length: 50 }, () => ask({ nonce: "once" })));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const result of results)
      if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "already-exists" });
    expect(world.registry.log.size).toBe(before + 1);
    agreesWithEntries(world);
  });

  test("of two answers by one key one is taken", async () => {
    const { world, ask, target, asker, kinds } = await scene();
    const { request_id } = await ask();
    const { requests } = world.registry;
    const answers = [target, target].map((responder) =>
      requests.respond(responder, request_id, { decision: "decline" }),
    );
    const results = await Promise.allSettled(answers);
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(kinds(asker)).toEqual(["attestation_request_declined"]);
    agreesWithEntries(world);
  });

  test("a policy that is published with a request does not miss it half", async () => {
    const { world, ask, publish } = await scene();
    world.now += 1;
    const [policy, ...requests] = await Promise.all([publish(), ...Array.from({ length: 20 }, () => ask())]);
    for (const { log_entry_id, status, policy_entry_id } of requests) {
      const isAfter = log_entry_id > policy.log_entry_id;
      expect([status, policy_entry_id]).toEqual(isAfter ? ["declined", policy.log_entry_id] : ["open", null]);
    }
    agreesWithEntries(world);
  });
});

test("a nonce belongs to one requester, for any characters", async () => {
  const { world, ask, target, asker } = await scene();
  const nonces = ["\0", "\0\0", "🪨".repeat(128), "a", "A", " a", "\u00e9", "e\u0301"];
  for (const nonce of nonces) await ask({ nonce });
  for (const nonce of nonces) expect((await failure(() => ask({ nonce }))).code).toBe("already-exists");
  const back = { target_fingerprint: asker, attestation_type: "authorship", nonce: "a" };
  expect((await world.registry.requests.create(target, back)).status).toBe("open");
  agreesWithEntries(world);
});

test.each(["attestation_type", "nonce"])("an empty %s is refused", async (name) => {
  const { ask } = await scene();
  expect((await failure(() => ask({ [name]: "" }))).code).toBe("invalid-input");
  expect((await ask({ [name]: name === "nonce" ? "a" : "authorship" })).status).toBe("open");
});

test("a key that has ended after its proof cannot ask, answer or publish", async () => {
  const { world, ask, publish, target, asker } = await scene();
  const { request_id } = await ask();
  const revoke = (fingerprint: string) => ({ event_type: "key_revocation", payload: { fingerprint } });
  await world.append(revoke(target), revoke(asker));
  const answer = () => world.registry.requests.respond(target, request_id, { decision: "decline" });
  for (const action of [ask, publish, answer]) expect((await failure(() => action())).code).toBe("key-not-active");
});

test("accepting needs an attestation that is in the log", async () => {
  const { world, ask, target, asker, kinds } = await scene();
  const { requests, requestQueries, attestations } = world.registry;
  const { request_id } = await ask();
  const accept = (attestation_id?: string) =>
    requests.respond(target, request_id, { decision: "accept", attestation_id: attestation_id ?? null });
  for (const id of [undefined, "", randomUUID(), "x".repeat(128), "🪨".repeat(129)])
    expect(await failure(() => accept(id))).toMatchObject({ code: "invalid-input", paths: ["/attestation_id"] });
  const signer = await register(world);
  const { attestation } = await attestations.submit(submission(signer, manifestOf()));
  expect(await failure(() => accept(attestation.id))).toMatchObject({ paths: ["/attestation_id"] });
  const answer = { decision: "accept", attestation_id: attestation.id } as const;
  expect(await requests.respond(signer.fingerprint, request_id, answer)).toMatchObject({
    status: "accepted",
    ...answer,
  });
  expect(requestQueries.find(request_id)).toMatchObject({
    status: "accepted",
    response: { attestation_id: attestation.id, responder_fingerprint: signer.fingerprint, by_target: false },
  });
  expect(kinds(asker)).toEqual(["attestation_request_accepted"]);
  agreesWithEntries(world);
});

test("lists come in pages, by target or requester and by status, oldest first", async () => {
  const { world, ask, target, asker } = await scene();
  const ids: string[] = [];
  for (let i = 0; i < 7; i++) ids.push((await ask()).request_id);
  const { requests, requestQueries } = world.registry;
  for (const i of [1, 4]) await requests.respond(target, ids[i]!, { decision: "decline" });
  const listed = (query: Parameters<typeof requestQueries.list>[0]) => {
    const { requests: rows, total } = requestQueries.list(query);
    return [rows.map(({ request_id }) => ids.indexOf(request_id)), total];
  };
  for (const who of [{ target }, { requester: asker }, { target, requester: asker }]) {
    expect(listed(who)).toEqual([[0, 1, 2, 3, 4, 5, 6], 7]);
    expect(listed({ ...who, page: 2, per_page: 3 })).toEqual([[3, 4, 5], 7]);
    expect(listed({ ...who, page: 4, per_page: 3 })).toEqual([[], 7]);
    expect(listed({ ...who, page: Number.MAX_SAFE_INTEGER, per_page: 200 })).toEqual([[], 7]);
    expect(listed({ ...who, status: "open", page: 2, per_page: 2 })).toEqual([[3, 5], 5]);
    expect(listed({ ...who, status: "declined" })).toEqual([[1, 4], 2]);
    expect(listed({ ...who, status: "accepted" })).toEqual([[], 0]);
  }
  expect(listed({ target: asker })).toEqual([[], 0]);
  expect((await failure(() => requestQueries.list({}))).code).toBe("invalid-input");
  expect(listed({ target: asker, requester: target })).toEqual([[], 0]);
  expect((await failure(() => requestQueries.list({ target: nodeSigner().fingerprint }))).code).toBe("not-found");
});

test("a full inbox drops read notifications first, then the oldest", async () => {
  const { world, ask, target } = await scene();
  const { inbox } = world.registry;
  const first = await ask();
  await Promise.all(Array.from({ length: MAX_NOTIFICATIONS - 1 }, () => ask()));
  const newest = first.log_entry_id + MAX_NOTIFICATIONS - 1;
  for (const id of [newest - 1, newest - 2]) expect((await inbox.markRead(target, id)).read).toBe(true);
  expect(inbox.list(target, {}).total).toBe(MAX_NOTIFICATIONS);
  await ask();
  const { total } = inbox.list(target, {});
  expect(total).toBe(MAX_NOTIFICATIONS - DROPPED_AT_ONCE + 1);
  const pages = Array.from({ length: Math.ceil(total / 200) }, (_, i) =>
    inbox.list(target, { page: i + 1, per_page: 200 }),
  );
  const ids = pages.flatMap(({ notifications }) => notifications.map(({ id }) => id));
  expect(ids).toEqual(
    Array.from({ length: MAX_NOTIFICATIONS + 1 }, (_, i) => newest + 1 - i).filter(
      (id) => id !== newest - 1 && id !== newest - 2 && id >= first.log_entry_id + DROPPED_AT_ONCE - 2,
    ),
  );
  expect((await failure(() => inbox.markRead(target, first.log_entry_id))).code).toBe("not-found");
  await ask();
  expect(inbox.list(target, {}).total).toBe(total + 1);
  agreesWithEntries(world);
});
