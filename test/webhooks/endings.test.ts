/** Subscriptions that end without their owner, and what the owner is told. */
import { afterAll, describe, expect, test } from "vitest";
import type { AttemptResult } from "#cairnlog/server/webhooks/send.js";
import { at, closeWorlds, heldRegistration, nodeSigner, registration, SECOND } from "../registry/world.js";
import { ACCEPTED, OWNER, openPost, type Post, REFUSED } from "./harness.js";

const FAILING_ENDS_AFTER_S = 7 * 86_400;

afterAll(closeWorlds);

const note = { event_type: "key_registration", payload: {} };
const GONE: AttemptResult = { isDelivered: false, reason: "410", isGone: true };
const everything = [0, Number.MAX_SAFE_INTEGER] as const;

/** What the holder of a key finds in its inbox, newest first. */
const inboxOf = (post: Post, fingerprint = OWNER) =>
  post.world.registry.inbox.list(fingerprint, {}).notifications.map(({ kind, webhook_id, reason, request_id }) => {
    expect([kind, request_id]).toEqual(["webhook_ended", null]);
    return [webhook_id, reason];
  });

/** What is on disk for webhooks. */
const rowsOf = ({ world: { registry } }: Post) => [
  registry.log.rows("webhooks", ...everything),
  registry.log.rows("webhookCursors", ...everything),
  registry.log.rows("outbox", [0, 0], [Number.MAX_SAFE_INTEGER, 0]),
  registry.log.rows("outboxCounts", ...everything),
];

describe("an endpoint", () => {
  test("that is gone ends its subscription at once, with all that waits for it", async () => {
    const post = await openPost();
    post.answer = () => REFUSED;
    const { id } = await post.subscribe();
    await post.world.append(note, note, note);
    await post.until(() => post.state(id).retry_count === 3);
    post.answer = () => GONE;
    await post.world.append(note);
    await post.until(() => rowsOf(post).every((rows) => !rows.length));
    expect(inboxOf(post)).toEqual([[id, "gone"]]);
    expect(post.deliverer.waiting).toBe(0);
    expect(post.timers).toBe(0);
    expect(post.logged).toMatch(/"webhook":1,"reason":"gone","msg":"webhook has ended"/);
  });

  test("that has failed for seven days ends it, and one success begins them anew", async () => {
    const post = await openPost();
    const { id } = await post.subscribe();
    const { outbox } = post.world.registry.webhooks;
    await post.deliverer.stop();
    let next = 0;
    const attempt = (seconds: number, isDelivered: boolean) =>
      outbox.settle([
        {
          ...{ webhookId: id, entryId: ++next, attempt: 0, isDelivered, jitter: 0 },
          at: at(post.world.now + seconds * SECOND),
          first: { event: "key.registered", created_at: at(0), next },
        },
      ]);
    for (let failures = 0; failures < 10; failures++) await attempt(failures, false);
    await attempt(FAILING_ENDS_AFTER_S - 1, false);
    await attempt(FAILING_ENDS_AFTER_S - 1, true);
    // Nine failures are too few, however long ago the first one was.
    await attempt(FAILING_ENDS_AFTER_S, false);
    for (let failures = 1; failures < 9; failures++) await attempt(9 * FAILING_ENDS_AFTER_S, false);
    await attempt(9 * FAILING_ENDS_AFTER_S, true);
    for (let failures = 0; failures < 10; failures++) await attempt(10 * FAILING_ENDS_AFTER_S, false);
    await attempt(11 * FAILING_ENDS_AFTER_S - 1, false);
    expect(inboxOf(post)).toEqual([]);
    expect(await attempt(11 * FAILING_ENDS_AFTER_S, false)).toEqual({
      ...{ unhealthy: [], givenUp: 0 },
      ended: [{ webhook: id, reason: "failing" }],
    });
    expect(inboxOf(post)).toEqual([[id, "failing"]]);
  });

  test.each([
    [7_200, 7_200],
    [60, 3_600],
  ])("that is unhealthy and asks for %i seconds is left alone for %i", async (retryAfter, seconds) => {
    const post = await openPost();
    const { id } = await post.subscribe();
    await post.deliverer.stop();
    const { log, webhooks } = post.world.registry;
    const failed = (next: number) => ({
      ...{
        webhookId: id,
        entryId: next,
        attempt: 0,
        isDelivered: false,
        jitter: 0,
        retryAfter,
        at: at(post.world.now),
      },
      first: { event: "key.registered" as const, created_at: at(0), next },
    });
    await webhooks.outbox.settle(Array.from({ length: 10 }, (_, i) => failed(i + 1)));
    const next_probe_at = at(post.world.now + seconds * SECOND);
    expect(log.row("webhooks", id)).toMatchObject({ healthy: false, next_probe_at });
  });

  test("that asks for time gets it: nothing is sent earlier, whatever comes", async () => {
    const post = await openPost();
    post.answer = () => ({ isDelivered: false, reason: "429", retryAfter: 7200 });
    await post.subscribe();
    await post.world.append(note);
    await post.until(() => post.timers === 1);
    post.answer = () => ACCEPTED;
    await post.world.append(note);
    await post.restart();
    await post.quiet();
    post.pass(7199.9);
    await post.quiet();
    expect(post.arrivals).toHaveLength(1);
    post.pass(0.2);
    await post.done();
    expect(post.arrivals.map(({ entryId }) => entryId)).toEqual([1, 1, 2]);
    await post.deliverer.stop();
  });
});

