/** The span of a request, for the SDK that a program brings. Nothing in it is the client's choice but the request's id. */
import { context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import { inTrace } from "../../process/tracing.js";
import type { Request } from "../transport/request.js";

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
