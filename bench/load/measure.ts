/**
 * One load against a service: the clients' measurements, the service's metrics before and after, and whether the
 * sampled receipts verify.
 */
import { type Checked, Checker } from "./checker.js";
import { type LoadResult, percentile, prepareLoad } from "./generator.js";

export interface LoadTask {
  readonly url: string;
  readonly connections: number;
  readonly clients: number;
  readonly requests: number;
  readonly rate?: number;
  readonly name: string;
  readonly signal: AbortSignal;
}

/** An interval of the run. Rates and latencies (milliseconds) are of recorded attestations, answered with 200. */
export interface Slice {
  /** Seconds from the start of the run to the middle of the interval. */
  readonly at: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

export interface LoadReport {
  readonly connections: number;
  /** Requested rate in requests a second; absent if each connection waited for its answer. */
  readonly rate?: number;
  readonly seconds: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly highest: number;
  /** Answers of any status. */
  readonly answered: number;
  /** Answers other than 200 by status; 0 for connections that broke or could not be made. */
  readonly errors: Readonly<Record<string, number>>;
  /** Requests that were never sent, because the load was stopped or connections broke. */
  readonly unsent: number;
  /** Microseconds of the service's CPU, all threads, for each answer, including the checks; null without metrics. */
  readonly cpuMicros: number | null;
  /** Appends that shared a commit, on average; null without metrics. */
  readonly perCommit: number | null;
  readonly checked: Checked;
  readonly timeline: readonly Slice[];
}

const SLICES = 60;

/** Values of the service's metrics without labels; null if they are not available. */
async function readMetrics(url: string): Promise<ReadonlyMap<string, number> | null> {
  const response = await fetch(`${url}/metrics`).catch(() => null);
  if (!response?.ok) return null;
  const lines = (await response.text()).split("\n").filter((line) => line && !line.startsWith("#"));
  return new Map(lines.map((line) => line.split(" ")).map(([name = "", value]) => [name, Number(value)]));
}

function slices(answers: LoadResult["answers"]): Slice[] {
  const end = answers.at(-1)?.at ?? 0;
  const width = end / SLICES;
  const parts = Array.from({ length: SLICES }, () => [] as number[]);
  for (const { at, latency } of answers) parts[Math.min(SLICES - 1, Math.floor(at / width))]!.push(latency);
  return parts.map((latencies, i) => {
    const sorted = latencies.sort((a, b) => a - b);
    const perSecond = latencies.length / (width / 1000);
    const at = ((i + 0.5) * width) / 1000;
    return { at, perSecond, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) };
  });
}

/** Runs the load and reports on it. @throws if the service cannot be reached, or `signal` aborts before the start */
export async function measureLoad(task: LoadTask): Promise<LoadReport> {
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
  const grown = (metric: string): number | null => {
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
