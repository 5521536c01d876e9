/** What is on disk for webhooks: appends write nothing for them; cursors and outbox agree with the log. */
import { afterAll, describe, expect, it } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { EventInput } from "#cairnlog/engine/log/state/projection.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import type { Attempted } from "#cairnlog/engine/registry/webhooks/deliveries.js";
import type { WebhookInput } from "#cairnlog/engine/registry/webhooks/input.js";
import { Webhooks } from "#cairnlog/engine/registry/webhooks/webhooks.js";
import { Writes } from "#cairnlog/engine/registry/writes/writes.js";
import { PRIVATE_TABLES } from "#cairnlog/engine/store/schema/schema.js";
import { openFaultyLog } from "../../log/harness.js";
import { at, closeWorlds, newFolder, openWorld, type World } from "../world.js";

afterAll(closeWorlds);

const OWNER = `sha256:${"a".repeat(64)}`;
const OTHER = `sha256:${"b".repeat(64)}`;
const all: WebhookInput = { url: "https://receiver.example/hook" };
const note = (): EventInput => ({ event_type: "key_registration", payload: {} });

/** The leaf indexes at which the subscriptions begin. */
const begins = ({ registry: { webhooks } }: Pick<World, "registry">) => webhooks.all().map(({ row }) => row.since);

describe("an append", () => {
  it("writes no private row, whatever is subscribed", async () => {
    const world = await openWorld();
    const { webhooks, log } = world.registry;
    for (let i = 0; i < 20; i++) await webhooks.subscribe({ url: `https://receiver${i}.example/` }, OWNER);
    const changed: string[] = [];
    for (const table of PRIVATE_TABLES) log.observeRows(table, (changes) => changed.push(...changes!.map(() => table)));
    await log.append(Array.from({ length: 30 }, note));
    expect(changed).toEqual([]);
  });
});

describe("a subscription", () => {
  it("begins behind the entries of earlier commands, those of its own batch included", async () => {
    const world = await openWorld();
    const { webhooks, log } = world.registry;
    const steps = [log.append(note()), webhooks.subscribe(all, OWNER), log.append([note(), note()])];
    await Promise.all([...steps, webhooks.subscribe(all, OWNER), log.append(note())]);
    expect(begins(world)).toEqual([1, 3]);
    await world.reopen();
    expect(begins(world)).toEqual([1, 3]);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });

  it("loses its cursor with its end", async () => {
    const { webhooks, log } = (await openWorld()).registry;
    const { id } = await webhooks.subscribe(all, OWNER);
    await webhooks.outbox.mark(null, [{ webhook_id: id, next: 5 }]);
    expect(webhooks.outbox.cursor(id)).toBe(5);
    await webhooks.deactivate(id, OWNER);
    // Neither the end of an attempt nor a mark that was under way brings it back.
    await webhooks.outbox.mark(7, [{ webhook_id: id, next: 6 }]);
    const first = { event: "key.registered", created_at: at(0), next: 7 } as const;
    const outcome = { webhookId: id, entryId: 7, attempt: 0, isDelivered: false, at: at(0), jitter: 0, first };
    await webhooks.outbox.settle([outcome]);
    expect(log.rows("webhookCursors", 0, Number.MAX_SAFE_INTEGER)).toEqual([]);
    expect(webhooks.outbox.webhookIds()).toEqual([]);
    expect(webhooks.outbox.walked).toBe(7);
  });

  it.each(["not persisted", "persisted anyway"] as const)(
    "is what the disk says after a failed commit, %s",
    async (fate) => {
      const { log, faults } = await openFaultyLog({ projection });
      const webhooks = new Webhooks({
        log,
        writer: log,
        writes: new Writes(log, { isReached: () => false, reaches: async () => false }),
        operator: OTHER,
        allowPrivate: false,
        trust: { reaches: async () => true },
        perAddress: null,
      });
      await webhooks.subscribe(all, OWNER);
      faults.plan = [fate];
      const failed = await Promise.allSettled([webhooks.subscribe(all, OWNER), log.append(note())]);
      for (const outcome of failed) expect(outcome).toMatchObject({ reason: { code: "storage-failed" } });
      await log.append(note());
      const isThere = fate === "persisted anyway";
      expect(webhooks.list(OWNER).map(({ id }) => id)).toEqual(isThere ? [1, 2] : [1]);
    },
  );

  it("does not change if a batch cannot be signed", async () => {
    const key = operatorKey(generatePrivateKey("ed25519"));
    let answers = true;
    const operator: typeof key = {
      ...key,
      sign: (messages) => (answers ? key.sign(messages) : Promise.reject(new Error("away"))),
    };
    const world = await openWorld(newFolder(), generatePrivateKey("ed25519"), { operator });
    const { webhooks, log } = world.registry;
    await webhooks.subscribe(all, OWNER);
    answers = false;
    const lost = await Promise.allSettled([
      log.append(note()),
      webhooks.deactivate(1, OWNER),
      webhooks.subscribe({ url: "https://second.example/" }, OWNER),
    ]);
    for (const outcome of lost) expect(outcome).toMatchObject({ reason: { code: "signer-unavailable" } });
    answers = true;
    await log.append(note());
    expect(webhooks.list(OWNER).map(({ id }) => id)).toEqual([1]);
  });
});

