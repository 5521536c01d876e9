/** The content of `/metrics`: every metric by name and kind, each with the right value. */
import { Registry } from "prom-client";
import { afterAll, expect, test, vi } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { BatchReport } from "#cairnlog/engine/log/state/executor.js";
import { Measures } from "#cairnlog/server/http/observing/measures.js";
import { Metrics } from "#cairnlog/server/http/observing/metrics.js";
import { addRequestMetrics, requestDurations } from "#cairnlog/server/http/observing/requestmetrics.js";

/** A log for metrics, with a different number for each value. */
const log = {
  size: 100,
  batches: 7,
  queued: 3,
  lastFailure: null as CairnlogError | null,
  head: null as { readonly timestamp: string } | null,
  oldestPending: null as string | null,
  observer: (_: BatchReport): void => {},
  anchors: { totals: { pending: 11, confirmed: 12 }, oldestPending: (): string | null => log.oldestPending },
  treeHead: () => log.head,
  observeBatches(observer: (report: BatchReport) => void) {
    log.observer = observer;
  },
};

const metrics = new Metrics(log as never, log as never);
const http = {
  connections: 21,
  connectionsRefused: 22,
  inFlight: 23,
  uploads: { arriving: 24, pending: { held: 25, givenUp: 26 } },
};
const measures = new Measures();
const served = { ...http, transport: "node", answers: { waiting: 27, held: 28, givenUp: 29 } } as const;
metrics.watchFronts(async () => [{ thread: "writer", figures: measures.figures(served), lateness: null }]);
const usage = { fileBytes: 32, mapBytes: 33, readers: 34, oldestReader: 35 } as never;
metrics.watchDisk(
  () => 31,
  () => usage,
);
const anchoring = { failures: 41, due: false, since: 42 };
metrics.watchAnchoring({
  get failures() {
    return anchoring.failures;
  },
  status: () => ({ anchor_due: anchoring.due, entries_since_anchor: anchoring.since }),
} as never);
metrics.watchDeliveries({ delivered: 51, failed: 52, unhealthy: 53, waiting: 54, behind: 55, unread: 56 });
metrics.watchClock({ clockRefusal: new CairnlogError("clock-suspect", ""), secondsAhead: 62 });
metrics.watchCertificate(() => 61_000);
afterAll(() => metrics.close());

test("a text that could not be written is written for whoever asks next", async () => {
  const asking = new Metrics(log as never, null);
  const reports = [() => Promise.reject(new Error("no report")), async () => []];
  asking.watchFronts(() => reports.shift()!());
  await expect(asking.text()).rejects.toThrow("no report");
  expect(await asking.text()).toContain("cairnlog_log_entries 100");
  asking.close();
});

/** Every sample: name and labels → value. */
async function samples(): Promise<Record<string, number>> {
  const lines = (await metrics.text()).split("\n").filter((line) => line && !line.startsWith("#"));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]),
  );
}

test("the text is written for everybody who waits for it, and says what was so when they asked", async () => {
  let reads = 0;
  const counted = {
    ...log,
    get size() {
      reads++;
      return reads;
    },
  };
  const counting = new Metrics(counted as never, null);
  const before = reads;
  const entries = async () => Number(/^cairnlog_log_entries (\d+)$/m.exec(await counting.text())![1]);
  // The number of entries in the log and the number appended since the start are separate values.
  const first = await Promise.all(Array.from({ length: 50 }, entries));
  expect(new Set(first).size).toBe(1);
  expect(reads - before).toBe(2);
  const second = await entries();
  expect(second).toBeGreaterThan(first[0]!);
  counting.close();
});

