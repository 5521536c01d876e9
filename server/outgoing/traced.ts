/**
 * Spans of requests to other servers (OpenTelemetry), which these are told. A span may say where a request goes only if whoever
 * runs this has chosen it.
 */
import { type Attributes, SpanKind } from "@opentelemetry/api";
import { inSpan, registeredTracer } from "../../engine/base/tracing.js";
import { traceHeaders } from "../process/tracing.js";
import { type Patience, patientFetch, throughOutages } from "./patience.js";

/** Milliseconds for one attempt. */
const REQUEST_MS = 60_000;

/** Sends a request in a span of its own, in which `traceHeaders` names that span. */
export function inClientSpan<T extends { readonly status: number }>(
  method: string,
  attributes: Attributes,
  send: () => Promise<T>,
): Promise<T> {
  const options = { kind: SpanKind.CLIENT, attributes: { "http.request.method": method, ...attributes } };
  return inSpan(registeredTracer(), method, options, async (span) => {
    const answer = await send();
    span?.setAttribute("http.response.status_code", answer.status);
    return answer;
  });
}

/** A `fetch` whose requests are spans. Without an SDK of OpenTelemetry nothing is added to them. */
export function traced(send: typeof fetch = (...request) => fetch(...request)): typeof fetch {
  return (input, init) => {
    const request = input instanceof Request ? input : undefined;
    const url = new URL(request?.url ?? String(input));
    return inClientSpan(init?.method ?? request?.method ?? "GET", { "server.address": url.hostname }, () => {
      const headers = Object.fromEntries(new Headers(init?.headers ?? request?.headers));
      return send(input, { ...init, headers: { ...headers, ...traceHeaders() } });
    });
  };
}

/** Waits through rate limits and short outages, as a monitor must. All attempts of a request are one span. */
export const persistentFetch = (patience: Patience): typeof fetch =>
  traced(patientFetch(throughOutages, { requestMs: REQUEST_MS, ...patience }));
