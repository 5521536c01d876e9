/**
 * Trust levels in a real registry: statuses that change with the clock, the end of a cached evaluation, and swarms of
 * keys.
 */
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { Steps } from "#cairnlog/engine/base/turns.js";
import { Slices } from "#cairnlog/engine/registry/shared/slices.js";
import { TrustService } from "#cairnlog/engine/registry/trust/service.js";
import { Case, newKey } from "../endorsements/endorsementcase.js";
import { keyNamed, putAlert, putEndorsements, putKeys } from "../graph/graphrows.js";
import {
  at,
  closeWorlds,
  DAY,
  heldRegistration,
  newFolder,
  nodeSigner,
  openWorld,
  registration,
  SECOND,
  type World,
} from "../world.js";
import { models, workedOut } from "./trustmodel.js";

afterAll(closeWorlds);

const open = (trust: object = {}, more: object = {}) => openWorld(newFolder(), undefined, { trust, ...more });
const levels = async (world: World, keys: readonly string[]) =>
  [...(await world.registry.trust.standings(keys)).values()].map(({ trust_level }) => trust_level);

/** An endorsement that was offered and accepted now. */
async function endorse(world: World, from: string, to: string): Promise<Case> {
  const made = new Case(world, from, to);
  await made.offer();
  await made.accept();
  return made;
}

it("matches the formula for endorsements and keys of every status", async () => {
  let id = 1;
  const other = fc.constantFrom("offered", "pending", "expired", "withdrawn");
  await fc.assert(
    fc.asyncProperty(models(), fc.infiniteStream(other), async (model, states) => {
      const names = model.active.map((_, key) => keyNamed(key));
      const anchors = model.anchors.map((key) => names[key]!);
      const world = await open({ anchors, baseCapacity: model.baseCapacity });
      await putKeys(
        world,
        model.active.map((active, key) => ({
          fingerprint: names[key]!,
          ...(active ? {} : key % 2 ? { status: "revoked" as const } : { expires_at: at(world.now) }),
        })),
      );
      await putEndorsements(
        world,
        model.edges.map(({ from, to, active }) => {
          const state = active ? "active" : (states.next().value as string);
          return {
            id: id++,
            from: names[from]!,
            to: names[to]!,
            acceptedAt: state === "offered" ? null : at(state === "pending" ? world.now - DAY + 1 : world.now - DAY),
            validUntil: state === "expired" ? at(world.now) : at(world.now + 1),
            withdrawnAt: state === "withdrawn" ? at(world.now) : null,
          };
        }),
      );
      for (const { by, on } of model.alerts) await putAlert(world, id++, names[by]!, names[on]!);
      const found = await world.registry.trust.standings(names);
      for (const [key, { level, capacity, discount }] of workedOut(model).entries()) {
        const standing = found.get(names[key]!)!;
        expect(standing.trust_level).toBeCloseTo(level, 12);
        expect(standing.capacity).toBe(capacity);
        expect(standing.discount).toBeCloseTo(discount, 12);
      }
    }),
    { numRuns: 30 },
  );
});

