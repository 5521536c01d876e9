/** `fetch` for requests to servers that whoever runs this has chosen: each is a span, which the server is told. */
import { SpanKind } from "@opentelemetry/api";
import { inSpan, registeredTracer } from "../../engine/base/tracing.js";
import { traceHeaders } from "../process/tracing.js";

/**
 * Sends requests by `send`. Without an SDK of OpenTelemetry nothing is added to them.
 * @param send `fetch`, if absent
 */
export function traced(send: typeof fetch = (...request) => fetch(...request)): typeof fetch {
  return (input, init) => {
    const tracer = registeredTracer();
    if (!tracer) return send(input, init);
    const method = init?.method ?? "GET";
    const url = new URL(input instanceof Request ? input.url : input);
    const attributes = { "http.request.method": method, "server.address": url.hostname };
    return inSpan(tracer, method, { kind: SpanKind.CLIENT, attributes }, async (span) => {
      const headers = { ...Object.fromEntries(new Headers(init?.headers)), ...traceHeaders() };
      const response = await send(input, { ...init, headers });
      span?.setAttribute("http.response.status_code", response.status);
      return response;
    });
  };
}
