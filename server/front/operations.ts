/**
 * The operator's own address: probes and metrics on a socket of their own, in the writer's thread, so that they answer
 * however busy the front ends are, and that whoever can reach the service cannot reach them.
 */
import type { Served } from "../../engine/registry/registry.js";
import { HttpServer } from "../http/app.js";
import { Measures } from "../http/observing/measures.js";
import { NO_PAGES } from "../http/origins.js";
import { livenessRoute, operationRoutes } from "../http/routes/service/health.js";
import type { ChosenTransport } from "../http/servers/choose.js";
import type { Services } from "../http/services.js";
import type { Logger } from "../process/logger.js";

/** A few collectors and probes; nobody sends bodies. */
const BOUNDS = { maxConnections: 64, maxBodyBytes: 1024, maxPendingBytes: 1024 * 1024, requestTimeoutSeconds: 10 };

interface OperationsParts {
  readonly registry: Pick<Served, "credentials" | "writers" | "log">;
  readonly services: Pick<Services, "readiness" | "metrics" | "tlog" | "replication">;
  readonly chosen: ChosenTransport;
  /** Whether the log is written elsewhere. */
  readonly isReadOnly: boolean;
  readonly logger: Logger;
}

/** Plain HTTP, without rate limits. What it answers is not counted among the requests of the service. */
export function openOperations({ registry, services, chosen, isReadOnly, logger }: OperationsParts): HttpServer {
  return new HttpServer({
    transport: chosen.transport,
    routes: [livenessRoute(services.readiness), ...operationRoutes(registry, services, chosen, isReadOnly)],
    pages: NO_PAGES,
    limits: null,
    trustedProxies: [],
    bounds: BOUNDS,
    tls: null,
    measures: new Measures(),
    logger,
  });
}