const KINDS: Readonly<Record<string, string>> = {
  cairnlog_anchor_due: "gauge",
  cairnlog_anchor_oldest_pending_seconds: "gauge",
  cairnlog_anchors: "gauge",
  cairnlog_append_queue: "gauge",
  cairnlog_appends_total: "counter",
  cairnlog_batch_entries: "histogram",
  cairnlog_batch_stage_duration_seconds: "histogram",
  cairnlog_batches_total: "counter",
  cairnlog_calendar_failures_total: "counter",
  cairnlog_disk_free_bytes: "gauge",
  cairnlog_clock_suspect: "gauge",
  cairnlog_entries_since_anchor: "gauge",
  cairnlog_http_aborted_total: "counter",
  cairnlog_http_answer_bytes: "gauge",
  cairnlog_http_arriving: "gauge",
  cairnlog_http_body_bytes: "gauge",
  cairnlog_http_connections: "gauge",
  cairnlog_http_connections_refused_total: "counter",
  cairnlog_http_given_up_total: "counter",
  cairnlog_http_in_flight: "gauge",
  cairnlog_http_info: "gauge",
  cairnlog_http_request_duration_seconds: "histogram",
  cairnlog_http_requests_total: "counter",
  cairnlog_http_slow_answers: "gauge",
  cairnlog_build_info: "gauge",
  cairnlog_last_batch_failed: "gauge",
  cairnlog_log_ahead_of_clock_seconds: "gauge",
  cairnlog_log_entries: "gauge",
  cairnlog_log_lines_dropped_total: "counter",
  cairnlog_refusals_total: "counter",
  cairnlog_store_bytes: "gauge",
  cairnlog_store_max_bytes: "gauge",
  cairnlog_store_oldest_reader_commits: "gauge",
  cairnlog_store_readers: "gauge",
  cairnlog_tls_certificate_expiry_timestamp_seconds: "gauge",
  cairnlog_tree_head_timestamp_seconds: "gauge",
  cairnlog_webhook_delivered_total: "counter",
  cairnlog_webhook_failed_total: "counter",
  cairnlog_webhook_behind: "gauge",
  cairnlog_webhook_outbox: "gauge",
  cairnlog_webhook_unread: "gauge",
  cairnlog_webhook_unhealthy: "gauge",
  nodejs_eventloop_lag_max_seconds: "gauge",
  nodejs_eventloop_lag_p50_seconds: "gauge",
  nodejs_eventloop_lag_p99_seconds: "gauge",
  nodejs_external_bytes: "gauge",
  nodejs_heap_used_bytes: "gauge",
  process_cpu_seconds_total: "counter",
  process_max_fds: "gauge",
  process_open_fds: "gauge",
  process_resident_memory_bytes: "gauge",
  process_start_time_seconds: "gauge",
};

test("names, kinds and a sentence about each", async () => {
  const text = await metrics.text();
  const kinds = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, kind]) => [name, kind]);
  expect(Object.fromEntries(kinds)).toEqual(KINDS);
  const helped = [...text.matchAll(/^# HELP (\S+) [A-Z0-9].+\.$/gm)].map(([, name]) => name);
  expect(helped.sort()).toEqual(Object.keys(KINDS).sort());
  expect(metrics.contentType).toMatch(/^text\/plain; version=0\.0\.4/);
});

