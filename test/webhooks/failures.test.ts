/** The log refuses once: what has changed before, meanwhile and after is known to the deliverer all the same. */
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { Outbox } from "#cairnlog/engine/registry/webhooks/outbox.js";
import { Webhooks } from "#cairnlog/engine/registry/webhooks/webhooks.js";
import { runIn } from "../log/inline.js";
import { closeWorlds, nodeSigner, registration } from "../registry/world.js";
import { type Arrival, OWNER, openPost, REFUSED } from "./harness.js";

afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(closeWorlds);

const note = { event_type: "key_registration", payload: {} };
const told = (arrivals: readonly Arrival[]) => arrivals.map(({ webhookId }) => webhookId).sort((a, b) => a - b);
const refuse = (): never => {
  throw new CairnlogError("storage-failed", "injected: the log cannot be read");
};

test("a start at which the log cannot be read is made up for a moment later", async () => {
  const post = await openPost();
  const { id } = await post.subscribe();
  vi.spyOn(Webhooks.prototype, "all").mockImplementationOnce(refuse);
  await post.restart();
  await post.until(() => post.timers === 1);
  post.pass(1);
  await post.world.append(note);
  await post.until(() => post.arrivals.length === 1);
  expect(told(post.arrivals)).toEqual([id]);
  await post.deliverer.stop();
});

test("subscriptions that begin or end when it refuses, or while it is waited for, are known afterwards", async () => {
  const post = await openPost();
  const { id: ends } = await post.subscribe();
  const { id: stays } = await post.subscribe();
  await post.quiet();
  vi.spyOn(Outbox.prototype, "count").mockImplementationOnce(refuse);
  const { id: before } = await post.subscribe();
  await post.until(() => post.timers === 1);
  const { id: meanwhile } = await post.subscribe();
  await post.world.registry.webhooks.deactivate(ends, OWNER);
  await post.quiet();
  post.pass(1);
  await post.quiet();
  const { id: after } = await post.subscribe();
  await post.world.append(note);
  const all = [stays, before, meanwhile, after];
  await post.until(() => post.arrivals.length === all.length);
  await post.done();
  expect(told(post.arrivals)).toEqual(all);
  expect(post.timers).toBe(0);
});

test("a subscription that begins while all are being read is not passed over", async () => {
  const post = await openPost();
  const { id } = await post.subscribe();
  await post.deliverer.stop();
  const row = post.world.registry.log.row("webhooks", id)!;
  await runIn(post.world.registry.log, (transaction) => {
    for (let other = 100; other < 160; other++)
      transaction.put("webhooks", other, {
        ...row,
        ...{ document_hash: "d".repeat(64), owner_fingerprint: `sha256:${"b".repeat(64)}` },
      });
    transaction.put("counters", "webhook", { last: 200 });
  });
  const counts = Outbox.prototype.count;
  let [isBegun, isMade] = [false, false];
  // Reading takes so long that a commit ends meanwhile.
  vi.spyOn(Outbox.prototype, "count").mockImplementation(function (this: Outbox, one) {
    if (!isBegun)
      void post.subscribe().then(() => {
        isMade = true;
      });
    isBegun = true;
    for (const until = performance.now() + 3; !isMade && performance.now() < until; );
    return counts.call(this, one);
  });
  await post.restart();
  await post.until(() => isMade);
  await post.world.append(note);
  await post.until(() => post.arrivals.length === 2);
  expect(told(post.arrivals)).toEqual([id, 201]);
  await post.deliverer.stop();
});

test("a key that ends while the subscriptions of another one are being ended is not passed over", async () => {
  const post = await openPost();
  const { keys, keyLifecycle, log } = post.world.registry;
  const [one, two] = [nodeSigner(), nodeSigner()];
  for (const signer of [one, two]) {
    await keys.register(registration(signer));
    await post.subscribe({ events: ["endorsement.created"] }, signer.fingerprint);
  }
  await post.quiet();
  const ends = Webhooks.prototype.endWithKey;
  vi.spyOn(Webhooks.prototype, "endWithKey").mockImplementationOnce(async function (this: Webhooks, ids) {
    await keyLifecycle.revoke(two.fingerprint);
    return ends.call(this, ids);
  });
  await keyLifecycle.revoke(one.fingerprint);
  await post.until(() => log.rows("webhooks", 0, Number.MAX_SAFE_INTEGER).length === 0);
  expect(post.arrivals).toEqual([]);
});

test("subscriptions of a key that has ended end when the log takes it, though it refused at first", async () => {
  const post = await openPost();
  const { keys, keyLifecycle, log } = post.world.registry;
  const owner = nodeSigner();
  await keys.register(registration(owner));
  await post.subscribe({}, owner.fingerprint);
  await post.quiet();
  vi.spyOn(Webhooks.prototype, "endWithKey").mockImplementationOnce(refuse);
  await keyLifecycle.revoke(owner.fingerprint);
  await post.until(() => post.timers === 1);
  post.pass(1);
  await post.until(() => log.rows("webhooks", 0, Number.MAX_SAFE_INTEGER).length === 0);
});

test("rows that a crash has left of a subscription that ended go at the next start", async () => {
  const post = await openPost();
  post.answer = () => REFUSED;
  const { id } = await post.subscribe();
  await post.register(3);
  await post.until(() => post.world.registry.webhooks.outbox.count(id) === 3);
  await post.deliverer.stop();
  await post.world.registry.webhooks.deactivate(id, OWNER);
  expect(post.world.registry.webhooks.outbox.webhookIds()).toEqual([id]);
  await post.restart();
  await post.until(() => post.world.registry.webhooks.outbox.webhookIds().length === 0);
});

test("outcomes that come while others are written share the next command", async () => {
  const post = await openPost();
  for (let n = 0; n < 8; n++) await post.subscribe();
  let write = () => {};
  const mayWrite = new Promise<void>((resolve) => {
    write = resolve;
  });
  const settles = Outbox.prototype.settle;
  const settled: number[] = [];
  vi.spyOn(Outbox.prototype, "settle").mockImplementation(async function (this: Outbox, outcomes) {
    settled.push(outcomes.length);
    await mayWrite;
    return settles.call(this, outcomes);
  });
  for (let entries = 1; entries <= 3; entries++) {
    await post.world.append(note);
    await post.until(() => post.arrivals.length === 8 * entries);
  }
  write();
  await post.done();
  await post.until(() => settled.reduce((sum, count) => sum + count, 0) === 24);
  expect(settled).toHaveLength(2);
});
