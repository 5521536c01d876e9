/** A small SDK of OpenTelemetry for tests in this process: records the spans that end, and knows the active one. */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import {
  type Attributes,
  type Context,
  context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";

export interface RecordedSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly links: readonly string[];
  readonly attributes: Attributes;
  hasFailed: boolean;
  /** 1 for a span that has ended as it should. */
  ends: number;
}

/** The spans of this process from now on, in the order of their beginnings. */
export function recordSpans(): { readonly spans: RecordedSpan[]; stop(): void } {
  const spans: RecordedSpan[] = [];
  const active = new AsyncLocalStorage<Context>();
  const hex = (bytes: number) => randomBytes(bytes).toString("hex");

  function begin(name: string, kind: SpanKind, attributes: Attributes, links: readonly Link[], parent: Context): Span {
    const above = trace.getSpanContext(parent);
    const recorded: RecordedSpan = {
      name,
      kind,
      traceId: above?.traceId ?? hex(16),
      spanId: hex(8),
      parentId: above?.spanId,
      links: links.map(({ context }) => context.spanId),
      attributes: { ...attributes },
      hasFailed: false,
      ends: 0,
    };
    // As the SDK does by default: what the client's own tracer does not record is not recorded here.
    const traceFlags = above?.traceFlags ?? TraceFlags.SAMPLED;
    if (traceFlags === TraceFlags.SAMPLED) spans.push(recorded);
    const span: Span = {
      spanContext: () => ({ traceId: recorded.traceId, spanId: recorded.spanId, traceFlags }),
      setAttribute(key, value) {
        recorded.attributes[key] = value;
        return span;
      },
      setStatus({ code }) {
        recorded.hasFailed = code === SpanStatusCode.ERROR;
        return span;
      },
      end: () => void recorded.ends++,
      isRecording: () => traceFlags === TraceFlags.SAMPLED,
      setAttributes: () => span,
      addEvent: () => span,
      addLink: () => span,
      addLinks: () => span,
      updateName: () => span,
      recordException: () => {},
    };
    return span;
  }

  trace.setGlobalTracerProvider({
    getTracer: () => ({
      startSpan: (name, { kind = SpanKind.INTERNAL, attributes = {}, links = [] } = {}, parent = context.active()) =>
        begin(name, kind, attributes, links, parent),
      startActiveSpan: () => {
        throw new Error("nothing here asks for this");
      },
    }),
  });
  context.setGlobalContextManager({
    active: () => active.getStore() ?? ROOT_CONTEXT,
    with: (entered, work, self, ...args) => active.run(entered, () => work.call(self, ...args)),
    bind: (entered, target) =>
      ((...args: unknown[]) =>
        active.run(entered, () => (target as (...args: unknown[]) => unknown)(...args))) as never,
    enable() {
      return this;
    },
    disable() {
      return this;
    },
  });
  return {
    spans,
    stop() {
      trace.disable();
      context.disable();
    },
  };
}