describe("one key", () => {
  it("has a little trust from the first moment on, enough to endorse", async () => {
    const world = await open();
    const key = await newKey(world);
    expect(await world.registry.trust.standing(key)).toEqual({
      trust_level: 0.1,
      capacity: 9,
      capacity_used: 0,
      over_capacity: false,
      discount: 1,
      may_endorse: true,
    });
    expect(await world.registry.trust.level(world.operator.fingerprint)).toBe(1);
    const unknown = await world.registry.trust.standing(keyNamed("nobody"));
    expect(unknown).toMatchObject({ trust_level: 0, may_endorse: false });
  });

  it("needs the trust that the setting says", async () => {
    const world = await open({ minTrust: 0.5 });
    const [near, far] = [await newKey(world), await newKey(world)];
    await endorse(world, world.operator.fingerprint, near);
    world.now += DAY;
    expect(await world.registry.trust.standing(near)).toMatchObject({ may_endorse: true });
    expect(await world.registry.trust.standing(far)).toMatchObject({ may_endorse: false });
  });

  it("needs no more than exactly that trust", async () => {
    for (const [minTrust, may] of [
      [0.55, true],
      [0.55 + 1e-6, false],
    ] as const) {
      const world = await open({ minTrust });
      const key = await newKey(world);
      await endorse(world, world.operator.fingerprint, key);
      world.now += DAY;
      expect(await world.registry.trust.standing(key)).toMatchObject({ trust_level: 0.55, may_endorse: may });
    }
  });

  it("may endorse only while it is active, also where no trust is needed for that", async () => {
    const world = await open({ minTrust: 0 });
    const [active, revoked, succeeded] = [await newKey(world), await newKey(world), await newKey(world)];
    const expiring = nodeSigner();
    await world.registry.keys.register(registration(expiring, "someone", at(world.now + DAY)));
    const { keyLifecycle, trust } = world.registry;
    const keys = [active, revoked, succeeded, expiring.fingerprint];
    for (const key of keys) expect(await trust.standing(key)).toMatchObject({ trust_level: 0.1, may_endorse: true });
    await keyLifecycle.revoke(revoked);
    const next = nodeSigner();
    const succession = { old_fingerprint: succeeded, new_public_key: next.pem, new_algorithm: next.algorithm };
    await keyLifecycle.succeed(succession, { recovery: false });
    world.now += DAY;
    expect(await trust.standing(active)).toMatchObject({ may_endorse: true });
    expect(await trust.standing(next.fingerprint)).toMatchObject({ may_endorse: true });
    for (const key of [revoked, succeeded, expiring.fingerprint, keyNamed("nobody")])
      expect(await trust.standing(key), key).toMatchObject({ trust_level: 0, may_endorse: false });
  });

  it("over capacity is discounted, and so is the trust that it passes on", async () => {
    const world = await open({ baseCapacity: 0 });
    const endorser = await newKey(world);
    const [one, ...others] = await Promise.all(Array.from({ length: 5 }, () => newKey(world)));
    for (const key of others) await endorse(world, endorser, key);
    expect(await world.registry.trust.standing(endorser)).toMatchObject({ capacity_used: 0 });
    world.now += DAY;
    const full = { capacity: 4, capacity_used: 4, over_capacity: false, discount: 1 };
    expect(await world.registry.trust.standing(endorser)).toMatchObject(full);
    await endorse(world, endorser, one!);
    world.now += DAY;
    const standing = await world.registry.trust.standing(endorser);
    expect(standing).toMatchObject({ capacity: 4, capacity_used: 5, over_capacity: true, discount: 0.8 });
  });
});

describe("an alert", () => {
  it("counts a key's own trust while its endorser stands by it, and no longer", async () => {
    const world = await open();
    const [endorser, endorsed] = [await newKey(world), await newKey(world)];
    const made = await endorse(world, endorser, endorsed);
    world.now += DAY;
    const alert = { endorser_fingerprint: endorser, compromised_fingerprint: endorsed, reason: "stolen" };
    await world.registry.endorsements.alert(alert);
    expect(await world.registry.trust.standing(endorsed)).toMatchObject({ trust_level: 0, may_endorse: false });
    await made.withdraw();
    expect(await world.registry.trust.level(endorsed)).toBe(0.1);
    await endorse(world, endorser, endorsed);
    world.now += DAY;
    expect(await world.registry.trust.level(endorsed)).toBe(0.1);
  });

  it("by a key that was endorsed says nothing about its endorser's trust", async () => {
    const world = await open();
    const [endorser, endorsed] = [await newKey(world), await newKey(world)];
    await endorse(world, endorser, endorsed);
    world.now += DAY;
    const alert = { endorser_fingerprint: endorsed, compromised_fingerprint: endorser, reason: "stolen" };
    await world.registry.endorsements.alert(alert);
    expect(await world.registry.trust.level(endorser)).toBe(0.1);
  });
});

