/** What an append costs does not depend on subscriptions, and none of them misses an entry. */

import { pino } from "pino";
import { afterAll, describe, expect, test, vi } from "vitest";
import { WINDOW } from "#cairnlog/engine/registry/webhooks/deliveries.js";
import { Outbox } from "#cairnlog/engine/registry/webhooks/outbox.js";
import { Deliverer } from "#cairnlog/server/webhooks/deliverer.js";
import { runIn } from "../log/inline.js";
import { closeWorlds, sha256 } from "../registry/world.js";
import { ACCEPTED, type Arrival, OWNER, openPost, type Post, REFUSED } from "./harness.js";

afterAll(closeWorlds);

const never = new Promise<never>(() => {});
const owner = (i: number) => `sha256:${sha256(`${i}`)}`;
const note = { event_type: "key_registration", payload: {} };
const notes = (count: number) => Array.from({ length: count }, () => note);
const entriesOf = (arrivals: readonly Arrival[], webhookId: number) =>
  arrivals.filter((arrival) => arrival.webhookId === webhookId).map(({ entryId }) => entryId);
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, i) => first + i);

const outboxOf = ({ world }: Post) => world.registry.webhooks.outbox;
const cursors = ({ world }: Post) => world.registry.log.rows("webhookCursors", 0, Number.MAX_SAFE_INTEGER);

describe("a subscription with a full window", () => {
  test("waits: rows on disk and in memory are bounded, and later it gets everything, in order", async () => {
    const post = await openPost();
    post.answer = () => never;
    const { id } = await post.subscribe();
    const count = 5 * WINDOW;
    await post.world.append(...notes(count));
    await post.until(() => post.deliverer.behind === 1);
    expect(post.deliverer.waiting).toBe(WINDOW);
    expect(outboxOf(post).webhookIds()).toEqual([]);
    post.answer = () => ACCEPTED;
    post.pass(10);
    await post.until(() => entriesOf(post.arrivals, id).length === count);
    // The first one timed out, so it comes again, behind the others or between them.
    post.pass(5);
    await post.done();
    const [first, ...rest] = entriesOf(post.arrivals, id);
    expect(first).toBe(1);
    expect(rest.filter((entry) => entry !== 1)).toEqual(upTo(count, 2));
    expect(rest).toContain(1);
  });

  test("takes no more rows than the window, however long its endpoint refuses", async () => {
    const post = await openPost();
    post.answer = () => REFUSED;
    const { id } = await post.subscribe();
    await post.world.append(...notes(3 * WINDOW));
    for (let hours = 0; hours < 100; hours++) {
      await post.until(() => post.timers === 1);
      expect(outboxOf(post).count(id)).toBeLessThanOrEqual(WINDOW);
      expect(post.deliverer.waiting).toBeLessThanOrEqual(WINDOW);
      post.pass(3_600);
    }
    expect(post.deliverer.behind).toBe(1);
  });
});

test("without subscriptions no entry is read; the first one gets what comes behind it, in the same batch too", async () => {
  const post = await openPost();
  const read = vi.spyOn(post.world.registry.webhooks, "eventAt");
  await post.world.append(...notes(50));
  await post.quiet();
  expect(read).not.toHaveBeenCalled();
  expect(post.deliverer.unread).toBe(0);
  const [, { id }] = await Promise.all([post.world.append(note), post.subscribe(), post.world.append(note, note)]);
  await post.done();
  expect(entriesOf(post.arrivals, id)).toEqual([52, 53]);
  expect(Math.min(...read.mock.calls.map(([leafIndex]) => leafIndex))).toBeGreaterThanOrEqual(50);
});

