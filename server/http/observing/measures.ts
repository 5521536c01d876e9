/**
 * What one front end counts of its requests: plain numbers, which become metrics only when Prometheus asks. It belongs to
 * the thread of the front end; `figures` is what other threads get of it. And the span of a request.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import { inTrace } from "../../process/tracing.js";
import type { Uploads } from "../body/body.js";
import type { PendingBytes } from "../transport/pending.js";
import type { Request } from "../transport/request.js";
import type { TransportName } from "../transport/transport.js";

/**
 * Counts requests by status and duration. The counts are plain numbers, which become metrics only when Prometheus asks:
 * finding a counter by its labels cost 3 µs for each read request.
 */

/** Bounds of the buckets in seconds. An append takes a few milliseconds, a verification of the whole log takes minutes. */
export const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

/** The counts of a tally. Plain data, for a message to another thread. */
export interface TallyFigures {
  readonly method: string;
  readonly route: string;
  /** Answers by status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** Number of answers in each bucket, which ends at the bound of the same index; the last has all slower answers. */
  readonly buckets: Float64Array;
  readonly seconds: number;
}

/**
 * The requests of one method on one route. The service chooses both texts: a client that could choose them could fill
 * memory.
 */
export class Tally implements TallyFigures {
  readonly method: string;
  readonly route: string;
  /** Answers by status. */
  readonly statuses = new Map<number, number>();
  /** Number of answers in each bucket, which ends at the bound of the same index; the last has all slower answers. */
  readonly buckets = new Float64Array(BOUNDS.length + 1);
  seconds = 0;

  constructor(method: string, route: string) {
    this.method = method;
    this.route = route;
  }

  /** Counts one answered request. */
  answered(status: number, seconds: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    let bucket = 0;
    while (bucket < BOUNDS.length && seconds > BOUNDS[bucket]!) bucket++;
    this.buckets[bucket]!++;
    this.seconds += seconds;
  }
}

export class Tallies {
  readonly #tallies: Tally[] = [];

  /** A new tally. It is shown when it has counted something. */
  open(method: string, route: string): Tally {
    const tally = new Tally(method, route);
    this.#tallies.push(tally);
    return tally;
  }

  /** The tallies that have counted something. */
  figures(): TallyFigures[] {
    return this.#tallies
      .filter(({ statuses }) => statuses.size > 0)
      .map(({ method, route, statuses, buckets, seconds }) => ({ method, route, statuses, buckets, seconds }));
  }
}

/** The sums of tallies of one method and route, in several front ends. */
export function added(tallies: Iterable<TallyFigures>): TallyFigures[] {
  const sums = new Map<
    string,
    { statuses: Map<number, number>; buckets: Float64Array; seconds: number } & TallyFigures
  >();
  for (const { method, route, statuses, buckets, seconds } of tallies) {
    const name = `${method} ${route}`;
    let sum = sums.get(name);
    if (!sum) {
      sum = { method, route, statuses: new Map(), buckets: new Float64Array(buckets.length), seconds: 0 };
      sums.set(name, sum);
    }
    for (const [status, count] of statuses) sum.statuses.set(status, (sum.statuses.get(status) ?? 0) + count);
    for (const [i, count] of buckets.entries()) sum.buckets[i]! += count;
    sum.seconds += seconds;
  }
  return [...sums.values()];
}

/** Milliseconds between two measurements of the delay of timers. */
const DELAY_RESOLUTION_MS = 20;

/** How late timers came since the last look, in seconds. */
export interface Lateness {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** The delay of timers in one thread: the time for which it was busy. */
export class Delay {
  readonly #histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });

  constructor() {
    this.#histogram.enable();
  }

  /** What was measured since the last call. */
  take(): Lateness {
    const histogram = this.#histogram;
    const [p50, p99] = [50, 99].map((percentile) => late(histogram.percentile(percentile) || 0)) as [number, number];
    const max = late(histogram.count ? histogram.max : 0);
    histogram.reset();
    return { p50, p99, max };
  }

  close(): void {
    this.#histogram.disable();
  }
}

/** Seconds by which a timer was late. Timers are never early. The measured value is the whole interval. */
const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - DELAY_RESOLUTION_MS / 1000);

