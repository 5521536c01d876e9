/** The time and order of deliveries, with a clock that the test sets. */
import { pino } from "pino";
import { afterAll, describe, expect, test } from "vitest";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { Webhooks } from "#cairnlog/engine/registry/webhooks/webhooks.js";
import { Writes } from "#cairnlog/engine/registry/writes/writes.js";
import { Deliverer } from "#cairnlog/server/webhooks/deliverer.js";
import type { Send } from "#cairnlog/server/webhooks/send.js";
import { openFaultyLog } from "../log/harness.js";
import { closeWorlds } from "../registry/world.js";
import { ACCEPTED, type Arrival, OWNER, openPost, type Post, REFUSED } from "./harness.js";

const RETRY_DELAYS_S = [5, 30, 120, 600, 3_600, 21_600, 86_400];
const UNHEALTHY_AFTER = 10;

afterAll(closeWorlds);

const HOUR_S = 3_600;
const YEAR_S = 365 * 24 * HOUR_S;
const never = new Promise<never>(() => {});
const entriesOf = (arrivals: readonly Arrival[], webhookId: number) =>
  arrivals.filter((arrival) => arrival.webhookId === webhookId).map(({ entryId }) => entryId);

/** A subscription whose endpoint is unhealthy after many failures, with ten waiting deliveries. */
async function unhealthy(): Promise<{ post: Post; id: number }> {
  const post = await openPost();
  post.answer = () => REFUSED;
  const { id } = await post.subscribe();
  await post.register(UNHEALTHY_AFTER);
  await post.until(() => post.state(id).retry_count === UNHEALTHY_AFTER && post.timers === 1);
  return { post, id };
}

