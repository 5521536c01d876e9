/**
 * The `traceparent` of W3C Trace Context: in which trace, and below which span of it, something is a step. Requests come and
 * go with it, and so do commands and calls between the threads of a service. `tracestate` and baggage are not passed on.
 */
import { context, isSpanContextValid, ROOT_CONTEXT, type SpanContext, TraceFlags, trace } from "@opentelemetry/api";

/** Version, trace, span, flags. Later versions may have more behind a hyphen; `ff` is none. */
const FORM = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** The trace that a header names, in 32 hexadecimal digits; the empty string for a header of another form, or none. */
export const traceOf = (header: string): string => spanOf(header)?.traceId ?? "";

/** Does `work` below the span that a text names, whether or not its form is right. */
export function inTrace<T>(traceparent: string, work: () => T): T {
  const span = spanOf(traceparent);
  return context.with(span ? trace.setSpanContext(ROOT_CONTEXT, span) : ROOT_CONTEXT, work);
}

/** The active span as a text; the empty string if there is none. */
export function traceparent(): string {
  const span = trace.getSpanContext(context.active());
  if (!span || !isSpanContextValid(span)) return "";
  return `00-${span.traceId}-${span.spanId}-${span.traceFlags & TraceFlags.SAMPLED ? "01" : "00"}`;
}

/** The header of a request to another server, if there is an active span. */
export function traceHeaders(): { readonly traceparent?: string } {
  const value = traceparent();
  return value ? { traceparent: value } : {};
}

function spanOf(text: string): SpanContext | null {
  const [, version, traceId = "", spanId = "", flags = "", more] = FORM.exec(text) ?? [];
  if (!traceId || (version === "00" && more !== undefined)) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}
