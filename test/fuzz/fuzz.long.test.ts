/** The short form of `npm run fuzz`: a few seconds, always with the same seed. */
import { expect, test } from "vitest";
import { DIST } from "../reliability/planted.js";
import { asInput, readCorpus, SERVICE } from "./corpus.js";
import { fuzzParsers } from "./parsers.js";
import { fuzzService } from "./service.js";

const SECONDS = 8;
const SEED = 1;

test("the service answers every input as its document says", async () => {
  const corpus = readCorpus().filter(({ target }) => target === SERVICE);
  const report = await fuzzService({ seed: SEED, seconds: SECONDS, dist: DIST, corpus: corpus.map(asInput) });
  expect(report.findings).toEqual([]);
  expect(report.unreached).toEqual([]);
  expect(report.inputs).toBeGreaterThan(corpus.length + 50);
});

test("every parser of strangers' texts refuses them with a code, or agrees with its twin", async () => {
  const { findings, inputs } = await fuzzParsers({ seed: SEED, seconds: SECONDS, dist: DIST });
  expect(findings.map(({ problem }) => problem)).toEqual([]);
  expect(inputs).toBeGreaterThan(200);
});