describe("a delivery", () => {
  test("is made once when it succeeds, and leaves the outbox", async () => {
    const post = await openPost();
    const { id } = await post.subscribe();
    const [entryId] = await post.register();
    await post.done();
    post.pass(10 * HOUR_S);
    await post.quiet();
    expect(entriesOf(post.arrivals, id)).toEqual([entryId]);
    expect(post.timers).toBe(0);
    expect(post.state(id)).toMatchObject({ healthy: true, retry_count: 0 });
    expect(post.deliverer.unhealthy).toBe(0);
  });

  test("says what happened, with the same id and body at every attempt", async () => {
    const post = await openPost();
    const verdicts = [REFUSED, ACCEPTED];
    post.answer = () => verdicts.shift()!;
    const { id } = await post.subscribe({ secret: "a secret of the owner" });
    const [entryId] = await post.register();
    await post.until(() => post.timers === 1);
    post.pass(RETRY_DELAYS_S[0]!);
    await post.done();
    const [first, second] = post.arrivals as [Arrival, Arrival];
    expect(second.body).toBe(first.body);
    expect(second.headers["webhook-id"]).toBe(first.headers["webhook-id"]);
    expect(Number(second.headers["webhook-timestamp"]) - Number(first.headers["webhook-timestamp"])).toBe(5);
    expect(second.headers["webhook-signature"]).not.toBe(first.headers["webhook-signature"]);
    const entry = post.world.registry.log.entry(entryId!)!;
    expect(JSON.parse(first.body)).toEqual({
      id: `msg_${id}_${entryId}`,
      type: "key.registered",
      created_at: entry.timestamp,
      data: {
        entry_id: entryId,
        event_type: "key_registration",
        entry_hash: entry.entry_hash,
        fingerprint: entry.payload!.fingerprint,
        pseudonym: "someone",
        key_algorithm: "ed25519",
        expiration_date: null,
      },
    });
  });

  test("has no signature without a secret", async () => {
    const post = await openPost();
    await post.subscribe();
    await post.register();
    await post.until(() => post.arrivals.length === 1);
    expect(post.arrivals[0]!.headers).not.toHaveProperty("webhook-signature");
  });

  test.each([
    ["without jitter", 0, 1],
    ["with the most jitter", 1, 1.2],
  ])("that fails is tried again after 5 s to 24 h and then given up, %s", async (_, jitter, factor) => {
    const post = await openPost();
    post.jitter = jitter;
    post.answer = () => REFUSED;
    const { id } = await post.subscribe();
    await post.register();
    let made = 1;
    expect(RETRY_DELAYS_S).toEqual([5, 30, 120, 600, 3_600, 21_600, 86_400]);
    for (const delay of RETRY_DELAYS_S) {
      await post.until(() => post.state(id).retry_count === made && post.timers === 1);
      post.pass(delay * factor - 0.01);
      expect(post.arrivals).toHaveLength(made);
      post.pass(0.01);
      expect(post.arrivals).toHaveLength(++made);
    }
    await post.done();
    expect(post.timers).toBe(0);
    expect(post.state(id)).toMatchObject({ healthy: true, retry_count: RETRY_DELAYS_S.length + 1 });
  });

  test.each([0.000_3, 0.999_9])("is not looked at before its microsecond, with a jitter of %d", async (jitter) => {
    const post = await openPost();
    post.jitter = jitter;
    post.answer = () => REFUSED;
    const { id } = await post.subscribe();
    await post.register();
    await post.until(() => post.state(id).retry_count === 1 && post.timers === 1);
    // In whole microseconds. Timers have whole milliseconds, so the attempt may be up to one later, and never earlier.
    const delay = Math.round(RETRY_DELAYS_S[0]! * (1 + 0.2 * jitter) * 1e6) / 1e6;
    post.pass(delay - 0.000_001);
    expect(post.arrivals).toHaveLength(1);
    post.pass(0.001);
    expect(post.arrivals).toHaveLength(2);
  });

  test("that gets no answer in 10 s has failed", async () => {
    const post = await openPost();
    post.answer = () => never;
    const { id } = await post.subscribe();
    await post.register();
    await post.until(() => post.arrivals.length === 1);
    post.pass(9.999);
    await post.quiet();
    expect(post.state(id).retry_count).toBe(0);
    post.pass(0.001);
    await post.until(() => post.state(id).retry_count === 1);
  });

  test("survives a restart, its place in the schedule too", async () => {
    const post = await openPost();
    post.answer = () => REFUSED;
    const { id } = await post.subscribe();
    await post.register();
    await post.until(() => post.state(id).retry_count === 1 && post.timers === 1);
    await post.restart();
    expect(post.arrivals).toHaveLength(1);
    post.pass(4.99);
    expect(post.arrivals).toHaveLength(1);
    post.answer = () => ACCEPTED;
    post.pass(0.01);
    await post.done();
    expect(post.arrivals).toHaveLength(2);
    await post.deliverer.stop();
  });

  test("that a stop cuts short counts for nothing, and is made after the next start", async () => {
    const post = await openPost();
    post.answer = () => never;
    const { id } = await post.subscribe();
    await post.register();
    await post.until(() => post.arrivals.length === 1);
    await post.deliverer.stop();
    expect(post.timers).toBe(0);
    expect(post.state(id).retry_count).toBe(0);
    post.answer = () => ACCEPTED;
    await post.restart();
    await post.done();
    expect(post.arrivals).toHaveLength(2);
    await post.deliverer.stop();
  });

  test("of a subscription that has ended is not made, and its rows go", async () => {
    const post = await openPost();
    post.answer = () => REFUSED;
    const { id } = await post.subscribe();
    await post.register(3);
    await post.until(() => post.state(id).retry_count === 3 && post.timers === 1);
    await post.world.registry.webhooks.deactivate(id, OWNER);
    await post.done();
    await post.register();
    post.pass(100 * HOUR_S);
    await post.quiet();
    expect(post.arrivals).toHaveLength(3);
    expect(post.world.registry.webhooks.outbox.oldest(id, 10)).toEqual([]);
  });
});

