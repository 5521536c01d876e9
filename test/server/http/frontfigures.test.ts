/** The counts of several front ends: those of one that has ended stay in every sum, and it holds nothing any more. */
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { added, type FrontFigures, Measures, pastOf, Tallies } from "#cairnlog/server/http/observing/measures.js";
import { type FrontReport, Metrics } from "#cairnlog/server/http/observing/metrics.js";
import { addRequestMetrics, requestDurations } from "#cairnlog/server/http/observing/requestmetrics.js";

/** The figures of a front end that holds and has counted something: `n` times as much as the first one. */
function figuresOf(n: number, transport: "uws" | "node", counts: (measures: Measures) => void): FrontFigures {
  const measures = new Measures();
  counts(measures);
  return measures.figures({
    transport,
    connections: n,
    connectionsRefused: 2 * n,
    inFlight: 3 * n,
    uploads: { arriving: 4 * n, pending: { held: 5 * n, givenUp: 6 * n } },
    answers: { waiting: 7 * n, held: 8 * n, givenUp: 9 * n },
  });
}

const first = figuresOf(1, "node", (measures) => {
  measures.aborted();
  measures.refused("gone");
  measures.refused("not-found");
  measures.tallies.open("GET", "/a").answered(200, 0.0005);
  measures.tallies.open("GET", "/b").answered(404, 0.5);
});
const second = figuresOf(10, "uws", (measures) => {
  for (let i = 0; i < 4; i++) measures.aborted();
  for (let i = 0; i < 3; i++) measures.refused("gone");
  measures.refused("overloaded");
  const tally = measures.tallies.open("GET", "/a");
  tally.answered(200, 0.25);
  tally.answered(304, 120);
  measures.tallies.open("POST", "/a").answered(200, 2);
});

test("the figures of a front end are what it holds and has counted", () => {
  expect(first).toMatchObject({
    ...{ transport: "node", connections: 1, connectionsRefused: 2, inFlight: 3, arriving: 4, bodyBytes: 5 },
    ...{ slowAnswers: 7, answerBytes: 8, givenUp: 15, aborted: 1 },
    refusals: [
      ["gone", 1],
      ["not-found", 1],
    ],
  });
});

test("what ended front ends counted is summed, and what they held is gone", () => {
  const gone = { connections: 0, inFlight: 0, arriving: 0, bodyBytes: 0, slowAnswers: 0, answerBytes: 0 };
  expect(pastOf(null, first)).toEqual({ ...first, ...gone, tallies: added(first.tallies) });
  const past = pastOf(pastOf(null, first), second);
  expect(past).toMatchObject({ ...gone, transport: "uws", connectionsRefused: 22, givenUp: 165, aborted: 5 });
  expect(past.refusals).toEqual([
    ["gone", 4],
    ["not-found", 1],
    ["overloaded", 1],
  ]);
  expect(past.tallies).toEqual(added([...first.tallies, ...second.tallies]));
});

test("tallies of the same method and route are one, whichever front end counted", () => {
  const [a, b, posted, ...more] = added([...first.tallies, ...second.tallies]);
  expect(more).toEqual([]);
  const buckets = (...filled: number[]) =>
    Array.from({ length: 14 }, (_, i) => filled.filter((one) => one === i).length);
  expect(a).toMatchObject({ method: "GET", route: "/a", seconds: 0.0005 + 0.25 + 120 });
  expect([[...a!.statuses], [...a!.buckets]]).toEqual([
    [
      [200, 2],
      [304, 1],
    ],
    buckets(0, 7, 13),
  ]);
  expect(b).toMatchObject({ method: "GET", route: "/b", statuses: new Map([[404, 1]]), seconds: 0.5 });
  expect(posted).toMatchObject({ method: "POST", route: "/a", statuses: new Map([[200, 1]]), seconds: 2 });
  // The sums are numbers of their own.
  expect([first.tallies[0]!.seconds, [...first.tallies[0]!.statuses]]).toEqual([0.0005, [[200, 1]]]);
});

test("a tally is shown once it has counted something", () => {
  const tallies = new Tallies();
  const [used] = [tallies.open("GET", "/a"), tallies.open("GET", "/b")];
  expect(tallies.figures()).toEqual([]);
  used!.answered(200, 0.001);
  expect(tallies.figures()).toMatchObject([{ method: "GET", route: "/a", seconds: 0.001 }]);
});

test("metrics are sums over all front ends, past ones included", async () => {
  const registry = new Registry();
  const fronts = [pastOf(null, first), second];
  addRequestMetrics(registry, () => fronts);
  const lines = `${await registry.metrics()}\n${requestDurations(fronts)}`.split("\n");
  for (const line of [
    "cairnlog_http_connections 10",
    "cairnlog_http_connections_refused_total 22",
    "cairnlog_http_in_flight 30",
    "cairnlog_http_arriving 40",
    "cairnlog_http_body_bytes 50",
    "cairnlog_http_slow_answers 70",
    "cairnlog_http_answer_bytes 80",
    "cairnlog_http_given_up_total 165",
    "cairnlog_http_aborted_total 5",
    'cairnlog_http_info{transport="node"} 1',
    'cairnlog_http_info{transport="uws"} 1',
    'cairnlog_refusals_total{code="gone"} 4',
    'cairnlog_http_requests_total{method="GET",route="/a",status="200"} 2',
    'cairnlog_http_request_duration_seconds_bucket{le="0.25",method="GET",route="/a"} 2',
    'cairnlog_http_request_duration_seconds_count{method="GET",route="/a"} 3',
  ])
    expect(lines).toContain(line);
});

test("each thread shows its own lateness, and one that is gone none", async () => {
  const anchors = { totals: { pending: 0, confirmed: 0 }, oldestPending: () => null };
  const log = {
    size: 0,
    batches: 0,
    queued: 0,
    lastFailure: null,
    treeHead: () => null,
    observeBatches: () => {},
    anchors,
  };
  const metrics = new Metrics(log as never, log as never);
  const report = (thread: string, n: number): FrontReport => ({
    thread,
    figures: first,
    lateness: { p50: n, p99: 2 * n, max: 3 * n },
  });
  let reports = [report("front-1", 1), report("front-2", 10)];
  metrics.watchFronts(async () => [...reports, { thread: "past", figures: second, lateness: null }]);
  try {
    const shown = async () => {
      const lines = [
        ...(await metrics.text()).matchAll(/^nodejs_eventloop_lag_(\w+)_seconds\{thread="(.*)"\} (.*)$/gm),
      ];
      const values = lines.map(([, share, thread, value]) => [`${thread} ${share}`, Number(value)] as const);
      return Object.fromEntries(values.filter(([name]) => !name.startsWith("writer ")));
    };
    const of = (thread: string, ...values: number[]) =>
      Object.fromEntries(["p50", "p99", "max"].map((share, i) => [`${thread} ${share}`, values[i]]));
    expect(await shown()).toEqual({ ...of("front-1", 1, 2, 3), ...of("front-2", 10, 20, 30) });
    reports = [report("front-2", 5)];
    expect(await shown()).toEqual(of("front-2", 5, 10, 15));
  } finally {
    metrics.close();
  }
});