describe("an evaluation that is kept", () => {
  it("ends when an endorsement in it becomes active and when one ends by its date", async () => {
    const world = await open();
    const key = await newKey(world);
    const made = new Case(world, world.operator.fingerprint, key);
    await made.offer({ valid_until: at(world.now + 3 * DAY) });
    await made.accept();
    world.now += DAY - SECOND;
    expect(await world.registry.trust.level(key)).toBe(0.1);
    const { evaluations } = world.registry.trust;
    expect(await world.registry.trust.level(key)).toBe(0.1);
    expect(world.registry.trust.evaluations).toBe(evaluations);
    world.now += SECOND;
    expect(await world.registry.trust.level(key)).toBeCloseTo(0.55, 12);
    world.now += 2 * DAY - 1;
    expect(await world.registry.trust.level(key)).toBeCloseTo(0.55, 12);
    world.now += 1;
    expect(await world.registry.trust.level(key)).toBe(0.1);
    expect(world.registry.trust.evaluations).toBe(evaluations + 2);
  });

  it("ends when the day of a date is over", async () => {
    const world = await open();
    const key = await newKey(world);
    const made = new Case(world, world.operator.fingerprint, key);
    await made.offer({ valid_until: "2025-01-03" });
    await made.accept();
    world.now = Date.parse("2025-01-03T23:59:59.999Z") * 1000 + 999;
    expect(await world.registry.trust.level(key)).toBeCloseTo(0.55, 12);
    world.now += 1;
    expect(await world.registry.trust.level(key)).toBe(0.1);
  });

  it("ends by events about its keys: withdrawal, revocation, an alert", async () => {
    const world = await open();
    const [near, far] = [await newKey(world), await newKey(world)];
    const made = await endorse(world, world.operator.fingerprint, near);
    await endorse(world, near, far);
    world.now += DAY;
    const before = await levels(world, [near, far]);
    expect(before[1]).toBeGreaterThan(0.1);
    await made.withdraw();
    expect(await levels(world, [near, far])).toEqual([0.1, 0.1]);
    await endorse(world, world.operator.fingerprint, near);
    world.now += DAY;
    expect(await levels(world, [near, far])).toEqual(before);
    await world.append({ event_type: "key_revocation", payload: { fingerprint: near } });
    expect(await levels(world, [near, far])).toEqual([0, 0.1]);
  });

  it("ends when a key in it expires", async () => {
    const world = await open();
    const near = keyNamed("near");
    await putKeys(world, [{ fingerprint: near, expires_at: at(world.now + DAY) }, { fingerprint: keyNamed("far") }]);
    await putEndorsements(world, [
      { id: 1, from: world.operator.fingerprint, to: near },
      { id: 2, from: near, to: keyNamed("far") },
    ]);
    expect((await levels(world, [keyNamed("far")]))[0]).toBeGreaterThan(0.1);
    world.now += DAY;
    expect(await levels(world, [near, keyNamed("far")])).toEqual([0, 0.1]);
  });

  it("ends when a key in it names itself, and with that says until when it holds", async () => {
    const world = await open();
    const near = nodeSigner();
    const far = await newKey(world);
    await world.registry.keys.register(registration(near));
    await endorse(world, world.operator.fingerprint, near.fingerprint);
    await endorse(world, near.fingerprint, far);
    world.now += DAY;
    expect(await world.registry.trust.level(far)).toBeGreaterThan(0.1);
    await world.registry.keys.register(heldRegistration(near, "near", at(world.now + DAY)));
    expect(await world.registry.trust.level(far)).toBeGreaterThan(0.1);
    world.now += DAY;
    expect(await levels(world, [near.fingerprint, far])).toEqual([0, 0.1]);
  });

  it("leaves no read of the log's files open, whatever became of it", async () => {
    const world = await open();
    const { trust, log } = world.registry;
    await endorse(world, world.operator.fingerprint, await newKey(world));
    await trust.level(world.operator.fingerprint);
    const failing = trust.query(function* () {
      yield;
      throw new Error("half-way");
    });
    await expect(failing).rejects.toThrow("half-way");
    for (let commits = 0; commits < 5; commits++) await newKey(world);
    expect(log.diskUsage.oldestReader).toBeLessThan(5);
  });

  it("ends when an anchor is registered", async () => {
    const world = await open({ anchors: [keyNamed("anchor")] });
    expect(await world.registry.trust.level(keyNamed("anchor"))).toBe(0);
    await putKeys(world, [{ fingerprint: keyNamed("anchor") }]);
    expect(await world.registry.trust.level(keyNamed("anchor"))).toBe(1);
  });

  it("is shared by simultaneous requests, and never older than the request", async () => {
    const world = await open();
    const key = await newKey(world);
    await endorse(world, world.operator.fingerprint, key);
    world.now += DAY;
    const { evaluations } = world.registry.trust;
    const asked = Array.from({ length: 20 }, () => world.registry.trust.level(key));
    await world.append({ event_type: "key_revocation", payload: { fingerprint: key } });
    const after = Array.from({ length: 20 }, () => world.registry.trust.level(key));
    expect(new Set(await Promise.all(after))).toEqual(new Set([0]));
    await Promise.all(asked);
    expect(world.registry.trust.evaluations).toBeLessThanOrEqual(evaluations + 2);
  });
});

