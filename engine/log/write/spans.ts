/** The sequencer's spans: one for each command, and one for each batch with its stages. They belong to the writer's thread. */
import {
  type Context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { failed, inSpan } from "../../base/tracing.js";
import type { FormedBatch, QueuedCommand } from "./forming.js";

/** Number of commands that the span of a batch names. */
const MAX_LINKS = 128;

export class WriteSpans {
  readonly #tracer: Tracer;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** The command, with a span below the active one that ends when the command is answered. */
  command(waiting: QueuedCommand): QueuedCommand {
    const span = this.#tracer.startSpan(waiting.command.name);
    return {
      ...waiting,
      trace: span.spanContext(),
      resolve: (committed) => {
        span.end();
        waiting.resolve(committed);
      },
      reject: (error) => {
        failed(span, error);
        span.end();
        waiting.reject(error);
      },
    };
  }

  /**
   * The span of a batch, which begins where its forming began. It is below that of the first command that is recorded, and
   * names the others. Null for a batch of which none is.
   */
  batch({ ran, events, firstIndex, forming }: FormedBatch): BatchSpan | null {
    const recorded = ran.flatMap(({ waiting }) => (isRecorded(waiting.trace) ? [waiting.trace] : []));
    const [first, ...others] = recorded;
    if (!first) return null;
    const attributes = {
      "cairnlog.first_index": firstIndex,
      "cairnlog.entries": events.length,
      "cairnlog.commands": ran.length,
    };
    const links = others.slice(0, MAX_LINKS).map((context): Link => ({ context }));
    const startTime = performance.now() - forming * 1000;
    const options = { attributes, links, startTime };
    return new BatchSpan(
      this.#tracer,
      this.#tracer.startSpan("batch", options, trace.setSpanContext(ROOT_CONTEXT, first)),
    );
  }
}

class BatchSpan {
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #context: Context;

  constructor(tracer: Tracer, span: Span) {
    this.#tracer = tracer;
    this.#span = span;
    this.#context = trace.setSpan(ROOT_CONTEXT, span);
  }

  /** Does the work of a stage in a span of its own. @throws what `work` throws */
  stage<T>(name: string, work: () => Promise<T>): Promise<T> {
    return inSpan(this.#tracer, name, {}, work, this.#context);
  }

  /** Ends it. */
  fail(error: unknown): void {
    failed(this.#span, error);
    this.end();
  }

  /** By the clock by which it began: an SDK measures with it only what it began itself. */
  end(): void {
    this.#span.end(performance.now());
  }
}

const isRecorded = (span: SpanContext | undefined): span is SpanContext =>
  span !== undefined && (span.traceFlags & TraceFlags.SAMPLED) !== 0;
