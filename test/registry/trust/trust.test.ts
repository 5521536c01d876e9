/** The trust formula, compared with a slow implementation, and its required properties. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { capacityOf, complementOfProduct, reaches } from "#cairnlog/engine/registry/trust/trust.js";
import {
  brought as broughtBy,
  evaluated,
  levelsOf,
  type Model,
  models,
  pathsIn,
  reached,
  workedOut,
} from "./trustmodel.js";

const RUNS = { numRuns: 400 };

function expectSame(found: ReturnType<typeof evaluated>, expected: ReturnType<typeof workedOut>): void {
  expect(found.map(({ capacity }) => capacity)).toEqual(expected.map(({ capacity }) => capacity));
  for (const [key, { level, discount }] of expected.entries()) {
    expect(found[key]!.level).toBeCloseTo(level, 12);
    expect(found[key]!.discount).toBeCloseTo(discount, 12);
  }
}

describe("trust", () => {
  it("matches the formula on any graph", () => {
    fc.assert(
      fc.property(models(), (model) => expectSame(evaluated(model), workedOut(model))),
      RUNS,
    );
  });

  it("tells the best path through each gate, the best gates first", () => {
    fc.assert(
      fc.property(models(), (model) => {
        const expected = workedOut(model);
        for (const [key, paths] of pathsIn(model).entries()) {
          const isAnchor = model.anchors.includes(key);
          const shares =
            model.active[key] && !isAnchor ? [...expected[key]!.shares].filter(([, share]) => share > 0) : [];
          expect(paths).toHaveLength(Math.min(5, shares.length));
          const values = paths.map(({ factors }) => factors.reduce((product, factor) => product * factor, 1));
          expect(values).toEqual(values.toSorted((a, b) => b - a));
          const best = shares.map(([, share]) => share).sort((a, b) => b - a);
          for (const [i, { keys }] of paths.entries()) {
            expect(values[i]).toBeCloseTo(best[i]!, 12);
            expect(values[i]).toBeCloseTo(expected[key]!.shares.get(Number(keys[1]))!, 12);
            expect([model.anchors.includes(Number(keys[0])), keys.at(-1)]).toEqual([true, String(key)]);
            for (const [n, from] of keys.slice(0, -1).entries())
              expect(model.edges).toContainEqual({ from: Number(from), to: Number(keys[n + 1]), active: true });
          }
        }
      }),
      RUNS,
    );
  });

  it("matches the formula on the border of rounding", () => {
    // An anchor with 81 endorsements passes on 25/81 to each, which gives a capacity of exactly 22.
    const edges = Array.from({ length: 81 }, (_, i) => ({ from: 0, to: i + 1, active: true }));
    const model: Model = { active: Array(82).fill(true), anchors: [0], edges, alerts: [], baseCapacity: 5 };
    expect(workedOut(model)[1]!.capacity).toBe(22);
    expectSame(evaluated(model), workedOut(model));
  });

  it("takes the better of two ways of one length, and not their sum", () => {
    // Anchor 0 endorses 1, which endorses 2 and 3. Both endorse 4; 2 endorses so many others that its word is discounted.
    const others = Array.from({ length: 40 }, (_, i) => [2, 5 + i] as const);
    const pairs = [[0, 1], [1, 2], [1, 3], ...others, [2, 4], [3, 4]] as const;
    const edges = pairs.map(([from, to]) => ({ from, to, active: true }));
    const model: Model = { active: Array(45).fill(true), anchors: [0], edges, alerts: [], baseCapacity: 0 };
    const expected = workedOut(model);
    expect(expected[2]!.discount).toBeLessThan(1);
    expect(broughtBy(expected[4]!)).toBeCloseTo(1 / 8, 12);
    for (const order of [edges, edges.toReversed()]) expectSame(evaluated({ ...model, edges: order }), expected);
  });

  it("does not change by endorsements from keys that no anchor reaches", () => {
    fc.assert(
      fc.property(models(), fc.array(fc.tuple(fc.nat(8), fc.nat(8)), { maxLength: 20 }), (model, pairs) => {
        const within = reached(model, 4);
        const extra = pairs
          .filter(([from, to]) => from < model.active.length && to < model.active.length && from !== to)
          .filter(([from]) => !within.has(from))
          .map(([from, to]) => ({ from, to, active: true }));
        const more = evaluated({ ...model, edges: [...extra, ...model.edges] });
        // Only alerts by endorsers count. A key that begins to endorse could make its alert count, so such cases are
        // excluded.
        fc.pre(!extra.some(({ from, to }) => model.alerts.some(({ by, on }) => by === from && on === to)));
        expect(more.map(({ level }) => level)).toEqual(evaluated(model).map(({ level }) => level));
      }),
      RUNS,
    );
  });

  it("does not rise for anybody when an endorsement goes, while nobody is over capacity", () => {
    fc.assert(
      fc.property(models({ spare: true }), fc.nat(), (model, pick) => {
        fc.pre(model.edges.length > 0);
        const gone = model.edges[pick % model.edges.length]!;
        // A key that no longer endorses cannot warn any more. That may raise a level that its alert had lowered.
        fc.pre(!model.alerts.some(({ by, on }) => by === gone.from && on === gone.to));
        const less = evaluated({ ...model, edges: model.edges.filter((edge) => edge !== gone) });
        for (const [key, { level }] of evaluated(model).entries()) expect(less[key]!.level).toBeLessThanOrEqual(level);
      }),
      RUNS,
    );
  });

  it("is the same to the last bit in whatever order endorsements come, and whatever keys are called but for rounding", () => {
    fc.assert(
      fc.property(models(), fc.infiniteStream(fc.nat()), (model, random) => {
        const rank = () => random.next().value as number;
        const names = model.active.map((_, key) => ({ key, rank: rank() }));
        names.sort((a, b) => a.rank - b.rank || a.key - b.key);
        const name = (key: number) => `key ${names.findIndex((one) => one.key === key)}`;
        const ranks = new Map(model.edges.map((edge) => [edge, rank()]));
        const shuffle = (edges: Model["edges"]) => edges.toSorted((a, b) => ranks.get(a)! - ranks.get(b)!);
        const reversed = { ...model, anchors: model.anchors.toReversed() };
        expect(evaluated(reversed, String, shuffle)).toEqual(evaluated(model));
        for (const [key, trusted] of evaluated(reversed, name, shuffle).entries()) {
          expect(trusted.level).toBeCloseTo(evaluated(model)[key]!.level, 12);
          expect(trusted.capacity).toBe(evaluated(model)[key]!.capacity);
        }
      }),
      RUNS,
    );
  });

  it("is after any changes what it is from nothing, to the last bit", () => {
    const history = models().chain((first) => {
      const key = fc.nat(first.active.length - 1);
      const change = fc.record({
        kind: fc.constantFrom("edge", "edge", "edge", "active", "alert"),
        from: key,
        to: key,
      });
      return fc.record({ first: fc.constant(first), changes: fc.array(change, { maxLength: 12 }) });
    });
    fc.assert(
      fc.property(history, ({ first, changes }) => {
        let model = first;
        const levels = levelsOf(model);
        expect(evaluated(model, String, undefined, levels)).toEqual(evaluated(model));
        for (const { kind, from, to } of changes) {
          const changed = [from];
          const toggled = <T>(list: readonly T[], is: (one: T) => boolean, other: T) =>
            list.some(is) ? list.filter((one) => !is(one)) : [...list, other];
          const { edges, alerts, active } = model;
          if (kind === "active") {
            model = { ...model, active: active.map((is, i) => (i === from ? !is : is)) };
            // Their alerts count while it is active.
            changed.push(...alerts.filter(({ by }) => by === from).map(({ on }) => on));
          } else if (kind === "alert") {
            model = {
              ...model,
              alerts: toggled(alerts, (one) => one.by === from && one.on === to, { by: from, on: to }),
            };
            changed.push(to);
          } else if (from !== to) {
            const isOne = (one: (typeof edges)[number]) => one.from === from && one.to === to;
            model = { ...model, edges: toggled(edges, isOne, { from, to, active: true }) };
            changed.push(to);
          }
          expect(evaluated(model, String, undefined, levels, changed)).toEqual(evaluated(model));
        }
      }),
      RUNS,
    );
  });

  it("goes no further than four hops", () => {
    const edges = Array.from({ length: 6 }, (_, i) => ({ from: i, to: i + 1, active: true }));
    const model: Model = { active: Array(7).fill(true), anchors: [0], edges, alerts: [], baseCapacity: 5 };
    const levels = evaluated(model).map(({ level }) => level);
    expect(levels[4]).toBeCloseTo(0.1 + 0.9 / 16, 12);
    expect(levels.slice(5)).toEqual([0.1, 0.1]);
  });

  it("counts once what comes through one gate: by two categories, two paths or a circle", () => {
    const level = (edges: [number, number][], key: number) => {
      const all = edges.map(([from, to]) => ({ from, to, active: true }));
      const model: Model = { active: Array(6).fill(true), anchors: [0], edges: all, alerts: [], baseCapacity: 5 };
      expectSame(evaluated(model), workedOut(model));
      return evaluated(model)[key]!.level;
    };
    expect(
      level(
        [
          [0, 1],
          [0, 1],
        ],
        1,
      ),
    ).toBeCloseTo(0.1 + 0.9 * 0.5, 12);
    expect(
      level(
        [
          [0, 1],
          [1, 2],
          [1, 3],
          [2, 4],
          [3, 4],
        ],
        4,
      ),
    ).toBeCloseTo(0.1 + 0.9 * 0.125, 12);
    expect(
      level(
        [
          [0, 1],
          [1, 2],
          [2, 1],
          [1, 3],
          [3, 1],
        ],
        1,
      ),
    ).toBeCloseTo(0.1 + 0.9 * 0.5, 12);
    // A path back through the anchor adds nothing either: it would lead through everybody that the anchor endorses.
    expect(
      level(
        [
          [0, 1],
          [0, 2],
          [1, 0],
          [2, 0],
        ],
        1,
      ),
    ).toBeCloseTo(0.1 + 0.9 * 0.5, 12);
    expect(
      level(
        [
          [0, 1],
          [0, 2],
          [1, 3],
          [2, 3],
        ],
        3,
      ),
    ).toBeCloseTo(0.1 + 0.9 * (1 - 0.75 ** 2), 12);
  });

  it("does not rise for an endorsed key by thirty keys of its own", () => {
    const own = Array.from({ length: 29 }, (_, i) => i + 2);
    const edges = [
      [0, 1],
      ...own.flatMap((key) => [
        [1, key],
        [key, 1],
      ]),
    ].map(([from, to]) => ({
      from: from!,
      to: to!,
      active: true,
    }));
    const model: Model = { active: Array(31).fill(true), anchors: [0], edges, alerts: [], baseCapacity: 5 };
    expect(evaluated(model)[1]!.level).toBeCloseTo(0.55, 12);
  });
});

interface Coalition extends Pick<Model, "baseCapacity"> {
  readonly honest: number;
  readonly gates: readonly number[];
  readonly size: number;
  readonly among: Model["edges"];
  readonly theirs: Model["edges"];
}

describe("a coalition of keys that an anchor endorses", () => {
  /**
   * An honest graph (key 0 is its anchor), the coalition's `gates`, which the anchor endorses, and any number of
   * further keys of the coalition. No honest key except the anchor endorses one of the coalition. The coalition may
   * endorse any key.
   */
  const coalitions = ({ endorsesOthers }: { readonly endorsesOthers: boolean }): fc.Arbitrary<Coalition> =>
    fc
      .record({
        honest: fc.integer({ min: 2, max: 5 }),
        gates: fc.integer({ min: 1, max: 3 }),
        made: fc.integer({ min: 1, max: 4 }),
      })
      .chain(({ honest, gates, made }) => {
        const members = Array.from({ length: gates + made }, (_, i) => honest + i);
        const one = fc.nat(honest - 1);
        const member = fc.constantFrom(...members);
        const target = endorsesOthers ? fc.nat(honest + members.length - 1) : member;
        const links = (from: fc.Arbitrary<number>, to: fc.Arbitrary<number>, maxLength: number) =>
          fc.array(
            fc
              .tuple(from, to)
              .filter(([a, b]) => a !== b)
              .map(([a, b]) => ({ from: a, to: b, active: true })),
            { maxLength },
          );
        return fc.record({
          honest: fc.constant(honest),
          gates: fc.constant(members.slice(0, gates)),
          size: fc.constant(honest + members.length),
          among: links(one, one, 12),
          theirs: links(member, target, 24),
          baseCapacity: fc.constantFrom(0, 2, 1000),
        });
      });

  const modelOf = ({ size, gates, among, theirs, baseCapacity }: Coalition, isThere = true): Model => {
    const joining = gates.map((to) => ({ from: 0, to, active: true }));
    const edges = [...among, ...joining, ...(isThere ? theirs : [])];
    return { active: Array(size).fill(true), anchors: [0], edges, alerts: [], baseCapacity };
  };
  /** p* by honest gates alone. */
  const byHonest = (shares: ReadonlyMap<number, number>, gates: readonly number[]) =>
    1 - [...shares].reduce((rest, [gate, share]) => (gates.includes(gate) ? rest : rest * (1 - share)), 1);

  it("raises nobody but its own keys while it endorses nobody else, whatever it does", () => {
    fc.assert(
      fc.property(coalitions({ endorsesOthers: false }), (coalition) => {
        const [before, after] = [evaluated(modelOf(coalition, false)), evaluated(modelOf(coalition))];
        expect(after.slice(0, coalition.honest)).toEqual(before.slice(0, coalition.honest));
      }),
      RUNS,
    );
  });

  it("never raises what honest gates give, but for discounts that it can only take back", () => {
    fc.assert(
      fc.property(coalitions({ endorsesOthers: true }), (coalition) => {
        const spare = { ...coalition, baseCapacity: 1000 };
        const full = workedOut(modelOf(spare, false)).map(({ shares }) => byHonest(shares, coalition.gates));
        const given = workedOut(modelOf(coalition)).map(({ shares }) => byHonest(shares, coalition.gates));
        for (const [key, p] of given.entries()) expect(p).toBeLessThanOrEqual(full[key]! + 1e-12);
        const undiscounted = workedOut(modelOf(spare)).map(({ shares }) => byHonest(shares, coalition.gates));
        for (const [key, p] of undiscounted.entries()) expect(p).toBeCloseTo(full[key]!, 12);
      }),
      { numRuns: 150 },
    );
  });

  it("of m keys brings nobody further than docs/trust.md says", () => {
    fc.assert(
      fc.property(coalitions({ endorsesOthers: true }), (coalition) => {
        const { gates, honest } = coalition;
        const spare = { ...coalition, baseCapacity: 1000 };
        const full = workedOut(modelOf(spare, false)).map(({ shares }) => byHonest(shares, gates));
        for (const [key, trusted] of evaluated(modelOf(coalition)).entries()) {
          if (key === 0) continue;
          const isGate = gates.includes(key);
          const most = isGate ? 0.5 * 0.75 ** (gates.length - 1) : 0.75 ** gates.length;
          const p = broughtBy(trusted);
          expect(p).toBeLessThanOrEqual(1 - (1 - full[key]!) * most + 1e-9);
          if (key >= honest) expect(p).toBeLessThanOrEqual(1 - most + 1e-9);
        }
      }),
      RUNS,
    );
  });

  it("of m keys gets there, by endorsing one another and nobody beside", () => {
    for (const m of [1, 2, 5]) {
      const gates = Array.from({ length: m }, (_, i) => i + 1);
      const edges = [0, ...gates].flatMap((from) => [...gates, m + 1].map((to) => ({ from, to, active: true })));
      const all = edges.filter(({ from, to }) => from !== to && !(from === 0 && to === m + 1));
      const model: Model = { active: Array(m + 2).fill(true), anchors: [0], edges: all, alerts: [], baseCapacity: 5 };
      const trusted = evaluated(model);
      expect(broughtBy(trusted[1]!)).toBeCloseTo(1 - 0.5 * 0.75 ** (m - 1), 12);
      expect(broughtBy(trusted[m + 1]!)).toBeCloseTo(1 - 0.75 ** m, 12);
    }
  });
});

