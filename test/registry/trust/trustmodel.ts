/**
 * Random endorsement graphs, and trust computed on them by a slow method: over all keys and all endorsements, in exact
 * fractions, without the code under test.
 */
import fc from "fast-check";
import type { Steps } from "#cairnlog/engine/base/turns.js";
import { TrustLevels } from "#cairnlog/engine/registry/trust/levels.js";
import { type GatePath, pathsTo } from "#cairnlog/engine/registry/trust/paths.js";
import { capacityOf, ownTrust, type TrustView } from "#cairnlog/engine/registry/trust/trust.js";

/** Keys are numbers here; `from` and `to` index `active`. */
export interface Model {
  /** Whether each key is active. */
  readonly active: readonly boolean[];
  readonly anchors: readonly number[];
  /** Endorsements; only the active ones count. */
  readonly edges: readonly { readonly from: number; readonly to: number; readonly active: boolean }[];
  /** Live alerts. */
  readonly alerts: readonly { readonly by: number; readonly on: number }[];
  readonly baseCapacity: number;
}

export interface Trusted {
  readonly level: number;
  readonly capacity: number;
  readonly discount: number;
}

/** p* of a level: the trust from endorsements, without the own trust of an active key. */
export const brought = ({ level }: Pick<Trusted, "level">, own = 0.1): number => (level - own) / (1 - own);

/** Random models. With `spare`, every key has enough capacity, so that no endorsement is discounted. */
export function models({ spare = false }: { readonly spare?: boolean } = {}): fc.Arbitrary<Model> {
  return fc.integer({ min: 2, max: 9 }).chain((count) => {
    const key = fc.nat(count - 1);
    const often = fc.integer({ min: 0, max: 9 }).map((roll) => roll > 0);
    const pair = fc.tuple(key, key).filter(([from, to]) => from !== to);
    return fc.record({
      active: fc.array(often, { minLength: count, maxLength: count }),
      anchors: fc.uniqueArray(key, { minLength: 1, maxLength: 3 }),
      edges: fc.array(
        fc.tuple(pair, often).map(([[from, to], active]) => ({ from, to, active })),
        { maxLength: 4 * count },
      ),
      alerts: fc.array(
        pair.map(([by, on]) => ({ by, on })),
        { maxLength: 3 },
      ),
      baseCapacity: spare ? fc.constant(1000) : fc.integer({ min: 0, max: 3 }),
    });
  });
}

/** Runs steps to their end at once. */
export function complete<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** A view of a model, with names of keys by `name` and the order of endorsements by `order`. */
function viewOf(
  model: Model,
  name: (key: number) => string,
  order: (edges: Model["edges"]) => Model["edges"],
): TrustView {
  const numbers = new Map(model.active.map((_, key) => [name(key), key]));
  return {
    now: 0,
    *endorser(fingerprint) {
      yield;
      const key = numbers.get(fingerprint)!;
      const isActive = model.active[key]!;
      const issued = order(model.edges).filter(({ from, active }) => from === key && active);
      const alerts = model.alerts.filter(({ on }) => on === key);
      return {
        isActive,
        isAlerted: isActive && isAlerted(model, key),
        hasAlerts: alerts.length > 0,
        issued: isActive ? issued.map(({ to }) => name(to)) : [],
        others: alerts.map(({ by }) => name(by)),
        unnamed: [],
        until: Number.POSITIVE_INFINITY,
      };
    },
  };
}

/** Trust by the code under test. @param levels those of another model, of which the keys `changed` were different */
export function evaluated(
  model: Model,
  name: (key: number) => string = String,
  order: (edges: Model["edges"]) => Model["edges"] = (edges) => edges,
  levels = levelsOf(model, name),
  changed: readonly number[] = [],
): Trusted[] {
  const trust = complete(levels.evaluate(viewOf(model, name, order), changed.map(name)));
  return model.active.map((active, key) => {
    const own = ownTrust(active, active && isAlerted(model, key));
    const used = model.edges.filter((edge) => edge.from === key && edge.active).length;
    return capacityOf(own, active ? trust.of(name(key)) : 0, used, model.baseCapacity);
  });
}

/** The paths to each key by the code under test. */
export function pathsIn(model: Model): (readonly GatePath[])[] {
  const trust = complete(
    levelsOf(model).evaluate(
      viewOf(model, String, (edges) => edges),
      [],
    ),
  );
  const view: Parameters<typeof pathsTo>[0] = {
    accepted: (key) =>
      model.edges
        .filter(({ to }) => String(to) === key)
        .map(({ from, active }) => ({ other_fingerprint: String(from), status: active ? "active" : "expired" })),
  };
  const anchors = new Set(model.anchors.map(String));
  return model.active.map((_, key) => [...complete(pathsTo(view, trust, anchors, String(key)))]);
}

