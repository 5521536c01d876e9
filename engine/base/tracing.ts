/**
 * Spans of OpenTelemetry, for a program that brings an SDK: it registers its provider before it opens a log or a service.
 * Without one there is no tracer, and nothing of a request is measured or remembered.
 */
import {
  type Context,
  context,
  type ProxyTracerProvider,
  type Span,
  type SpanOptions,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";

/**
 * The tracer of the SDK that is registered now; null if there is none. What is made for every request or batch asks once,
 * when it is made.
 */
export function registeredTracer(): Tracer | null {
  const provider = trace.getTracerProvider() as ProxyTracerProvider;
  return provider.getDelegateTracer("cairnlog") ?? null;
}

/**
 * Does `work` in a span of its own below that of `parent`. Without a tracer, `work` is all that is done.
 * @throws what `work` throws
 */
export async function inSpan<T>(
  tracer: Tracer | null,
  name: string,
  options: SpanOptions,
  work: (span: Span | null) => Promise<T>,
  parent: Context = context.active(),
): Promise<T> {
  if (!tracer) return work(null);
  const span = tracer.startSpan(name, options, parent);
  try {
    return await context.with(trace.setSpan(parent, span), work, undefined, span);
  } catch (error) {
    failed(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** Says that what a span measures has failed. Of an error only its code or class: sentences may quote what a client sent. */
export function failed(span: Span, error: unknown): void {
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  span.setAttribute("error.type", String(code ?? name ?? "error"));
  span.setStatus({ code: SpanStatusCode.ERROR });
}