describe("a restart", () => {
  test("goes on at the cursors: nothing is lost, and what was recorded is not repeated", async () => {
    const post = await openPost();
    const { id: live } = await post.subscribe({ url: "https://live.example/" });
    const { id: dead } = await post.subscribe({ url: "https://dead.example/" });
    post.answer = ({ webhookId }) => (webhookId === dead ? never : ACCEPTED);
    await post.world.append(...notes(WINDOW + 6));
    await post.until(() => entriesOf(post.arrivals, live).length === WINDOW + 6);
    await post.quiet();
    await post.restart();
    await post.world.append(note);
    post.answer = () => ACCEPTED;
    await post.restart();
    await post.done();
    expect(entriesOf(post.arrivals, live)).toEqual(upTo(WINDOW + 7));
    expect([...new Set(entriesOf(post.arrivals, dead))]).toEqual(upTo(WINDOW + 7));
    await post.deliverer.stop();
  });

  test("loses nothing of a subscription that came while the keys of others were looked at", async () => {
    const post = await openPost();
    const { webhooks } = post.world.registry;
    const endWithKey = webhooks.endWithKey.bind(webhooks);
    let late = 0;
    vi.spyOn(webhooks, "endWithKey").mockImplementationOnce(async (ids) => {
      const ended = await endWithKey(ids);
      late = (await post.subscribe({ url: "https://late.example/" })).id;
      await post.world.append(note, note);
      return ended;
    });
    post.answer = ({ webhookId }) => (webhookId === late ? never : ACCEPTED);
    // The walk was never recorded, so it is at once.
    await post.subscribe();
    await post.until(() => entriesOf(post.arrivals, late).length > 0 && outboxOf(post).walked! > 0);
    post.arrivals.length = 0;
    post.answer = () => ACCEPTED;
    await post.restart();
    await post.done();
    expect(entriesOf(post.arrivals, late)).toEqual([1, 2]);
    await post.deliverer.stop();
  });

  test("of a service that was away finds what came meanwhile", async () => {
    const post = await openPost();
    const { id } = await post.subscribe();
    await post.deliverer.stop();
    await post.world.append(...notes(10));
    await post.restart();
    await post.done();
    expect(entriesOf(post.arrivals, id)).toEqual(upTo(10));
    await post.deliverer.stop();
  });

  test("delivers what an earlier version has queued, then what came since", async () => {
    const post = await openPost();
    await post.world.append(...notes(6));
    const { id } = await post.subscribe();
    await post.deliverer.stop();
    const { log } = post.world.registry;
    await runIn(log, (transaction) => {
      const { since, ...row } = transaction.get("webhooks", id)!;
      expect(since).toBe(6);
      transaction.put("webhooks", id, row);
      transaction.put("counters", "webhook-walk", undefined);
      const created_at = transaction.timestamp;
      for (const entry of [3, 5])
        transaction.put("outbox", [id, entry], {
          event: "key.registered",
          attempt: 0,
          next_attempt_at: null,
          created_at,
        });
      transaction.put("outboxCounts", id, { count: 2 });
    });
    await post.restart();
    await post.done();
    await post.world.append(...notes(2));
    await post.done();
    expect(entriesOf(post.arrivals, id)).toEqual([3, 5, 7, 8]);
    expect(outboxOf(post).webhookIds()).toEqual([]);
    await post.deliverer.stop();
  });
});