/** Levels without an evaluation. */
export const levelsOf = (model: Model, name: (key: number) => string = String): TrustLevels =>
  new TrustLevels({ anchors: model.anchors.map(name), baseCapacity: model.baseCapacity });

const isAlerted = ({ alerts, edges, active }: Model, key: number): boolean =>
  alerts.some(
    ({ by, on }) =>
      on === key && active[by]! && edges.some((edge) => edge.from === by && edge.to === key && edge.active),
  );

class Fraction {
  readonly top: bigint;
  readonly bottom: bigint;
  constructor(top: bigint, bottom: bigint) {
    let [a, b] = [top < 0n ? -top : top, bottom];
    while (b) [a, b] = [b, a % b];
    this.top = top / (a || 1n);
    this.bottom = bottom / (a || 1n);
  }
  times({ top, bottom }: Fraction) {
    return new Fraction(this.top * top, this.bottom * bottom);
  }
  plus({ top, bottom }: Fraction) {
    return new Fraction(this.top * bottom + top * this.bottom, this.bottom * bottom);
  }
  fromOne() {
    return new Fraction(this.bottom - this.top, this.bottom);
  }
  floor() {
    return this.top / this.bottom;
  }
  /** To 15 digits. */
  number() {
    return Number((this.top * 10n ** 15n) / this.bottom) / 1e15;
  }
}
const NONE = new Fraction(0n, 1n);
const ALL = new Fraction(1n, 1n);
const HALF = new Fraction(1n, 2n);

/** Trust by the literal formula (docs/spec §9.3), with the share of each gate. */
export function workedOut(model: Model): (Trusted & { readonly shares: ReadonlyMap<number, number> })[] {
  const keys = [...model.active.keys()];
  const edges = model.edges.filter(({ active }) => active);
  const isAnchor = (key: number) => model.anchors.includes(key) && model.active[key]!;
  const b = keys.map((key) => (model.active[key] && !isAlerted(model, key) ? new Fraction(1n, 10n) : NONE));
  const used = keys.map((key) => BigInt(edges.filter(({ from }) => from === key).length));
  const endorsed = keys.map((key) => [...new Set(edges.filter(({ from }) => from === key).map(({ to }) => to))]);

  /** For each key and gate, the largest product over all paths. Every path is walked to its end. */
  const throughGates = (discounts: readonly Fraction[]) => {
    const passed = discounts.map((discount) => HALF.times(discount));
    const rough = passed.map((part) => part.number());
    const best = keys.map(() => new Map<number, { readonly value: number; readonly path: readonly number[] }>());
    const walk = (path: readonly number[], value: number): void => {
      const last = path.at(-1)!;
      const gate = path[1];
      if (gate !== undefined && value > (best[last]!.get(gate)?.value ?? 0)) best[last]!.set(gate, { value, path });
      if (path.length > 4) return;
      for (const next of endorsed[last]!)
        if (model.active[next] && !path.includes(next)) walk([...path, next], value * rough[last]!);
    };
    for (const anchor of keys.filter(isAnchor)) walk([anchor], 1);
    // Exact for the result. The choice of the best path is clear in floating point, or does not matter.
    const exact = (path: readonly number[]) =>
      path.slice(0, -1).reduce((product, endorser) => product.times(passed[endorser]!), ALL);
    return best.map((paths) => new Map([...paths].map(([gate, { path }]) => [gate, exact(path)])));
  };

  let discounts = keys.map(() => ALL);
  for (let round = 1; ; round++) {
    const shares = throughGates(discounts);
    const rated = keys.map((key) => {
      const given = [...shares[key]!.values()].reduce((rest, share) => rest.times(share.fromOne()), ALL);
      const p = isAnchor(key) ? ALL : given.fromOne();
      const level = b[key]!.fromOne().times(p.fromOne()).fromOne();
      const capacity = new Fraction(BigInt(model.baseCapacity), 1n).plus(level.times(new Fraction(45n, 1n))).floor();
      const discount = used[key]! > capacity ? new Fraction(capacity, used[key]!) : ALL;
      return { level, capacity, discount };
    });
    discounts = rated.map(({ discount }) => discount);
    if (round === 4)
      return rated.map(({ level, capacity, discount }, key) => ({
        level: level.number(),
        capacity: Number(capacity),
        discount: discount.number(),
        shares: new Map([...shares[key]!].map(([gate, share]) => [gate, share.number()])),
      }));
  }
}

/** Keys that trust from an anchor can reach in `hops`. */
export function reached(model: Model, hops: number): Set<number> {
  let found = new Set(model.anchors.filter((key) => model.active[key]));
  for (let hop = 0; hop < hops; hop++) {
    const next = model.edges.filter(({ from, to, active }) => active && found.has(from) && model.active[to]);
    found = new Set([...found, ...next.map(({ to }) => to)]);
  }
  return found;
}
