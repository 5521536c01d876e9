/**
 * One load against a service: the clients' measurements, the service's metrics before and after, and whether the
 * sampled receipts verify.
 */
import { Checker } from "./checker.js";
import { percentile, prepareLoad } from "./generator.js";
const SLICES = 60;
/** Values of the service's metrics without labels; null if they are not available. */
async function readMetrics(url) {
    const response = await fetch(`${url}/metrics`).catch(() => null);
    if (!response?.ok)
        return null;
    const lines = (await response.text()).split("\n").filter((line) => line && !line.startsWith("#"));
    return new Map(lines.map((line) => line.split(" ")).map(([name = "", value]) => [name, Number(value)]));
}
function slices(answers) {
    const end = answers.at(-1)?.at ?? 0;
    const width = end / SLICES;
    const parts = Array.from({ length: SLICES }, () => []);
    for (const { at, latency } of answers)
        parts[Math.min(SLICES - 1, Math.floor(at / width))].push(latency);
    return parts.map((latencies, i) => {
        const sorted = latencies.sort((a, b) => a - b);
        const perSecond = latencies.length / (width / 1000);
        const at = ((i + 0.5) * width) / 1000;
        return { at, perSecond, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) };
    });
}
/** Runs the load and reports on it. @throws if the service cannot be reached, or `signal` aborts before the start */
export async function measureLoad(task) {
    const { url, connections, requests, rate, signal, clients, name } = task;
    const { hostname, port } = new URL(url);
    const checker = await Checker.of(url);
    const load = await prepareLoad({
        // Only in a URL is a literal IPv6 address in brackets.
        host: hostname.replace(/^\[|\]$/g, ""),
        port: Number(port || 80),
        requests,
        connections,
        clients,
        name,
        signal,
        onSample: (sample) => checker.add(sample),
        ...(rate === undefined ? {} : { rate }),
    });
    const before = await readMetrics(url);
    const result = await load.run();
    const after = await readMetrics(url);
    const checked = await checker.finish();
    const grown = (metric) => {
        const [from, to] = [before?.get(metric), after?.get(metric)];
        return from === undefined || to === undefined ? null : to - from;
    };
    const { answered, latencies, seconds, statuses } = result;
    const [cpu, appends, batches] = [
        grown("process_cpu_seconds_total"),
        grown("cairnlog_appends_total"),
        grown("cairnlog_batches_total"),
    ];
    const sent = Object.values(statuses).reduce((sum, count) => sum + count, 0);
    return {
        connections,
        ...(rate === undefined ? {} : { rate }),
        seconds,
        perSecond: (statuses[200] ?? 0) / seconds,
        p50: percentile(latencies, 0.5),
        p99: percentile(latencies, 0.99),
        p999: percentile(latencies, 0.999),
        highest: latencies.at(-1) ?? Number.NaN,
        answered,
        errors: Object.fromEntries(Object.entries(statuses).filter(([status]) => status !== "200")),
        unsent: Math.max(0, requests - sent),
        cpuMicros: cpu === null ? null : (cpu * 1e6) / answered,
        perCommit: appends === null || !batches ? null : appends / batches,
        checked,
        timeline: slices(result.answers),
    };
}
//# sourceMappingURL=measure.js.map