describe("an evaluation that is under way", () => {
  /** Work that has begun waits for the test. */
  class HeldSlices {
    #held: (() => void)[] = [];
    isHolding = true;
    async run<T>(steps: Steps<T>): Promise<T> {
      let step = steps.next();
      if (this.isHolding) await new Promise<void>((resolve) => this.#held.push(resolve));
      while (!step.done) step = steps.next();
      return step.value;
    }
    release(): void {
      this.isHolding = false;
      for (const go of this.#held.splice(0)) go();
    }
  }

  it("has read an older graph than who asks later may be told of, time and again", async () => {
    const world = await open();
    const keys = [await newKey(world), await newKey(world), await newKey(world), await newKey(world)] as const;
    for (const [i, key] of keys.entries()) await endorse(world, keys[i - 1] ?? world.operator.fingerprint, key);
    world.now += DAY;
    const slices = new HeldSlices();
    const { log } = world.registry;
    const trust = new TrustService({
      graph: { log, operator: world.operator.fingerprint, activationDelaySeconds: DAY / SECOND },
      slices: slices as unknown as Slices,
      querySlices: slices as unknown as Slices,
      clock: () => world.now,
      settings: { anchors: [], baseCapacity: 5, minTrust: 0.1 },
    });
    // Each round ends the key before the last one that has trust by it.
    for (const [ended, far] of [
      [keys[2], keys[3]],
      [keys[1], keys[2]],
      [keys[0], keys[1]],
    ] as const) {
      // Something that calls for another evaluation.
      await endorse(world, world.operator.fingerprint, await newKey(world));
      world.now += DAY;
      slices.isHolding = true;
      const asked = trust.reaches(far);
      await world.registry.keyLifecycle.revoke(ended);
      const after = trust.reaches(far);
      slices.release();
      await asked;
      expect(await after).toBe(false);
      expect(await trust.reaches(far)).toBe(false);
    }
  });
});

it("an evaluation that is broken off, at any of its steps, leaves nothing to the next one", async () => {
  let left = Number.POSITIVE_INFINITY;
  const slices = {
    async run<T>(steps: Steps<T>): Promise<T> {
      for (;;) {
        if (left-- === 0) {
          steps.return(undefined as T);
          throw new CairnlogError("storage-failed", "broken off");
        }
        const { done, value } = steps.next();
        if (done) return value;
      }
    },
  } as Partial<Slices> as Slices;
  let isBroken = true;
  for (let steps = 0; isBroken; steps++) {
    const world = await open();
    const trust = new TrustService({
      graph: { log: world.registry.log, operator: world.operator.fingerprint, activationDelaySeconds: DAY / SECOND },
      ...{ slices, querySlices: slices, clock: () => world.now },
      settings: { anchors: [], baseCapacity: 5, minTrust: 0.1 },
    });
    const [near, far] = [await newKey(world), await newKey(world)];
    await endorse(world, world.operator.fingerprint, near);
    await endorse(world, near, far);
    world.now += DAY;
    expect(await trust.reaches(far)).toBe(true);
    await world.registry.keyLifecycle.revoke(near);
    left = steps;
    isBroken = await trust.reaches(far).then(
      () => false,
      () => true,
    );
    left = Number.POSITIVE_INFINITY;
    expect(await trust.reaches(far)).toBe(false);
  }
});

it("whom an anchor reached is known where the graph cannot be read any more, and no error of who writes", async () => {
  const world = await open();
  const key = await newKey(world);
  await endorse(world, world.operator.fingerprint, key);
  world.now += DAY;
  const { log } = world.registry;
  let isDamaged = false;
  const read = new Proxy(log, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => {
        if (isDamaged) throw new CairnlogError("corrupt-log", "An entry is damaged.");
        return value.apply(target, given);
      };
    },
  });
  const slices = new Slices({ queued: 0, batches: 0 });
  const trust = new TrustService({
    graph: { log: read, operator: world.operator.fingerprint, activationDelaySeconds: DAY / SECOND },
    ...{ slices, querySlices: slices, clock: () => world.now },
    settings: { anchors: [], baseCapacity: 5, minTrust: 0.1 },
  });
  expect(await trust.reaches(key)).toBe(true);
  isDamaged = true;
  expect(trust.isReached(key)).toBe(true);
  await expect(trust.reaches(key)).rejects.toThrow("An entry is damaged.");
});