it("a key without endorsements has exactly its own trust", () => {
  expect(capacityOf(0.1, 0, 0, 5)).toEqual({ level: 0.1, capacity: 9, discount: 1 });
  expect(capacityOf(0.1, 1, 51, 5)).toEqual({ level: 1, capacity: 50, discount: 50 / 51 });
  expect(capacityOf(0, 0, 3, 0)).toEqual({ level: 0, capacity: 0, discount: 0 });
});

describe("a level on the border of rounding", () => {
  /** Levels that give whole numbers of endorsements beyond the base capacity, which is 5. */
  const whole = Array.from({ length: 46 }, (_, beyond) => ({ beyond, level: beyond / 45 }));
  /** The trust from endorsements that brings a key with `own` trust to `level`. */
  const brought = (level: number, own: number) => (level - own) / (1 - own);
  const cases = [0, 0.1].flatMap((own) =>
    whole.filter(({ level }) => level >= own).map(({ beyond, level }) => ({ own, beyond, level })),
  );

  it.each(cases)("allows $beyond endorsements beyond the base at $level, where $own is its own", (one) => {
    const { own, beyond, level } = one;
    expect(capacityOf(own, brought(level, own), 0, 5).capacity).toBe(5 + beyond);
    expect(capacityOf(own, brought(Math.max(own, level - 1e-15), own), 0, 5).capacity).toBe(5 + beyond);
    if (level - 1e-6 >= own) expect(capacityOf(own, brought(level - 1e-6, own), 0, 5).capacity).toBe(4 + beyond);
  });

  it("is not discounted at its capacity, and is with one endorsement more", () => {
    expect(capacityOf(0.1, brought(0.2, 0.1), 14, 5)).toMatchObject({ capacity: 14, discount: 1 });
    expect(capacityOf(0.1, brought(0.2, 0.1), 15, 5)).toMatchObject({ capacity: 14, discount: 14 / 15 });
  });

  it.each([
    [0.1, 0.1, true],
    [0.3, 0.1 + 0.2, true],
    [1 - 0.9, 0.1, true],
    [0.55 - 1e-12, 0.55, true],
    [0.55 - 1e-6, 0.55, false],
    [0.55 + 1e-6, 0.55, true],
    [0, 0, true],
    [0, 1e-6, false],
  ])("%d reaches %d: %s", (value, limit, expected) => {
    expect(reaches(value, limit)).toBe(expected);
  });
});

it("a product is the same in any order", () => {
  const factor = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(fc.array(factor), (factors) => {
      expect(complementOfProduct(factors.toReversed())).toBe(complementOfProduct(factors));
    }),
  );
});