/** A subscription in a log whose commits can be made to fail. */
async function faultySubscription() {
  const { log, faults } = await openFaultyLog({ projection });
  const webhooks = new Webhooks({
    log,
    writer: log,
    writes: new Writes(log, { isReached: () => false, reaches: async () => false }),
    operator: OWNER,
    allowPrivate: false,
    trust: { reaches: async () => true },
    perAddress: null,
  });
  const { id } = await webhooks.subscribe({ url: "https://receiver.example/" }, OWNER);
  return { log, faults, webhooks, id };
}

test.each([
  ["was taken", ACCEPTED, 0, []],
  ["was refused", REFUSED, 1, [{ entry_id: 1, attempt: 1 }]],
] as const)(
  "a delivery that %s while the log takes nothing is written down when it does",
  async (_, verdict, waits, rows) => {
    const { log, faults, webhooks, id } = await faultySubscription();
    let attempts = 0;
    const send: Send = async () => {
      if (++attempts === 1) faults.plan = ["not persisted", "not persisted"];
      return attempts === 1 ? verdict : ACCEPTED;
    };
    const deliverer = new Deliverer({ webhooks, send, logger: pino({ level: "silent" }) });
    deliverer.start();
    await log.append({ event_type: "key_registration", payload: {} });
    // What is known of it on disk is what the receiver said; nothing waits beside that, and it is not sent again.
    await expect.poll(() => webhooks.outbox.oldest(id, 10), { interval: 5 }).toMatchObject(rows);
    await expect.poll(() => deliverer.waiting, { interval: 5 }).toBe(waits);
    expect({ attempts, plan: faults.plan }).toEqual({ attempts: 1, plan: [] });
    // The next one is delivered and written down as the first.
    await log.append({ event_type: "key_registration", payload: {} });
    await expect.poll(() => attempts, { interval: 5 }).toBe(2);
    await expect.poll(() => deliverer.waiting, { interval: 5 }).toBe(waits);
    await deliverer.stop();
  },
);

test("an entry whose commit failed, and that is on disk all the same, is delivered without a restart", async () => {
  const { log, faults, webhooks } = await faultySubscription();
  const ids: string[] = [];
  const send: Send = async ({ headers }) => {
    ids.push(headers["webhook-id"]!);
    return ACCEPTED;
  };
  const deliverer = new Deliverer({ webhooks, send, logger: pino({ level: "silent" }) });
  deliverer.start();
  faults.plan = ["persisted anyway"];
  const append = log.append({ event_type: "key_registration", payload: {} });
  await expect(append).rejects.toMatchObject({ code: "storage-failed" });
  await expect.poll(() => ids, { interval: 1 }).toEqual(["msg_1_1"]);
  await deliverer.stop();
});

test("a subscription whose commit failed, and that is on disk all the same, begins without a restart, and so it ends", async () => {
  const { log, faults, webhooks, id } = await faultySubscription();
  const ids: string[] = [];
  const send: Send = async ({ headers }) => {
    ids.push(headers["webhook-id"]!);
    return ACCEPTED;
  };
  const deliverer = new Deliverer({ webhooks, send, logger: pino({ level: "silent" }) });
  deliverer.start();
  const append = () => log.append({ event_type: "key_registration", payload: {} });
  await append();
  await expect.poll(() => ids, { interval: 1 }).toEqual(["msg_1_1"]);
  faults.plan = ["persisted anyway"];
  await expect(webhooks.subscribe({ url: "https://second.example/" }, OWNER)).rejects.toThrow();
  await append();
  await expect.poll(() => ids.slice(1).sort(), { interval: 1 }).toEqual(["msg_1_2", "msg_2_2"]);
  faults.plan = ["persisted anyway"];
  await expect(webhooks.deactivate(id, OWNER)).rejects.toThrow();
  await append();
  await expect.poll(() => ids.slice(3), { interval: 1 }).toEqual(["msg_2_3"]);
  await expect.poll(() => deliverer.waiting, { interval: 1 }).toBe(0);
  await deliverer.stop();
});

