/** The outbox of webhooks always agrees with the log. */
import { afterAll, describe, expect, it } from "vitest";
import { operatorKey } from "#cairnlog/engine/crypto/keys/operator-key.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/private-key.js";
import type { EventInput } from "#cairnlog/engine/log/write/projection.js";
import { projection } from "#cairnlog/engine/registry/projection.js";
import { MAX_WAITING } from "#cairnlog/engine/registry/webhooks/deliveries.js";
import type { WebhookInput } from "#cairnlog/engine/registry/webhooks/input.js";
import { Webhooks } from "#cairnlog/engine/registry/webhooks/webhooks.js";
import { openFaultyLog } from "../../log/harness.js";
import { runIn } from "../../log/inline.js";
import { at, closeWorlds, newFolder, openWorld, type World } from "../world.js";

afterAll(closeWorlds);

const OWNER = `sha256:${"a".repeat(64)}`;
const OTHER = `sha256:${"b".repeat(64)}`;
const all: WebhookInput = { url: "https://receiver.example/hook" };
const note = (): EventInput => ({ event_type: "key_registration", payload: {} });

/** Ids of entries that wait for delivery to a subscription. */
const waiting = ({ registry }: World, id: number, limit = 100) =>
  registry.webhooks.outbox.oldest(id, limit).map(({ entry_id }) => entry_id);

describe("the outbox", () => {
  it("follows the order of commands: no entries from before the subscription or after its end", async () => {
    const world = await openWorld();
    const { webhooks, log } = world.registry;
    const steps = [
      log.append(note()),
      webhooks.subscribe(all, OWNER),
      log.append(note()),
      log.append(note()),
      webhooks.deactivate(1, OWNER),
      webhooks.subscribe(all, OWNER),
      log.append(note()),
    ];
    await Promise.all(steps);
    expect(waiting(world, 1)).toEqual([2, 3]);
    expect(waiting(world, 2)).toEqual([4]);
  });

  it("knows nothing of events whose command refused", async () => {
    const world = await openWorld();
    const { webhooks, log } = world.registry;
    await webhooks.subscribe(all, OWNER);
    const refused = runIn(log, (transaction) => {
      transaction.append(note());
      throw new Error("no");
    });
    await expect(refused).rejects.toThrow("no");
    await log.append(note());
    expect(waiting(world, 1)).toEqual([1]);
    expect(webhooks.outbox.size).toBe(1);
  });

  it("is there after a restart, with the subscriptions, and is not derived from entries", async () => {
    const world = await openWorld();
    await world.registry.webhooks.subscribe(all, OWNER);
    await world.append(note());
    await world.reopen();
    await world.append(note());
    expect(waiting(world, 1)).toEqual([1, 2]);
    expect(world.registry.webhooks.outbox.webhookIds()).toEqual([1]);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });

  it("queues no more for a subscription that is too far behind, and continues when there is room", async () => {
    const world = await openWorld();
    const { webhooks } = world.registry;
    const { id } = await webhooks.subscribe(all, OWNER);
    await world.append(...Array.from({ length: MAX_WAITING + 5 }, () => note()));
    expect(webhooks.outbox.size).toBe(MAX_WAITING);
    // `docs/webhooks.md` promises that number.
    expect(MAX_WAITING).toBe(10_000);
    const outcome = { webhookId: id, entryId: 1, attempt: 0, isDelivered: true, at: at(world.now), jitter: 0 };
    // The same outcome twice counts once. This happens after a failed write that was on disk nevertheless.
    await webhooks.outbox.settle([outcome, outcome]);
    await webhooks.outbox.settle([outcome]);
    expect(webhooks.outbox.size).toBe(MAX_WAITING - 1);
    await world.append(note(), note());
    expect(waiting(world, id, MAX_WAITING + 10).at(-1)).toBe(MAX_WAITING + 6);
  });

  it("says once that an endpoint has become unhealthy, and once that a delivery is given up", async () => {
    const world = await openWorld();
    const { outbox } = world.registry.webhooks;
    const { id } = await world.registry.webhooks.subscribe(all, OWNER);
    await world.append(note(), note());
    const row = (entryId: number) => outbox.oldest(id, 2).find(({ entry_id }) => entry_id === entryId);
    /** A failed attempt at a delivery when it is due, or at `moment`. */
    const fail = (entryId: number, moment?: string) => {
      const { attempt, next_attempt_at } = row(entryId)!;
      const time = moment ?? next_attempt_at ?? at(world.now);
      return outbox.settle([{ webhookId: id, entryId, attempt, isDelivered: false, at: time, jitter: 0 }]);
    };
    const nothing = { unhealthy: [], givenUp: 0 };
    for (let failures = 1; failures < 8; failures++) expect(await fail(1)).toEqual(nothing);
    expect(await fail(1)).toEqual({ unhealthy: [], givenUp: 1 });
    expect(row(1)).toBeUndefined();
    expect(await fail(2)).toEqual(nothing);
    expect(await fail(2)).toEqual({ unhealthy: [id], givenUp: 0 });
    const before = row(2);
    // A probe before the delivery is due.
    expect(await fail(2, at(world.now))).toEqual(nothing);
    expect(row(2)).toEqual(before);
    expect(await fail(2)).toEqual(nothing);
  });

  it("does not change if a batch cannot be signed; nor do the subscriptions in memory", async () => {
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
    expect(waiting(world, 1)).toEqual([1]);
    expect(webhooks.outbox.webhookIds()).toEqual([1]);
  });

  it.each(["not persisted", "persisted anyway"] as const)(
    "and memory agree after a commit that failed, %s",
    async (fate) => {
      const { log, faults } = await openFaultyLog({ projection });
      const webhooks = new Webhooks({ log, operator: OTHER, allowPrivate: false });
      await webhooks.subscribe(all, OWNER);
      faults.plan = [fate];
      const failed = await Promise.allSettled([webhooks.subscribe(all, OWNER), log.append(note())]);
      for (const outcome of failed) expect(outcome).toMatchObject({ reason: { code: "storage-failed" } });
      await log.append(note());
      const isThere = fate === "persisted anyway";
      const told = (id: number) => webhooks.outbox.oldest(id, 10).map(({ entry_id }) => entry_id);
      expect(webhooks.list(OWNER).map(({ id }) => id)).toEqual(isThere ? [1, 2] : [1]);
      expect(told(1)).toEqual(isThere ? [1, 2] : [1]);
      expect(told(2)).toEqual(isThere ? [1, 2] : []);
    },
  );
});