describe("the shared walk", () => {
  test("is recorded once in thousands of entries, with the cursors of those alone that have deliveries left", async () => {
    const post = await openPost();
    for (let i = 0; i < 10; i++) await post.subscribe({ document_hash: "d".repeat(64) }, owner(i));
    const { id: dead } = await post.subscribe();
    const { id: live } = await post.subscribe();
    post.answer = ({ webhookId }) => (webhookId === dead ? never : ACCEPTED);
    await post.world.append(...notes(500));
    await post.until(() => entriesOf(post.arrivals, live).length === 500);
    await post.quiet();
    expect(outboxOf(post).walked).toBe(0);
    expect(cursors(post).map(({ key }) => key)).toEqual([live]);
    // An entry that is found for one without a cursor just while the cursors of others are on their way to the disk.
    const { id: late } = await post.subscribe({ document_hash: "e".repeat(64) }, owner(10));
    const entry = { ...note, payload: { document_hash: "e".repeat(64) } };
    const written: (number | undefined)[] = [];
    const mark = Outbox.prototype.mark;
    vi.spyOn(Outbox.prototype, "mark").mockImplementation(async function (this: Outbox, walked, list) {
      if (walked === null) {
        post.answer = ({ webhookId }) => (webhookId === dead || webhookId === late ? never : ACCEPTED);
        await post.world.append(entry);
        await expect.poll(() => entriesOf(post.arrivals, late).length, { interval: 1 }).toBe(1);
      } else written.push(this.cursor(dead));
      await mark.call(this, walked, list);
    });
    for (let i = 0; i < 8; i++) await post.world.append(...notes(500));
    await post.until(() => outboxOf(post).walked! > 4000);
    // Had it crashed before the walk was recorded, nothing of the others would have been lost.
    expect(written).toEqual([0]);
    vi.restoreAllMocks();
    expect(cursors(post).find(({ key }) => key === dead)).toMatchObject({ row: { next: 0 } });
    // Those without deliveries have none.
    expect(cursors(post).every(({ key }) => key === dead || key === live)).toBe(true);
    await post.restart();
    post.answer = () => ACCEPTED;
    post.pass(10);
    await post.until(() => entriesOf(post.arrivals, dead).length > 4501);
    expect([...new Set(entriesOf(post.arrivals, dead))].sort((a, b) => a - b)).toEqual(upTo(4501));
    await post.until(() => entriesOf(post.arrivals, late).length === 2);
    await post.deliverer.stop();
  });
});

describe("places", () => {
  test("are 128, of which one owner has a quarter, and owners take turns", async () => {
    const post = await openPost();
    post.answer = () => never;
    // Rows of earlier versions may have more subscriptions of one owner than can be made now.
    await runIn(post.world.registry.log, (transaction) => {
      const row = {
        events: [],
        key_fingerprint: null,
        document_hash: null,
        secret: null,
        healthy: true,
        retry_count: 0,
      };
      for (let id = 1; id <= 200; id++)
        transaction.put("webhooks", id, {
          ...row,
          url: `https://receiver${id}.example/`,
          owner_fingerprint: OWNER,
          next_probe_at: null,
          created_at: transaction.timestamp,
          since: 0,
        });
      transaction.put("counters", "webhook", { last: 200 });
    });
    await post.world.append(note);
    await post.until(() => post.arrivals.length === 32);
    for (let i = 0; i < 20; i++)
      for (let n = 0; n < 10; n++) await post.subscribe({ url: `https://other${i}-${n}.example/` }, owner(i));
    await post.world.append(note);
    await post.until(() => post.arrivals.length === 128);
    const others = post.arrivals.slice(32).map(({ webhookId }) => Math.floor((webhookId - 201) / 10));
    // Each of the twenty has four or five of the 96 places.
    for (let i = 0; i < 20; i++) expect([4, 5]).toContain(others.filter((other) => other === i).length);
    // A subscription that comes to a full house is served as soon as a place is free.
    const { id: late } = await post.subscribe({ url: "https://late.example/" }, owner(99));
    await post.world.append(note);
    await post.quiet();
    expect(entriesOf(post.arrivals, late)).toEqual([]);
    post.pass(10);
    await post.until(() => entriesOf(post.arrivals, late).length === 1);
  });

  test("are given back at the deadline, though an endpoint's attempt never ends", async () => {
    const post = await openPost();
    const { webhooks } = post.world.registry;
    await post.deliverer.stop();
    const deadlines: (() => void)[] = [];
    let sent = 0;
    const deliverer = new Deliverer({
      webhooks,
      send: () => {
        sent++;
        return never;
      },
      logger: pino({ level: "silent" }),
      schedule: (milliseconds, run) => {
        if (milliseconds === 10_000) deadlines.push(run);
        return () => {};
      },
    });
    await post.subscribe();
    await post.world.append(note);
    deliverer.start();
    await expect.poll(() => sent).toBe(1);
    deadlines.shift()!();
    await expect.poll(() => deliverer.failed).toBe(1);
    await deliverer.stop();
  });
});