test("a subscription that its owner ends while a retry is waited for leaves no timer", async () => {
  const post = await openPost();
  post.answer = () => REFUSED;
  const { id } = await post.subscribe();
  await post.world.append(note);
  await post.until(() => post.timers === 1);
  await post.world.registry.webhooks.deactivate(id, OWNER);
  await post.until(() => rowsOf(post).every((rows) => !rows.length));
  expect(post.timers).toBe(0);
});

describe("a key", () => {
  /** A subscription of a registered key. */
  async function owned(expires?: string) {
    const post = await openPost();
    const signer = nodeSigner();
    await post.world.registry.keys.register(registration(signer, "owner", expires));
    const { id } = await post.subscribe({ events: ["endorsement.created"] }, signer.fingerprint);
    const other = await post.subscribe({ events: ["endorsement.created"] });
    await post.quiet();
    const ended = () =>
      post.until(() => post.world.registry.log.rows("webhooks", ...everything).every(({ key }) => key === other.id));
    return { post, signer, id, ended };
  }

  test("that is revoked ends its subscriptions, and no others", async () => {
    const { post, signer, id, ended } = await owned();
    await post.world.registry.keyLifecycle.revoke(signer.fingerprint);
    await ended();
    expect(inboxOf(post, signer.fingerprint)).toEqual([[id, "key-ended"]]);
  });

  test("that is revoked while nobody watches ends them at the next start", async () => {
    const { post, signer, id, ended } = await owned();
    await post.deliverer.stop();
    await post.world.registry.keyLifecycle.revoke(signer.fingerprint);
    await post.restart();
    await ended();
    expect(inboxOf(post, signer.fingerprint)).toEqual([[id, "key-ended"]]);
    await post.deliverer.stop();
  });

  test("that is revoked in the moment in which it subscribes ends the subscription", async () => {
    const post = await openPost();
    const { keys, webhooks } = post.world.registry;
    const { fingerprint } = await keys.register(registration(nodeSigner()));
    const [{ id }] = await Promise.all([
      webhooks.subscribe({ url: "https://receiver.example/hook" }, fingerprint),
      post.world.append({ event_type: "key_revocation", payload: { fingerprint } }),
    ]);
    await post.until(() => inboxOf(post, fingerprint).length > 0);
    expect(inboxOf(post, fingerprint)).toEqual([[id, "key-ended"]]);
  });

  test("that expires ends them when it does, and not before", async () => {
    const post = await openPost();
    const { now } = post.world;
    const expiring = await owned(at(now + 10 * 3_600 * SECOND));
    expiring.post.pass(10 * 3_600 - 1);
    await expiring.post.quiet();
    expect(inboxOf(expiring.post, expiring.signer.fingerprint)).toEqual([]);
    expiring.post.pass(1);
    await expiring.ended();
    expect(inboxOf(expiring.post, expiring.signer.fingerprint)).toEqual([[expiring.id, "key-ended"]]);
  });

  test.each([
    ["sooner", 48],
    ["although it never did", undefined],
    ["later", 2],
  ])("that its holder registers anew, to expire %s, ends them then", async (_, hours) => {
    const { now } = (await openPost()).world;
    const { post, signer, id, ended } = await owned(hours === undefined ? hours : at(now + hours * 3_600 * SECOND));
    await post.world.registry.keys.register(heldRegistration(signer, "owner", at(now + 10 * 3_600 * SECOND)));
    await post.quiet();
    expect(post.timers).toBe(1);
    post.pass(10 * 3_600 - 1);
    await post.quiet();
    expect(inboxOf(post, signer.fingerprint)).toEqual([]);
    post.pass(1);
    await ended();
    expect(inboxOf(post, signer.fingerprint)).toEqual([[id, "key-ended"]]);
    expect(post.timers).toBe(0);
  });

  test("whose subscriptions have ended before it expires is not waited for", async () => {
    const { post, signer, id } = await owned("2099-01-01T00:00:00Z");
    expect(post.timers).toBe(1);
    await post.world.registry.webhooks.deactivate(id, signer.fingerprint);
    await post.until(() => post.timers === 0);
    expect(inboxOf(post, signer.fingerprint)).toEqual([]);
  });

  test.each([
    ["its successor, if that has signed, too", true],
    ["itself, if it named a successor that has not", false],
  ])("that is succeeded ends them, and who is told is %s", async (_, isConfirmed) => {
    const { post, signer, id, ended } = await owned();
    const next = nodeSigner();
    const succession = {
      old_fingerprint: signer.fingerprint,
      new_public_key: next.pem,
      new_algorithm: next.algorithm,
    };
    const proof = isConfirmed && {
      new_key_signature: next.sign(`service.key.succession.v1:${signer.fingerprint}:${next.fingerprint}`),
    };
    await post.world.registry.keyLifecycle.succeed({ ...succession, ...proof } as never, { recovery: false });
    await ended();
    const told = isConfirmed ? [next, signer] : [signer, next];
    expect(told.map(({ fingerprint }) => inboxOf(post, fingerprint))).toEqual([[[id, "key-ended"]], []]);
  });
});