it("a swarm that no anchor reaches gains nothing, and causes no evaluation", async () => {
  const world = await open();
  const swarm = Array.from({ length: 10_000 }, (_, i) => keyNamed(i));
  await putKeys(
    world,
    swarm.map((fingerprint) => ({ fingerprint })),
  );
  const steps = [1, 2, 97];
  await putEndorsements(
    world,
    swarm.flatMap((from, i) =>
      steps.map((step, n) => ({ id: 1 + 3 * i + n, from, to: swarm[(i + step) % swarm.length]! })),
    ),
  );
  const member = await newKey(world);
  await world.registry.trust.level(member);
  const { evaluations } = world.registry.trust;
  for (const key of swarm.slice(0, 5)) await endorse(world, member, key);
  world.now += DAY;
  expect(new Set(await levels(world, [...swarm.filter((_, i) => i % 100 === 0), member]))).toEqual(new Set([0.1]));
  expect(world.registry.trust.evaluations).toBe(evaluations);
});

describe("an evaluation after events", () => {
  /** A chain from the operator with many endorsements beside it, all of them active. */
  async function graph(): Promise<{ world: World; near: string; far: string; stranger: string }> {
    const world = await open();
    const [near, far, stranger] = [await newKey(world), await newKey(world), await newKey(world)];
    await endorse(world, world.operator.fingerprint, near);
    await endorse(world, near, far);
    world.now += DAY;
    const crowd = Array.from({ length: 500 }, (_, i) => keyNamed(`of a crowd ${i}`));
    await putKeys(
      world,
      crowd.map((fingerprint) => ({ fingerprint })),
    );
    await putEndorsements(
      world,
      crowd.map((to, i) => ({ id: 100_000 + i, from: i < 20 ? far : crowd[i % 20]!, to })),
    );
    return { world, near, far, stranger };
  }
  const read = async ({ registry: { trust } }: World, key: string) => {
    const before = trust.read;
    await trust.level(key);
    return trust.read - before;
  };

  it("reads the keys that these have changed, and no others", async () => {
    const { world, near, far, stranger } = await graph();
    expect(await read(world, far)).toBeGreaterThan(50);
    const made = await endorse(world, near, stranger);
    // The key, and its one endorsement that is active.
    expect(await read(world, far)).toBe(2);
    world.now += DAY - SECOND;
    expect(await read(world, far)).toBe(0);
    world.now += SECOND;
    // With the one that has become active; and the key that it leads to.
    expect(await read(world, far)).toBe(4);
    expect(await world.registry.trust.level(stranger)).toBeGreaterThan(0.1);
    await made.withdraw();
    expect(await read(world, far)).toBe(2);
    expect(await world.registry.trust.level(stranger)).toBe(0.1);
  });

  it("reads nothing after any number of events among keys that no anchor reaches", async () => {
    const { world, far, stranger } = await graph();
    await world.registry.trust.level(far);
    const others = await Promise.all(Array.from({ length: 3 }, () => newKey(world)));
    for (let round = 0; round < 60; round++)
      for (const [i, from] of others.entries()) {
        const made = await endorse(world, from, [...others, stranger][i + 1]!);
        await made.withdraw();
      }
    expect(await read(world, far)).toBe(0);
  });
});

