/** The short form of `npm run fuzz`, and every input that once failed. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CRASH_FAULTS, ENGINE_FAULTS } from "../crash/planted.js";
import { DIST } from "../reliability/planted.js";
import { asInput, readCorpus, SERVICE } from "./corpus.js";
import { fuzzParsers, judgeParser, loadTargets } from "./parsers.js";
import { PARSER_FAULTS, SERVICE_FAULTS } from "./planted.js";
import { fuzzService } from "./service.js";

const SECONDS = 8;
const SEED = 1;

test("the service answers whatever it is sent as it promises", { timeout: 120_000 }, async () => {
  const corpus = readCorpus().filter(({ target }) => target === SERVICE);
  const report = await fuzzService({ seed: SEED, seconds: SECONDS, dist: DIST, corpus: corpus.map(asInput) });
  expect(report.findings).toEqual([]);
  expect(report.unreached).toEqual([]);
  expect(report.inputs).toBeGreaterThan(corpus.length + 50);
});

test("whatever reads strangers' texts refuses them with a code, or takes them as its twin does", {
  timeout: 120_000,
}, async () => {
  const { findings, inputs } = await fuzzParsers({ seed: SEED, seconds: SECONDS, dist: DIST });
  expect(findings.map(({ problem }) => problem)).toEqual([]);
  expect(inputs).toBeGreaterThan(200);
});

test("no input that once failed a reader fails it again", async () => {
  const targets = new Map((await loadTargets(DIST)).map((target) => [target.name, target]));
  for (const { target, bytes, note } of readCorpus())
    if (target !== SERVICE)
      expect(await judgeParser(targets.get(target)!, Buffer.from(bytes!, "base64")), note).toBeNull();
});

test.each([...CRASH_FAULTS, ...ENGINE_FAULTS, ...SERVICE_FAULTS, ...PARSER_FAULTS])(
  "there is a place to plant: $name",
  ({ file, text }) => {
    expect(readFileSync(join(DIST, file), "utf8").split(text)).toHaveLength(2);
  },
);