test("each shows its own current number", async () => {
  expect(await samples()).toMatchObject({
    cairnlog_log_entries: 100,
    cairnlog_append_queue: 3,
    // Since the start, when there were 100 entries.
    cairnlog_appends_total: 0,
    cairnlog_batches_total: 7,
    cairnlog_last_batch_failed: 0,
    cairnlog_clock_suspect: 1,
    cairnlog_log_ahead_of_clock_seconds: 62,
    cairnlog_tree_head_timestamp_seconds: 0,
    'cairnlog_anchors{status="pending"}': 11,
    'cairnlog_anchors{status="confirmed"}': 12,
    cairnlog_anchor_oldest_pending_seconds: 0,
    cairnlog_http_connections: 21,
    cairnlog_http_connections_refused_total: 22,
    cairnlog_http_in_flight: 23,
    cairnlog_http_arriving: 24,
    cairnlog_http_body_bytes: 25,
    cairnlog_http_slow_answers: 27,
    cairnlog_http_answer_bytes: 28,
    cairnlog_http_given_up_total: 26 + 29,
    cairnlog_disk_free_bytes: 31,
    cairnlog_store_bytes: 32,
    cairnlog_store_max_bytes: 33,
    cairnlog_store_readers: 34,
    cairnlog_store_oldest_reader_commits: 35,
    cairnlog_calendar_failures_total: 41,
    cairnlog_entries_since_anchor: 42,
    cairnlog_anchor_due: 0,
    cairnlog_webhook_delivered_total: 51,
    cairnlog_webhook_failed_total: 52,
    cairnlog_webhook_unhealthy: 53,
    cairnlog_webhook_behind: 55,
    cairnlog_webhook_outbox: 54,
    cairnlog_webhook_unread: 56,
  });
  log.size = 142;
  log.queued = 0;
  log.lastFailure = new CairnlogError("storage-failed", "");
  log.head = { timestamp: "2025-01-01T00:00:00.250000Z" };
  anchoring.due = true;
  const anchored = Date.now() - 3_600_000;
  log.oldestPending = new Date(anchored).toISOString().replace("Z", "000Z");
  const later = await samples();
  expect(later).toMatchObject({
    cairnlog_log_entries: 142,
    cairnlog_append_queue: 0,
    cairnlog_appends_total: 42,
    cairnlog_last_batch_failed: 1,
    cairnlog_tree_head_timestamp_seconds: 1735689600.25,
    cairnlog_anchor_due: 1,
  });
  expect(later.cairnlog_anchor_oldest_pending_seconds).toBeGreaterThanOrEqual(3600);
  expect(later.cairnlog_anchor_oldest_pending_seconds).toBeLessThan((Date.now() - anchored + 1) / 1000);
  log.oldestPending = "2999-01-01T00:00:00.000000Z";
  expect((await samples()).cairnlog_anchor_oldest_pending_seconds).toBe(0);
});

test("the process is this one", async () => {
  const { heapUsed, external, rss } = process.memoryUsage();
  const seen = await samples();
  const near = (value: number) => ({ from: value / 4, to: value * 4 });
  for (const [name, { from, to }] of Object.entries({
    nodejs_heap_used_bytes: near(heapUsed),
    nodejs_external_bytes: near(external),
    process_resident_memory_bytes: near(rss),
    process_cpu_seconds_total: near(process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6),
  })) {
    expect(seen[name], name).toBeGreaterThan(from);
    expect(seen[name], name).toBeLessThan(to);
  }
  expect(Math.abs(seen.process_start_time_seconds! - (Date.now() / 1000 - process.uptime()))).toBeLessThan(5);
  expect(seen.process_open_fds).toBeGreaterThan(2);
  expect(seen.process_max_fds).toBeGreaterThan(seen.process_open_fds!);
});

test("how late timers came since the last look", async () => {
  const quantiles = async () => {
    const seen = await samples();
    return ["p50", "p99", "max"].map((share) => seen[`nodejs_eventloop_lag_${share}_seconds{thread="writer"}`]!);
  };
  const pause = () => new Promise((resolve) => setTimeout(resolve, 100));
  await quantiles();
  const started = performance.now();
  // Reading begins a new measurement, with the next timer.
  await pause();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
  await pause();
  const elapsed = (performance.now() - started) / 1000;
  const [half, most, all] = await quantiles();
  expect(half).toBeGreaterThanOrEqual(0);
  expect(half).toBeLessThanOrEqual(most!);
  expect(most).toBeLessThanOrEqual(all!);
  expect(all).toBeGreaterThanOrEqual(0.4);
  // On any machine, no timer was later than the whole duration.
  expect(all).toBeLessThan(elapsed);
});

