/** The numbers and the picture in `docs/trust.md`. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type ScoreView, scoreSigners } from "#cairnlog/engine/registry/trust/score.js";
import { HUMAN } from "../endorsements/endorsementcase.js";
import { complete, evaluated, type Model, workedOut } from "./trustmodel.js";

const read = (name: string) => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), "utf8");

/** The tables of the page whose first column is `head`, as rows of numbers by name. */
const tables = (head: string): Map<string, number[]>[] =>
  read("trust.md")
    .split(new RegExp(`^\\| ${head} .*\\n\\|[ -].*\\n`, "m"))
    .slice(1)
    .map((text) => {
      const rows = text.split("\n\n")[0]!.trim().split("\n");
      const cells = rows.map((row) =>
        row
          .replace(/^\||\|$/g, "")
          .split("|")
          .map((cell) => cell.trim()),
      );
      return new Map(cells.map(([name, ...numbers]) => [name!, numbers.map(Number)]));
    });

const NAMES = ["Anchor", "Ada", "Ben", "Cleo", "Dan", "Mal", "Max", "Moe"];
const ENDORSEMENTS = "Anchor>Ada Anchor>Ben Ada>Cleo Ben>Cleo Cleo>Dan Mal>Max Max>Moe Moe>Mal Mal>Dan Max>Dan Moe>Dan";
const edges = ENDORSEMENTS.split(" ").map((text) => {
  const [from, to] = text.split(">").map((name) => NAMES.indexOf(name));
  return { from: from!, to: to!, active: true };
});
const example: Model = { active: NAMES.map(() => true), anchors: [0], edges, alerts: [], baseCapacity: 5 };
const others = Array.from({ length: 57 }, (_, i) => NAMES.length + i);
const busy: Model = {
  ...example,
  active: [...example.active, ...others.map(() => true)],
  edges: [...edges, ...others.map((to) => ({ from: NAMES.indexOf("Ada"), to, active: true }))],
};

test("levels and capacities are those of the formula", () => {
  const found = tables("key");
  expect(found.map(({ size }) => size)).toEqual([6, 3]);
  for (const [i, model] of [example, busy].entries())
    for (const [name, [p, level, capacity]] of found[i]!) {
      for (const trusted of [evaluated(model), workedOut(model)]) {
        const key = trusted[NAMES.indexOf(name)]!;
        expect(key.level, name).toBeCloseTo(level!, 12);
        expect(key.capacity, name).toBe(capacity);
      }
      expect(1 - (1 - 0.1) * (1 - p!), name).toBeCloseTo(level!, 12);
    }
});

test("the picture shows the same", () => {
  const shown = new Map(
    [...read("trust.svg").matchAll(/>(\w+)<\/text><text[^>]*>(?:p = )?([\d.]+)</g)].map(([, name, p]) => [
      name,
      Number(p),
    ]),
  );
  const [page] = tables("key");
  for (const name of NAMES) expect(shown.get(name), name).toBe((page!.get(name) ?? [0])[0]);
});

test("scores are those of the configuration", () => {
  const view: ScoreView = {
    *endorser(fingerprint) {
      yield;
      const own = edges.filter(({ from }) => NAMES[from] === fingerprint);
      const issued = own.map(({ to }, offer_entry_id) => ({ endorsed: NAMES[to]!, category: HUMAN, offer_entry_id }));
      return { discount: 1, issued: issued as never };
    },
  };
  const scoreOf = (signer: string, weights: Readonly<Record<string, number>>) => {
    const endorser_anchors = Object.entries(weights).map(([fingerprint, weight]) => ({ fingerprint, weight }));
    const policy = {
      direct_signer_anchors: [],
      endorser_anchors,
      minimum_threshold: 0.3,
      max_depth: 4,
      decay_per_hop: 0.5,
      category_weights: {},
    };
    return complete(scoreSigners(view, policy, new Set([signer]), { visits: 1000 }))!.get(signer)!.score;
  };
  const [page] = tables("signer");
  expect(page!.size).toBe(3);
  for (const [signer, [ada, ben, both]] of page!) {
    expect(scoreOf(signer, { Ada: 0.9 }), signer).toBeCloseTo(ada!, 12);
    expect(scoreOf(signer, { Ben: 0.6 }), signer).toBeCloseTo(ben!, 12);
    expect(scoreOf(signer, { Ada: 0.9, Ben: 0.6 }), signer).toBeCloseTo(both!, 12);
  }
});
