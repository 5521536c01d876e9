/** Random histories of endorsements, compared with a small model without rows, edges or batches. */
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { at, closeWorlds, DAY, failure, openWorld, type World } from "../world.js";
import { Case, entryOf, HUMAN, INSTITUTIONAL, newKey, offerOf } from "./endorsementcase.js";

afterAll(closeWorlds);

const KEYS = 4;

interface Offered {
  readonly id: number;
  readonly from: number;
  readonly to: number;
  readonly category: string;
  readonly until: number;
  acceptedAt: number | null;
  ended: "withdrawn" | "acceptance_revoked" | null;
}
interface Alert {
  readonly id: number;
  readonly by: number;
  readonly about: number;
}

type Step =
  | { readonly do: "offer"; readonly from: number; readonly to: number; readonly human: boolean; readonly days: number }
  | { readonly do: "accept" | "withdraw" | "revoke"; readonly which: number; readonly by: number }
  | { readonly do: "alert"; readonly by: number; readonly about: number }
  | { readonly do: "end"; readonly key: number }
  | { readonly do: "wait"; readonly halfDays: number }
  | { readonly do: "reopen" };

const key = fc.nat(KEYS - 1);
const change = fc.constantFrom<"accept" | "withdraw" | "revoke">("accept", "accept", "accept", "withdraw", "revoke");
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("offer" as const),
      from: key,
      to: key,
      human: fc.boolean(),
      days: fc.integer({ min: 0, max: 12 }),
    }),
  },
  // Mostly by the right key: 0 is the endorser, 1 the endorsed key, more is any key.
  {
    weight: 16,
    arbitrary: fc.record({ do: change, which: fc.nat(99), by: fc.constantFrom(0, 1, 1, 0, 1, 1, 2, 3, 4, 5) }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("alert" as const), by: key, about: key }) },
  // Only one key ever ends: a history in which all keys end tests little.
  { weight: 1, arbitrary: fc.record({ do: fc.constant("end" as const), key: fc.constant(KEYS - 1) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("wait" as const), halfDays: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reopen" as const) }) },
);

class Model {
  readonly offers: Offered[] = [];
  readonly alerts: Alert[] = [];
  readonly ended = new Set<number>();
  now: number;

  constructor(now: number) {
    this.now = now;
  }

  status({ ended, until, acceptedAt }: Offered): string {
    if (ended) return ended;
    if (until <= this.now) return "expired";
    if (acceptedAt === null) return "offered";
    return acceptedAt + DAY <= this.now ? "active" : "pending_activation";
  }

  isLive(offer: Offered): boolean {
    return ["offered", "pending_activation", "active"].includes(this.status(offer));
  }

  /**
   * Without anchors, a key has exactly the minimum trust to endorse, and none while an active endorser has an alert on
   * it.
   */
  mayEndorse(who: number): boolean {
    return !this.alerts.some(
      ({ id, by, about }) =>
        about === who &&
        !this.ended.has(by) &&
        this.offers.some((one) => one.from === by && one.to === who && one.id < id && this.status(one) === "active"),
    );
  }

  refusesOffer(from: number, to: number, category: string, until: number): string | null {
    if (from === to) return "invalid-input";
    if (this.ended.has(from) || this.ended.has(to)) return "key-not-active";
    if (!this.mayEndorse(from)) return "forbidden";
    if (until <= this.now) return "invalid-input";
    const isSame = (one: Offered) => one.from === from && one.to === to && one.category === category;
    return this.offers.some((one) => isSame(one) && this.isLive(one)) ? "already-exists" : null;
  }

  refusesChange(what: "accept" | "withdraw" | "revoke", offer: Offered, by: number): string | null {
    if (by !== (what === "withdraw" ? offer.from : offer.to)) return "forbidden";
    if (this.ended.has(by) || (what === "accept" && this.ended.has(offer.from))) return "key-not-active";
    const status = this.status(offer);
    const isRight =
      what === "accept" ? status === "offered" : this.isLive(offer) && (what === "withdraw" || status !== "offered");
    return isRight ? null : "precondition-failed";
  }

  refusesAlert(by: number, about: number): string | null {
    if (this.ended.has(by)) return "key-not-active";
    const joins = (one: Offered, a: number, b: number) => one.from === a && one.to === b && one.acceptedAt !== null;
    return this.offers.some((one) => joins(one, by, about) || joins(one, about, by)) ? null : "forbidden";
  }
}

/** Runs `action`, which must be refused if the model says so. */
async function outcome<T>(refusal: string | null, action: () => Promise<T>): Promise<T | undefined> {
  if (refusal === null) return action();
  expect((await failure(action)).code).toBe(refusal);
  return undefined;
}

async function run(world: World, model: Model, keys: readonly string[], next: Step): Promise<void> {
  const { endorsements, keyLifecycle } = world.registry;
  switch (next.do) {
    case "offer": {
      const { from, to } = next;
      const category = next.human ? HUMAN : INSTITUTIONAL;
      const until = model.now + next.days * DAY;
      const offer = offerOf(keys[from]!, keys[to]!, { category, valid_until: at(until) });
      const made = await outcome(model.refusesOffer(from, to, category, until), () => endorsements.offer(offer));
      if (made) model.offers.push({ id: entryOf(made).id, from, to, category, until, acceptedAt: null, ended: null });
      return;
    }
    case "accept":
    case "withdraw":
    case "revoke": {
      const offer = model.offers[next.which % model.offers.length];
      if (!offer) return;
      const by = [offer.from, offer.to][next.by] ?? next.by - 2;
      if (by >= KEYS) return;
      const one = new Case(world, keys[offer.from]!, keys[offer.to]!);
      one.id = offer.id;
      if (!(await outcome(model.refusesChange(next.do, offer, by), () => one[next.do](keys[by]!)))) return;
      if (next.do === "accept") offer.acceptedAt = model.now;
      else offer.ended = next.do === "withdraw" ? "withdrawn" : "acceptance_revoked";
      return;
    }
    case "alert": {
      const { by, about } = next;
      const alert = { endorser_fingerprint: keys[by]!, compromised_fingerprint: keys[about]!, reason: "r" };
      const made = await outcome(model.refusesAlert(by, about), () => endorsements.alert(alert));
      if (made) model.alerts.push({ id: entryOf(made).id, by, about });
      return;
    }
    case "end":
      if (model.ended.has(next.key)) return;
      model.ended.add(next.key);
      await keyLifecycle.revoke(keys[next.key]!);
      return;
    case "wait":
      world.now += (next.halfDays * DAY) / 2;
      model.now = world.now;
      return;
    case "reopen":
      return world.reopen();
  }
}

async function expectSame(world: World, model: Model, keys: readonly string[]): Promise<void> {
  const { endorsementQueries: queries } = world.registry;
  for (const [index, fingerprint] of keys.entries()) {
    const told = async (list: ReturnType<typeof queries.received>) =>
      (await list).endorsements.map((one) => [one.offer_entry_id, one.category, one.status]);
    const expected = (offers: readonly Offered[]) => offers.map((one) => [one.id, one.category, model.status(one)]);
    expect(await told(queries.received(fingerprint))).toEqual(expected(model.offers.filter(({ to }) => to === index)));
    expect(await told(queries.issued(fingerprint))).toEqual(
      expected(model.offers.filter(({ from }) => from === index)),
    );
    const { alerts } = await queries.alerts(fingerprint);
    const about = model.alerts.filter((alert) => alert.about === index);
    expect(alerts.map(({ alert_entry_id }) => alert_entry_id)).toEqual(about.map(({ id }) => id));
  }
}

it("any history gives the state of the model, and its entries alone give the same rows", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 100, size: "max" }), async (steps) => {
      const world = await openWorld();
      const keys: string[] = [];
      for (let i = 0; i < KEYS; i++) keys.push(await newKey(world));
      const model = new Model(world.now);
      for (const next of steps) await run(world, model, keys, next);
      await expectSame(world, model, keys);
      expect(world.registry.log.stateDifferences()).toEqual([]);
      await world.reopen();
      await expectSame(world, model, keys);
      expect(world.registry.log.stateDifferences()).toEqual([]);
      await world.registry.close();
    }),
    { numRuns: 40 },
  );
});