/** What the HTTP server of a front end holds for its clients. */
interface HttpFigures {
  readonly transport: TransportName;
  readonly uploads: Pick<Uploads, "arriving"> & { readonly pending: Pick<PendingBytes, "held" | "givenUp"> };
  readonly answers: Pick<PendingBytes, "waiting" | "held" | "givenUp">;
  readonly connections: number;
  readonly connectionsRefused: number;
  readonly inFlight: number;
}

/** The numbers of a front end. Plain data, for a message to another thread. */
export interface FrontFigures {
  readonly transport: TransportName;
  readonly connections: number;
  readonly connectionsRefused: number;
  readonly inFlight: number;
  /** Bodies that have not arrived in full, and bytes of bodies held. */
  readonly arriving: number;
  readonly bodyBytes: number;
  /** Answers that are read slowly, and bytes of them held. */
  readonly slowAnswers: number;
  readonly answerBytes: number;
  /** Bodies and answers given up to make room for others. */
  readonly givenUp: number;
  readonly aborted: number;
  /** By the code of the problem document. */
  readonly refusals: readonly (readonly [code: string, count: number])[];
  readonly tallies: readonly TallyFigures[];
}

/** The counts of two front ends that have ended, or one and `past` ones. They hold nothing for anybody any more. */
export function pastOf(past: FrontFigures | null, ended: FrontFigures): FrontFigures {
  const both = past ? [past, ended] : [ended];
  const sum = (figure: "connectionsRefused" | "givenUp" | "aborted") =>
    both.reduce((all, figures) => all + figures[figure], 0);
  const refusals = new Map<string, number>();
  for (const [code, count] of both.flatMap((figures) => figures.refusals))
    refusals.set(code, (refusals.get(code) ?? 0) + count);
  return {
    transport: ended.transport,
    connections: 0,
    connectionsRefused: sum("connectionsRefused"),
    inFlight: 0,
    arriving: 0,
    bodyBytes: 0,
    slowAnswers: 0,
    answerBytes: 0,
    givenUp: sum("givenUp"),
    aborted: sum("aborted"),
    refusals: [...refusals],
    tallies: added(both.flatMap((figures) => figures.tallies)),
  };
}

export class Measures {
  readonly tallies = new Tallies();
  readonly #refusals = new Map<string, number>();
  #aborted = 0;

  /** Counts a refused request, by its error code, which the service chose. */
  refused(code: string): void {
    this.#refusals.set(code, (this.#refusals.get(code) ?? 0) + 1);
  }

  /** Counts a request whose client closed the connection. */
  aborted(): void {
    this.#aborted++;
  }

  figures({ transport, uploads, answers, connections, connectionsRefused, inFlight }: HttpFigures): FrontFigures {
    return {
      transport,
      connections,
      connectionsRefused,
      inFlight,
      arriving: uploads.arriving,
      bodyBytes: uploads.pending.held,
      slowAnswers: answers.waiting,
      answerBytes: answers.held,
      givenUp: uploads.pending.givenUp + answers.givenUp,
      aborted: this.#aborted,
      refusals: [...this.#refusals],
      tallies: this.tallies.figures(),
    };
  }
}

// The span of a request, for the SDK that a program brings. Nothing in it is the client's choice but the request's id.

/** Begins below the span that `traceparent` names. @param method null for one that the path does not know */
export function requestSpan(tracer: Tracer, request: Request, method: string | null, route: string): Span {
  const attributes = {
    "http.request.method": method ?? "_OTHER",
    "http.route": route,
    "cairnlog.request_id": request.id,
  };
  const begin = () => tracer.startSpan(`${method ?? "HTTP"} ${route}`, { kind: SpanKind.SERVER, attributes });
  return inTrace(request.traceparent, begin);
}

/** Does `work` as a step of a request. */
export const asStep = <T>(span: Span, work: () => T): T => context.with(trace.setSpan(context.active(), span), work);

/** Of an answer that was sent. What the client is to blame for is no error of the service. */
export function answered(span: Span, status: number): void {
  span.setAttribute("http.response.status_code", status);
  if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
}