test("refusals by code, clients that disconnected, and the version", async () => {
  measures.refused("gone");
  measures.refused("gone");
  measures.refused("not-found");
  measures.aborted();
  const seen = await samples();
  expect(seen['cairnlog_refusals_total{code="gone"}']).toBe(2);
  expect(seen['cairnlog_refusals_total{code="not-found"}']).toBe(1);
  expect(seen.cairnlog_http_aborted_total).toBe(1);
  expect(seen['cairnlog_http_info{transport="node"}']).toBe(1);
  expect(Object.keys(seen).filter((name) => name.startsWith("cairnlog_build_info"))).toEqual([
    expect.stringMatching(/^cairnlog_build_info\{version="\d+\.\d+\.\d+[^"]*"\}$/),
  ]);
  expect(Object.values(seen)[Object.keys(seen).findIndex((name) => name.startsWith("cairnlog_build_info"))]).toBe(1);
});

test("batches by size, and the duration of each stage", async () => {
  log.observer({ entries: 3, forming: 0.002, signing: 0.03, writing: 0.4 });
  log.observer({ entries: 1025, forming: 0.0005, signing: 5, writing: 6 });
  const seen = await samples();
  const histogram = (name: string, labels = "") =>
    Object.entries(seen)
      .filter(([sample]) => sample.startsWith(`${name}_bucket{`) && sample.includes(labels))
      .map(([sample, count]) => [/le="([^"]+)"/.exec(sample)![1], count]);
  const sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
  expect(histogram("cairnlog_batch_entries")).toEqual([
    ...sizes.map((size) => [`${size}`, size >= 3 ? 1 : 0]),
    ["+Inf", 2],
  ]);
  expect([seen.cairnlog_batch_entries_sum, seen.cairnlog_batch_entries_count]).toEqual([1028, 2]);
  const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
  for (const [stage, times] of [
    ["form", [0.002, 0.0005]],
    ["sign", [0.03, 5]],
    ["write", [0.4, 6]],
  ] as const)
    expect(histogram("cairnlog_batch_stage_duration_seconds", `stage="${stage}"`), stage).toEqual([
      ...seconds.map((bound) => [`${bound}`, times.filter((time) => time <= bound).length]),
      ["+Inf", 2],
    ]);
});

test("requests by method, route and status, and how long they took", async () => {
  const registry = new Registry();
  const counting = new Measures();
  const { tallies } = counting;
  const fronts = () => [counting.figures(served)];
  addRequestMetrics(registry, fronts);
  const [get, post, unused] = [tallies.open("GET", "/a"), tallies.open("POST", "/a"), tallies.open("GET", "/b")];
  const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];
  // One request at each bound, and one beyond all of them.
  for (const seconds of bounds) get.answered(200, seconds);
  get.answered(404, 61);
  post.answered(200, 0.0011);
  post.answered(200, 0.0012);
  expect(unused.statuses.size).toBe(0);
  const shown = async () => `${await registry.metrics()}\n${requestDurations(fronts())}`;
  const text = async () => (await shown()).split("\n").filter((line) => /^cairnlog_http_request/.test(line));
  const lines = await text();
  const duration = "cairnlog_http_request_duration_seconds";
  const buckets = (method: string, counts: readonly number[]) =>
    [...bounds, "+Inf"].map(
      (bound, i) => `${duration}_bucket{le="${bound}",method="${method}",route="/a"} ${counts[i]}`,
    );
  const sum = bounds.reduce((total, seconds) => total + seconds, 0) + 61;
  expect(lines).toEqual([
    'cairnlog_http_requests_total{method="GET",route="/a",status="200"} 13',
    'cairnlog_http_requests_total{method="GET",route="/a",status="404"} 1',
    'cairnlog_http_requests_total{method="POST",route="/a",status="200"} 2',
    ...buckets(
      "GET",
      Array.from({ length: 14 }, (_, i) => i + 1),
    ),
    `${duration}_sum{method="GET",route="/a"} ${sum}`,
    `${duration}_count{method="GET",route="/a"} 14`,
    ...buckets("POST", [0, ...Array(13).fill(2)]),
    `${duration}_sum{method="POST",route="/a"} ${0.0011 + 0.0012}`,
    `${duration}_count{method="POST",route="/a"} 2`,
  ]);
  // A second reading counts nothing twice.
  expect(await text()).toEqual(lines);
});

test("the text is written ten times a second at most, once for all who wait", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
  const own = new Metrics(log as never, log as never);
  try {
    vi.advanceTimersByTime(1000);
    await own.text();
    let written = 0;
    const second = own.text();
    expect(own.text()).toBe(second);
    void second.then(() => written++);
    await vi.advanceTimersByTimeAsync(99);
    expect(written).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    await second;
  } finally {
    own.close();
    vi.useRealTimers();
  }
});
