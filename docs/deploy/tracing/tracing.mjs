// Sends the spans of cairnlog to a collector by OTLP over HTTP. Copy this folder to /etc/cairnlog/tracing, run `npm install`
// there, and give the service
//   NODE_OPTIONS="--import /etc/cairnlog/tracing/tracing.mjs"
// which every thread of it obeys (`node --import` reaches only the first). The SDK reads OTEL_EXPORTER_OTLP_ENDPOINT
// (http://localhost:4318), OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG. These are the newest versions for Node 20;
// 0.300 of the exporter wants 22.15.
import { threadId } from "node:worker_threads";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

const service = process.env.OTEL_SERVICE_NAME ?? "cairnlog";
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": service, "process.pid": process.pid, "thread.id": threadId }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter(), { scheduledDelayMillis: 1000 })],
});
provider.register();

// A thread that ends sends what it still has.
process.once("beforeExit", () => void provider.shutdown());
