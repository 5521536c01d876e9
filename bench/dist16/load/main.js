/**
 * `npm run load`: sends pre-signed attestations to a service from client processes and checks the proofs of its
 * answers. Ctrl-C ends the load early: running requests are awaited, and the measurements so far are reported.
 */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { cpuOf, signOne, verifyOne } from "../floors.js";
import { describeMachine, machineHeader } from "../machine.js";
import { drawSweep, drawTimeline } from "./drawings.js";
import { measureLoad } from "./measure.js";
import { startOwnService } from "./service.js";
const SWEEP = [1, 4, 16, 64, 256];
/** With at least this many connections, a level of a sweep sends all requests; with fewer, proportionally fewer. */
const FULL_LOAD = 64;
/** Sent first to a service of our own and not counted, because a service that has just started compiles its code. */
const WARM_UP = 2_000;
const SIGNATURES = 4_000;
const help = `Usage: npm run load -- [options]

Signs attestations, sends them over keep-alive connections, and reports latencies, errors and the service's CPU for each
request. Of every hundredth receipt the proofs are fetched and verified while the load runs.

Options:
  --server URL       the service to load (http: only); without it one is started for the run, without rate limits
  --connections N    keep-alive connections, one request at a time on each (64)
  --clients N        client processes that share them (1)
  --requests N       attestations to send (20000)
  --rate N           open loop: so many a second, whatever the answers do; late ones count from when they were due
  --sweep            one load after the other with ${SWEEP.join(", ")} connections
  --json FILE        also write the results to FILE
  --svg FILE         draw throughput and latency over time or, with --sweep, over connections
  --help             show this

Clients, service and checks share this machine unless --server says otherwise: clients are busy too.
Exit codes: 0 every answer was 200 and every receipt checked holds; 1 not so; 2 wrong options; 130 stopped.
`;
function refuse(message) {
    console.error(`${message}\n\n${help}`);
    process.exit(2);
}
function readOptions() {
    const text = { type: "string" };
    const flag = { type: "boolean", default: false };
    const numbers = { connections: text, clients: text, requests: text, rate: text };
    try {
        return parseArgs({ options: { ...numbers, server: text, json: text, svg: text, sweep: flag, help: flag } }).values;
    }
    catch (error) {
        return refuse(error.message);
    }
}
const options = readOptions();
function positive(name, fallback) {
    const value = Number(options[name] ?? fallback);
    return Number.isSafeInteger(value) && value > 0 ? value : refuse(`--${name} takes a whole number above 0.`);
}
function readRate() {
    if (options.rate === undefined)
        return undefined;
    const rate = Number(options.rate);
    return rate > 0 && Number.isFinite(rate) ? rate : refuse("--rate takes a number above 0.");
}
function readServer() {
    if (options.server === undefined)
        return undefined;
    const url = URL.canParse(options.server) ? new URL(options.server) : undefined;
    return url?.protocol === "http:" ? url.origin : refuse("--server takes an http: URL.");
}
const counts = (tally) => Object.entries(tally)
    .map(([status, count]) => `${count} × ${status === "0" ? "connection broken" : status}`)
    .join(", ");
/** Prints a report; `floor` is the CPU of one verification and one signature. */
function print(report, floor) {
    const { connections, rate, answered, seconds, perSecond, p50, p99, p999, highest, errors, unsent, checked } = report;
    const { cpuMicros, perCommit } = report;
    const ms = (value) => `${value.toFixed(2)} ms`;
    const kind = rate === undefined ? "" : `, ${rate} a second wanted`;
    console.log(`\n${connections} connections${kind}: ${answered} answers in ${seconds.toFixed(2)} s`);
    console.log(`  recorded    ${perSecond.toFixed(0)} a second`);
    if (!Number.isNaN(p50))
        console.log(`  latency     p50 ${ms(p50)}, p99 ${ms(p99)}, p99.9 ${ms(p999)}, highest ${ms(highest)}`);
    console.log(`  errors      ${counts(errors) || "none"}${unsent > 0 ? `; ${unsent} requests were not sent` : ""}`);
    if (cpuMicros === null)
        console.log("  service CPU unknown: no process_cpu_seconds_total at /metrics");
    else
        console.log(`  service CPU ${cpuMicros.toFixed(1)} µs a request, checks included: ${(cpuMicros / floor).toFixed(2)} × verify + sign` +
            `${options.server === undefined ? "" : " on this machine"} (${floor.toFixed(1)} µs)`);
    if (perCommit !== null)
        console.log(`  per commit  ${perCommit.toFixed(1)}`);
    const skipped = checked.skipped > 0 ? `, ${checked.skipped} not looked at` : "";
    console.log(`  receipts    ${checked.verified} verified, ${checked.problems.length} that do not hold${skipped}`);
    for (const problem of checked.problems.slice(0, 10))
        console.log(`              ${problem}`);
}
async function main() {
    const [connections, clients] = [positive("connections", 64), positive("clients", 1)];
    const [requests, rate, server] = [positive("requests", 20_000), readRate(), readServer()];
    if (options.sweep && rate !== undefined)
        refuse("--sweep and --rate exclude each other.");
    const stopped = new AbortController();
    process.on("SIGINT", () => {
        // The second Ctrl-C ends the process at once.
        if (stopped.signal.aborted)
            process.exit(130);
        console.log("\nstopping: waiting for what is under way; Ctrl-C again to leave at once");
        stopped.abort();
    });
    const machine = describeMachine();
    console.log(machineHeader(machine));
    let own = null;
    const reports = [];
    try {
        if (server === undefined)
            own = await startOwnService();
        const url = server ?? own.url;
        const run = `load ${randomUUID()}`;
        const task = { url, clients, signal: stopped.signal };
        if (own)
            await measureLoad({ ...task, connections: FULL_LOAD, requests: WARM_UP, name: `${run} warm-up` });
        const levels = options.sweep ? SWEEP : [connections];
        for (const level of levels) {
            if (stopped.signal.aborted)
                break;
            const floor = cpuOf(verifyOne, SIGNATURES) + cpuOf(signOne, SIGNATURES);
            const share = options.sweep ? Math.min(1, level / FULL_LOAD) : 1;
            const load = { ...task, connections: level, requests: Math.ceil(requests * share), name: `${run} ${level}` };
            const report = await measureLoad(rate === undefined ? load : { ...load, rate });
            print(report, floor);
            reports.push(report);
        }
    }
    catch (error) {
        // Stopped before anything was sent; otherwise this is a failure.
        if (!stopped.signal.aborted)
            throw error;
    }
    finally {
        await own?.close();
    }
    if (reports.length > 0) {
        if (options.svg !== undefined)
            writeFileSync(options.svg, options.sweep ? drawSweep(reports, machine) : drawTimeline(reports[0], machine));
        if (options.json !== undefined)
            writeFileSync(options.json, `${JSON.stringify({ machine, options, reports }, null, 2)}\n`);
    }
    if (stopped.signal.aborted)
        return 130;
    const isClean = reports.every(({ errors, unsent, checked }) => !Object.keys(errors).length && !unsent && !checked.problems.length);
    return isClean ? 0 : 1;
}
if (options.help)
    console.log(help);
else
    process.exitCode = await main().catch((error) => {
        // The message of `fetch` ("fetch failed") does not contain the reason.
        const cause = error.cause instanceof Error ? `: ${error.cause.message}` : "";
        console.error(`${error.message}${cause}`);
        return 1;
    });
//# sourceMappingURL=main.js.map