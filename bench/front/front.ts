/**
 * What the service costs beside the least that it could cost, each figure a ratio within one run: front ends, batches,
 * one attestation alone, many signers, the engine, and reads. Every server is a process of its own; the load generator, another
 * one, is not counted.
 */
import { join } from "node:path";
import type { Suite, SuiteOptions } from "../suite.js";
import { measureAgainst } from "./against.js";
import { matchAnswers, measureAttestations } from "./attestations.js";
import { measureBatches } from "./batches.js";
import { measureEngine } from "./engine.js";
import { measureLone } from "./lone.js";
import { measureReads } from "./reads.js";
import { CHECKOUT, startService } from "./service.js";
import { measureSigners } from "./signers.js";
import { openStage, printRows, type Stage } from "./stage.js";

const ROUNDS = 7;
/** Entries of the log that is read, and keys of the large registry. */
const ENTRIES = 1_000_000;

/** The parts that need a running service with the default number of front ends. */
async function* measureService(stage: Stage) {
  const service = await startService({ checkout: CHECKOUT, dataDir: join(stage.folder, "default") });
  try {
    await matchAnswers(stage, service);
    yield ["attestations", await measureAttestations(stage, service)] as const;
    yield ["batches", await measureBatches(stage, service)] as const;
    yield ["lone", await measureLone(stage, service)] as const;
  } finally {
    await service.close();
  }
}

async function* measureAll(stage: Stage, { entries = ENTRIES, against }: SuiteOptions) {
  if (against !== undefined) {
    yield ["against", await measureAgainst(stage, against)] as const;
    return;
  }
  yield* measureService(stage);
  yield ["signers", await measureSigners(stage, entries)] as const;
  yield ["engine", await measureEngine(stage)] as const;
  yield ["reads", await measureReads(stage, entries)] as const;
}

export const suite: Suite = {
  summary: "front ends, batches, the engine and reads against a bare server that verifies and signs",
  async run(options) {
    const stage = await openStage(options.rounds ?? ROUNDS);
    const results: Record<string, unknown> = {};
    try {
      for await (const [part, measured] of measureAll(stage, options)) {
        if (!measured) continue;
        printRows(measured.rows);
        results[part] = measured;
      }
      return results;
    } finally {
      await stage.close();
    }
  },
};