describe("an event that can change nothing", () => {
  it("causes no evaluation: offers to keys within reach, and what these accept of strangers", async () => {
    const world = await open();
    const [near, far, stranger] = [await newKey(world), await newKey(world), await newKey(world)];
    await endorse(world, world.operator.fingerprint, near);
    await endorse(world, near, far);
    world.now += DAY;
    const before = await levels(world, [near, far]);
    const { evaluations } = world.registry.trust;
    for (const key of [near, far]) {
      const made = new Case(world, stranger, key);
      await made.offer();
      expect(await levels(world, [near, far])).toEqual(before);
      await made.accept();
      expect(await levels(world, [near, far])).toEqual(before);
      await made.withdraw();
      expect(await levels(world, [near, far])).toEqual(before);
    }
    // An offer by a key within reach is none either, before it is accepted.
    await new Case(world, near, stranger).offer();
    expect(await levels(world, [near, far])).toEqual(before);
    expect(world.registry.trust.evaluations).toBe(evaluations);
  });

  it("is the only kind that is left out: after any history, levels are those of an evaluation from scratch", async () => {
    const KEYS = 7;
    const step = fc.record({
      kind: fc.constantFrom("endorse", "endorse", "endorse", "offer", "withdraw", "alert", "revoke", "day"),
      from: fc.nat(KEYS - 1),
      to: fc.nat(KEYS - 1),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 25 }), async (steps) => {
        const trust = { anchors: [], baseCapacity: 1, minTrust: 0 };
        const world = await open(trust);
        const { log } = world.registry;
        const keys = [world.operator.fingerprint];
        while (keys.length < KEYS) keys.push(await newKey(world));
        const graph = { log, operator: keys[0]!, activationDelaySeconds: DAY / SECOND };
        const made: Case[] = [];
        for (const { kind, from, to } of steps) {
          const [one, other] = [keys[from]!, keys[to]!];
          // Much of this is refused: a key may have ended, or have endorsed the other before.
          try {
            if (kind === "day") world.now += DAY;
            else if (kind === "withdraw") await made[from % made.length]?.withdraw();
            else if (kind === "revoke") await world.registry.keyLifecycle.revoke(one);
            else if (kind === "alert")
              await world.registry.endorsements.alert({
                endorser_fingerprint: one,
                compromised_fingerprint: other,
                reason: "stolen",
              });
            else {
              const next = new Case(world, one, other);
              await next.offer();
              if (kind === "endorse") await next.accept();
              made.push(next);
            }
          } catch (error) {
            expect(error).toBeInstanceOf(CairnlogError);
          }
          const slices = new Slices(log);
          const scratch = new TrustService({
            graph,
            slices,
            querySlices: slices,
            clock: () => world.now,
            settings: trust,
          });
          expect(await world.registry.trust.standings(keys)).toEqual(await scratch.standings(keys));
        }
      }),
      { numRuns: 12 },
    );
  });
});
