/** Metrics of what the front ends have counted, all of them together. */
import { Counter, Gauge, type Registry } from "prom-client";
import { added, BOUNDS, type FrontFigures, type TallyFigures } from "./measures.js";

const DURATION = "cairnlog_http_request_duration_seconds";
const DURATION_HELP = "From the last header read to the last byte written.";

type Countable = { readonly [K in keyof FrontFigures]: FrontFigures[K] extends number ? K : never }[keyof FrontFigures];

/** Metrics that are sums over all front ends. */
const SUMS: readonly (readonly [Kind: typeof Gauge | typeof Counter, figure: Countable, name: string, help: string])[] =
  [
    [Gauge, "connections", "cairnlog_http_connections", "Open connections."],
    [
      Counter,
      "connectionsRefused",
      "cairnlog_http_connections_refused_total",
      "Connections closed at once because there were too many.",
    ],
    [Gauge, "inFlight", "cairnlog_http_in_flight", "Requests being handled or answered."],
    [Gauge, "arriving", "cairnlog_http_arriving", "Bodies that have not arrived in full."],
    [Gauge, "bodyBytes", "cairnlog_http_body_bytes", "Bytes of bodies held."],
    [Gauge, "slowAnswers", "cairnlog_http_slow_answers", "Answers that are read slowly."],
    [Gauge, "answerBytes", "cairnlog_http_answer_bytes", "Bytes held of answers that are read slowly."],
    [Counter, "givenUp", "cairnlog_http_given_up_total", "Bodies and answers given up to make room for others."],
    [Counter, "aborted", "cairnlog_http_aborted_total", "Requests whose client left before the answer was sent."],
  ];

/** Adds the metrics to `registry`, but for the durations (`requestDurations`). @param fronts the figures of every front end, as they are when metrics are shown */
export function addRequestMetrics(registry: Registry, fronts: () => readonly FrontFigures[]): void {
  const registers = [registry];
  for (const [Kind, figure, name, help] of SUMS) {
    const collect = function (this: Gauge | Counter) {
      this.reset();
      this.inc(fronts().reduce((sum, front) => sum + front[figure], 0));
    };
    new Kind({ name, help, registers, collect });
  }
  new Gauge({
    name: "cairnlog_http_info",
    help: "The HTTP library that serves: uws or node.",
    labelNames: ["transport"],
    registers,
    collect() {
      this.reset();
      for (const { transport } of fronts()) this.set({ transport }, 1);
    },
  });
  new Counter({
    name: "cairnlog_refusals_total",
    help: "Requests refused, by the code of the problem document.",
    labelNames: ["code"],
    registers,
    collect() {
      this.reset();
      for (const { refusals } of fronts()) for (const [code, count] of refusals) this.inc({ code }, count);
    },
  });
  new Counter({
    name: "cairnlog_http_requests_total",
    help: "Requests answered.",
    labelNames: ["method", "route", "status"],
    registers,
    collect() {
      this.reset();
      for (const { method, route, statuses } of talliesOf(fronts()))
        for (const [status, count] of statuses) this.inc({ method, route, status }, count);
    },
  });
}

/**
 * How long the requests took, in Prometheus' text format. The library's histogram takes values one by one only, and spends
 * 2 µs on each line. A route that was asked for has sixteen lines.
 */
export function requestDurations(fronts: readonly FrontFigures[]): string {
  const head = `# HELP ${DURATION} ${DURATION_HELP}\n# TYPE ${DURATION} histogram\n`;
  return head + talliesOf(fronts).map(linesOf).join("");
}

const talliesOf = (fronts: readonly FrontFigures[]) => added(fronts.flatMap((front) => front.tallies));

/** The lines of one tally. Prometheus needs cumulative buckets. Methods and routes have no character to be escaped. */
function linesOf({ method, route, buckets, seconds }: TallyFigures): string {
  const labels = `method="${method}",route="${route}"`;
  let [text, count] = ["", 0];
  for (const [i, answers] of buckets.entries()) {
    count += answers;
    text += `${DURATION}_bucket{le="${BOUNDS[i] ?? "+Inf"}",${labels}} ${count}\n`;
  }
  return `${text}${DURATION}_sum{${labels}} ${seconds}\n${DURATION}_count{${labels}} ${count}\n`;
}