describe("an outcome", () => {
  /** Records the outcomes of attempts at one subscription. */
  async function attempts(entries: number) {
    const world = await openWorld();
    const { webhooks, log } = world.registry;
    const { outbox } = webhooks;
    const { id } = await webhooks.subscribe(all, OWNER);
    await log.append(Array.from({ length: entries }, note));
    const row = (entryId: number) => outbox.oldest(id, 9).find(({ entry_id }) => entry_id === entryId);
    const outcome = (entryId: number, isDelivered: boolean, moment?: string): Attempted => {
      const known = row(entryId);
      const time = moment ?? known?.next_attempt_at ?? at(world.now);
      const base = { webhookId: id, entryId, attempt: known?.attempt ?? 0, isDelivered, at: time, jitter: 0 };
      const first = { event: "key.registered", created_at: at(world.now), next: entryId } as const;
      return known ? base : { ...base, first };
    };
    const failures = () => webhooks.all()[0]!.row.retry_count;
    return { id, outbox, row, outcome, failures, now: at(world.now) };
  }

  it("moves the cursor, and puts into the outbox only what failed", async () => {
    const { id, outbox, outcome } = await attempts(3);
    await outbox.settle([outcome(1, true), outcome(2, false), outcome(3, true)]);
    expect(outbox.cursor(id)).toBe(3);
    expect(outbox.oldest(id, 9)).toMatchObject([{ entry_id: 2, attempt: 1 }]);
    expect(outbox.count(id)).toBe(1);
    await outbox.settle([outcome(2, true)]);
    expect(outbox.count(id)).toBe(0);
    expect(outbox.webhookIds()).toEqual([]);
    expect(outbox.cursor(id)).toBe(3);
  });

  it("counts once, though a failed write was on disk nevertheless and it is recorded again", async () => {
    const { id, outbox, outcome, row, failures } = await attempts(2);
    const failed = outcome(1, false);
    await outbox.settle([failed, failed]);
    await outbox.settle([failed]);
    expect(row(1)).toMatchObject({ attempt: 1 });
    const again = outcome(1, false);
    await outbox.settle([again, again]);
    expect(row(1)).toMatchObject({ attempt: 2 });
    expect(failures()).toBe(2);
    // A mark that was made before an outcome and is written after it does not move the cursor back.
    await outbox.settle([outcome(2, true)]);
    await outbox.mark(null, [{ webhook_id: id, next: 0 }]);
    expect(outbox.cursor(id)).toBe(2);
    // As far as the shared walk.
    await outbox.mark(3, [{ webhook_id: id, next: null }]);
    expect([outbox.walked, outbox.cursor(id)]).toEqual([3, undefined]);
  });

  it("says once that an endpoint has become unhealthy, and once that a delivery is given up", async () => {
    const { id, outbox, row, outcome, now } = await attempts(2);
    const fail = (entryId: number, moment?: string) => outbox.settle([outcome(entryId, false, moment)]);
    const nothing = { unhealthy: [], givenUp: 0, ended: [] };
    for (let failures = 1; failures < 8; failures++) expect(await fail(1)).toEqual(nothing);
    expect(await fail(1)).toEqual({ ...nothing, givenUp: 1 });
    expect(row(1)).toBeUndefined();
    expect(await fail(2)).toEqual(nothing);
    expect(await fail(2)).toEqual({ ...nothing, unhealthy: [id] });
    const before = row(2);
    // A probe before the delivery is due.
    expect(await fail(2, now)).toEqual(nothing);
    expect(row(2)).toEqual(before);
    expect(await fail(2)).toEqual(nothing);
  });
});