test("notifications about ends and about entries do not displace one another, and fsck's checks know them", async () => {
  const post = await openPost();
  post.answer = () => GONE;
  const owner = nodeSigner();
  await post.world.registry.keys.register(registration(owner));
  const asker = nodeSigner();
  await post.world.registry.keys.register(registration(asker));
  for (let i = 0; i < 5; i++) await post.subscribe({ events: ["key.registered"] }, owner.fingerprint);
  await post.world.append(note);
  const { inbox, requests, log } = post.world.registry;
  const list = () => inbox.list(owner.fingerprint, {}).notifications;
  await post.until(() => list().length === 5);
  for (let n = 0; n < 3; n++)
    await requests.create(asker.fingerprint, {
      ...{ target_fingerprint: owner.fingerprint, attestation_type: "authorship", nonce: `${n}` },
    } as never);
  expect(list().map(({ kind }) => kind)).toEqual([
    ...Array.from({ length: 3 }, () => "attestation_request"),
    ...Array.from({ length: 5 }, () => "webhook_ended"),
  ]);
  expect(new Set(list().map(({ id }) => id)).size).toBe(8);
  for (const { id } of list()) expect(await inbox.markRead(owner.fingerprint, id)).toMatchObject({ id, read: true });
  const { PRIVATE_CHECKS } = await import("#cairnlog/engine/registry/privatechecks.js");
  const rows = {
    get: log.row.bind(log),
    keys: (table: string) => log.rows(table as never, "" as never, "~" as never).map(({ key }) => key),
    range: (table: string) => log.rows(table as never, ["", 0] as never, ["~", 0] as never),
  };
  const faults = PRIVATE_CHECKS.slice(2, 3).flatMap((check) => {
    const keys = (table: string) =>
      table === "notifications" ? rows.range(table).map(({ key }) => key) : rows.keys(table);
    return [...check({ ...rows, keys } as never, { size: log.size, lastId: log.head()!.id })];
  });
  expect(faults).toEqual([]);
});
