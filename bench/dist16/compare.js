/**
 * Compares contenders that do the same work. They take turns, round after round, so that other load on the machine
 * affects all of them alike. A contender's number is the median of its rounds, and the spread is shown with it.
 */
import { Bench } from "tinybench";
import { median } from "./stats.js";
/** Number of rounds, and the time for each contender in a round. */
const ROUNDS = 9;
const ROUND_MS = 80;
const WARMUP_MS = 300;
/** Measures every contender; one `run` does `units` units of work. */
export async function compare(contenders, units) {
    await round(contenders, WARMUP_MS, units);
    const rounds = [];
    for (let i = 0; i < ROUNDS; i++)
        rounds.push(await round(contenders, ROUND_MS, units));
    return contenders.map(({ name }, i) => {
        const own = rounds.map((measured) => measured[i]);
        return { name, median: median(own), rounds: own };
    });
}
/** Median time per unit for every contender, in one turn each. */
async function round(contenders, time, units) {
    const bench = new Bench({ time, iterations: 5, warmup: false });
    for (const { name, run } of contenders)
        bench.add(name, run);
    await bench.run();
    return bench.tasks.map(({ name, result }) => {
        if (result.state !== "completed")
            throw new Error(`${name} did not complete`);
        return (result.latency.p50 * 1e6) / units;
    });
}
/**
 * A row for `console.table`: the median, the fastest and slowest round, and the ratio to each baseline. Both the
 * medians and the fastest rounds are compared, because garbage collection happens only in some rounds.
 */
export function row(measured, baselines) {
    const fastest = Math.min(...measured.rounds);
    const ratios = Object.entries(baselines).map(([title, base]) => {
        const ofMedians = base.median / measured.median;
        const ofFastest = Math.min(...base.rounds) / fastest;
        return [`${title} (fastest)`, `${ofMedians.toFixed(2)} (${ofFastest.toFixed(2)})`];
    });
    return {
        contender: measured.name,
        "median ns": measured.median.toFixed(0),
        "rounds ns": `${fastest.toFixed(0)} – ${Math.max(...measured.rounds).toFixed(0)}`,
        ...Object.fromEntries(ratios),
    };
}
//# sourceMappingURL=compare.js.map