describe("a clock that is set", () => {
  test("back puts no retry off, though the log's time stands still", async () => {
    const post = await openPost();
    const { id } = await post.subscribe();
    await post.register();
    await post.done();
    post.step(-YEAR_S);
    post.answer = () => REFUSED;
    const [entryId] = await post.register();
    let made = 1;
    for (const delay of RETRY_DELAYS_S.slice(0, 3)) {
      await post.until(() => post.state(id).retry_count === made && post.timers === 1);
      post.pass(delay - 0.01);
      expect(post.arrivals).toHaveLength(1 + made);
      post.pass(0.01);
      expect(post.arrivals).toHaveLength(1 + ++made);
    }
    expect(new Set(entriesOf(post.arrivals.slice(1), id))).toEqual(new Set([entryId]));
  });

  test("back while a retry is waited for delays it by no more than its own delay", async () => {
    const post = await openPost();
    const { id } = await post.subscribe();
    post.answer = () => REFUSED;
    await post.register();
    await post.until(() => post.state(id).retry_count === 1 && post.timers === 1);
    post.step(-YEAR_S);
    post.answer = () => ACCEPTED;
    post.pass(RETRY_DELAYS_S[0]!);
    await post.done();
    expect(post.arrivals).toHaveLength(2);
  });

  test("back while the service is away leaves no endpoint unhealthy until it is there again", async () => {
    const { post, id } = await unhealthy();
    post.step(-YEAR_S);
    post.answer = () => ACCEPTED;
    await post.restart();
    await post.done();
    expect(post.state(id)).toMatchObject({ healthy: true, retry_count: 0 });
    await post.deliverer.stop();
  });

  test("forward brings retries on, and each is still one attempt", async () => {
    const post = await openPost();
    const { id } = await post.subscribe();
    post.answer = () => REFUSED;
    await post.register();
    await post.until(() => post.state(id).retry_count === 1 && post.timers === 1);
    post.step(YEAR_S);
    post.pass(RETRY_DELAYS_S[0]!);
    await post.until(() => post.state(id).retry_count === 2 && post.timers === 1);
    post.pass(RETRY_DELAYS_S[1]! - 0.01);
    expect(post.arrivals).toHaveLength(2);
    post.pass(0.01);
    expect(post.arrivals).toHaveLength(3);
  });
});

