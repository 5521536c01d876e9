/**
 * What the service costs beside the least that it could cost, each figure a ratio within one run: front ends, batches,
 * the engine, one attestation alone, and reads. Every server is a process of its own; the load generator, another
 * one, is not counted.
 */
import { join } from "node:path";
import { median } from "../stats.js";
import { measureAgainst } from "./against.js";
import { matchAnswers, measureAttestations } from "./attestations.js";
import { measureBatches } from "./batches.js";
import { measureEngine } from "./engine.js";
import { measureLone } from "./lone.js";
import { measureReads } from "./reads.js";
import { CHECKOUT, startService } from "./service.js";
import { openStage } from "./stage.js";
const ROUNDS = 7;
/** Entries of the log that is read. */
const ENTRIES = 100_000;
function print(rows) {
    console.log();
    console.table(rows.map(({ figure, rounds, digits }) => ({
        figure,
        median: median(rounds).toFixed(digits),
        lowest: Math.min(...rounds).toFixed(digits),
        highest: Math.max(...rounds).toFixed(digits),
    })));
}
/** The parts that need a running service with the default number of front ends. */
async function* measureService(stage) {
    const service = await startService({ checkout: CHECKOUT, dataDir: join(stage.folder, "default") });
    try {
        await matchAnswers(stage, service);
        yield ["attestations", await measureAttestations(stage, service)];
        yield ["batches", await measureBatches(stage, service)];
        yield ["lone", await measureLone(stage, service)];
    }
    finally {
        await service.close();
    }
}
async function* measureAll(stage, { entries = ENTRIES, against }) {
    if (against !== undefined) {
        yield ["against", await measureAgainst(stage, against)];
        return;
    }
    yield* measureService(stage);
    yield ["engine", await measureEngine(stage)];
    yield ["reads", await measureReads(stage, entries)];
}
export const suite = {
    summary: "front ends, batches, the engine and reads against a bare server that verifies and signs",
    async run(options) {
        const stage = await openStage(options.rounds ?? ROUNDS);
        const results = {};
        try {
            for await (const [part, measured] of measureAll(stage, options)) {
                if (!measured)
                    continue;
                print(measured.rows);
                results[part] = measured;
            }
            return results;
        }
        finally {
            await stage.close();
        }
    },
};
//# sourceMappingURL=front.js.map