/** The trust formula, compared with a slow implementation, and its required properties. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { capacityOf, complementOfProduct, reaches } from "#cairnlog/engine/registry/trust/trust.js";
import { evaluated, type Model, models, reached, workedOut } from "./trustmodel.js";

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

  it("matches the formula on the border of rounding", () => {
    // An anchor with 81 endorsements passes on 25/81 to each, which gives a capacity of exactly 22.
    const edges = Array.from({ length: 81 }, (_, i) => ({ from: 0, to: i + 1, active: true }));
    const model: Model = { active: Array(82).fill(true), anchors: [0], edges, alerts: [], baseCapacity: 5 };
    expect(workedOut(model)[1]!.capacity).toBe(22);
    expectSame(evaluated(model), workedOut(model));
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
        // Alerts count from endorsers only: one by a key that begins to endorse is another matter.
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
        // Who endorses no more can warn no more; that may raise what the warning had lowered.
        fc.pre(!model.alerts.some(({ by, on }) => by === gone.from && on === gone.to));
        const less = evaluated({ ...model, edges: model.edges.filter((edge) => edge !== gone) });
        for (const [key, { level }] of evaluated(model).entries()) expect(less[key]!.level).toBeLessThanOrEqual(level);
      }),
      RUNS,
    );
  });

  it("is the same to the last bit for all names of keys and every order of endorsements", () => {
    fc.assert(
      fc.property(models(), fc.infiniteStream(fc.nat()), (model, random) => {
        const rank = () => random.next().value as number;
        const names = model.active.map((_, key) => ({ key, rank: rank() }));
        names.sort((a, b) => a.rank - b.rank || a.key - b.key);
        const name = (key: number) => `key ${names.findIndex((one) => one.key === key)}`;
        const ranks = new Map(model.edges.map((edge) => [edge, rank()]));
        const shuffled = evaluated({ ...model, anchors: model.anchors.toReversed() }, name, (edges) =>
          edges.toSorted((a, b) => ranks.get(a)! - ranks.get(b)!),
        );
        expect(shuffled).toEqual(evaluated(model));
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

  it("counts an endorsement in each category", () => {
    const edges = [0, 0].map(() => ({ from: 0, to: 1, active: true }));
    const model: Model = { active: [true, true], anchors: [0], edges, alerts: [], baseCapacity: 5 };
    expect(evaluated(model)[1]!.level).toBeCloseTo(0.1 + 0.9 * 0.75, 12);
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
  /** What endorsements must bring a key that has `own` of itself to be at `level`. */
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