describe("an endpoint", () => {
  test("is unhealthy after ten failures in a row, and tried once an hour", async () => {
    const { post, id } = await unhealthy();
    expect(post.state(id)).toMatchObject({ healthy: false, retry_count: UNHEALTHY_AFTER });
    expect(post.deliverer.unhealthy).toBe(1);
    for (let probe = 1; probe <= 3; probe++) {
      post.pass(HOUR_S - 0.01);
      expect(post.arrivals).toHaveLength(UNHEALTHY_AFTER + probe - 1);
      post.pass(0.01);
      expect(post.arrivals).toHaveLength(UNHEALTHY_AFTER + probe);
      await post.until(() => post.state(id).retry_count === UNHEALTHY_AFTER + probe && post.timers === 1);
    }
    expect(post.logged).toMatch(/"webhook":1,"msg":"webhook endpoint is unhealthy"/);
  });

  test("is healthy after the next success, and gets all that waited", async () => {
    const { post, id } = await unhealthy();
    post.answer = () => ACCEPTED;
    post.pass(HOUR_S);
    await post.done();
    expect(post.state(id)).toMatchObject({ healthy: true, retry_count: 0 });
    const delivered = entriesOf(post.arrivals.slice(UNHEALTHY_AFTER), id);
    expect(delivered.sort((a, b) => a - b)).toEqual(Array.from({ length: UNHEALTHY_AFTER }, (_, i) => i + 1));
  });

  test("stays unhealthy over a restart, and is not tried earlier for it", async () => {
    const { post, id } = await unhealthy();
    await post.restart();
    await post.quiet();
    post.pass(HOUR_S - 1);
    expect(post.arrivals).toHaveLength(UNHEALTHY_AFTER);
    post.pass(1);
    expect(post.arrivals).toHaveLength(UNHEALTHY_AFTER + 1);
    expect(post.state(id).healthy).toBe(false);
    await post.deliverer.stop();
  });

  test("that refuses one delivery gets the others", async () => {
    const post = await openPost();
    const { id } = await post.subscribe();
    const [poison] = await post.register();
    await post.done();
    post.answer = ({ entryId }) => (entryId === poison! + 1 ? REFUSED : ACCEPTED);
    const others = await post.register(20);
    await post.until(() => post.world.registry.webhooks.outbox.count(id) === 1);
    expect(new Set(entriesOf(post.arrivals, id))).toEqual(new Set([poison, ...others]));
    expect(post.state(id).healthy).toBe(true);
  });

  test("has one attempt under way, and gets its deliveries in the order of the log", async () => {
    const post = await openPost();
    const answers: (() => void)[] = [];
    post.answer = () => new Promise((resolve) => answers.push(() => resolve(ACCEPTED)));
    const { id } = await post.subscribe();
    const entries = [...(await post.register(4)), ...(await post.register())];
    await post.until(() => post.deliverer.waiting === entries.length);
    for (let made = 1; made <= entries.length; made++) {
      expect(post.arrivals).toHaveLength(made);
      answers.shift()!();
      await post.until(() => post.arrivals.length > made || made === entries.length);
    }
    await post.done();
    expect(entriesOf(post.arrivals, id)).toEqual(entries.sort((a, b) => a - b));
    expect(post.timers).toBe(0);
  });

  test("has one attempt under way, also when a retry falls due meanwhile", async () => {
    const post = await openPost();
    post.answer = () => REFUSED;
    const { id } = await post.subscribe();
    const [refused] = await post.register();
    await post.until(() => post.state(id).retry_count === 1 && post.timers === 1);
    let answer: () => void = () => {};
    post.answer = () => new Promise((resolve) => (answer = () => resolve(ACCEPTED)));
    const [next] = await post.register();
    await post.until(() => post.arrivals.length === 2);
    post.pass(RETRY_DELAYS_S[0]!);
    await post.quiet();
    expect(entriesOf(post.arrivals, id)).toEqual([refused, next]);
    answer();
    await post.until(() => post.arrivals.length === 3);
    answer();
    await post.done();
    expect(entriesOf(post.arrivals, id)).toEqual([refused, next, refused]);
    expect(post.timers).toBe(0);
  });

  test("that never answers delays no other: all of the live one's come while ten dead ones are still being tried", async () => {
    const post = await openPost();
    const dead: number[] = [];
    for (let i = 0; i < 10; i++) dead.push((await post.subscribe({ url: `https://dead${i}.example/` })).id);
    const live = await post.subscribe({ url: "https://live.example/" });
    post.answer = ({ webhookId }) => (webhookId === live.id ? ACCEPTED : never);
    const entries = await post.register(60);
    await post.until(() => entriesOf(post.arrivals, live.id).length === entries.length);
    // The clock has not moved, so no attempt at a dead endpoint has ended.
    expect(post.deliverer.failed).toBe(0);
    for (const id of dead) {
      const tried = entriesOf(post.arrivals, id).length;
      expect(tried).toBe(1);
    }
    expect(entriesOf(post.arrivals, live.id)).toEqual(entries.sort((a, b) => a - b));
  });
});

test("neither secrets nor URLs are logged, at any level", async () => {
  const { post } = await unhealthy();
  await post.subscribe({ url: "https://receiver.example/hooks/bearer-in-the-path", secret: "quixotic zyzzyva marker" });
  await post.register(2);
  await post.until(() => post.arrivals.length === UNHEALTHY_AFTER + 2);
  await post.quiet();
  expect(post.logged).toMatch(/webhook attempt/);
  expect(post.logged).not.toMatch(/zyzzyva|bearer-in-the-path|receiver\.example|signature/);
});
