/** The route table. */
import type { Served } from "../../../engine/registry/registry.js";
import type { Gate } from "../gate.js";
import type { Origins } from "../origins.js";
import { ReplicaLag } from "../replica-lag.js";
import type { Route } from "../route/route.js";
import type { ChosenTransport } from "../servers/choose.js";
import type { Services } from "../services.js";
import type { Sessions } from "../sessions.js";
import { accountRoutes } from "./identity/accounts.js";
import { authRoutes } from "./identity/auth.js";
import { keyRoutes } from "./identity/keys.js";
import { anchoringRoutes } from "./log/anchoring.js";
import { auditExportRoutes } from "./log/audit-export.js";
import { logRoutes, withholdingRoutes } from "./log/log.js";
import { logQueryRoutes } from "./log/log-queries.js";
import { mirrorRoutes } from "./log/mirrors.js";
import { shardRoutes } from "./log/shards.js";
import { tlogRoutes } from "./log/tlog.js";
import { atNode, readOnly, untilFrozen } from "./roles/roles.js";
import { healthRoutes, operationRoutes, writersRoute } from "./service/health.js";
import { nodeRoutes } from "./service/node.js";
import { descriptionRoutes } from "./service/openapi.js";
import { webhookRoutes } from "./service/webhooks.js";
import { attestationRoutes } from "./signing/attestations.js";
import { claimRoutes } from "./signing/claims.js";
import { endorsementRoutes } from "./signing/endorsements.js";
import { inboxRoutes, requestRoutes } from "./signing/requests.js";
import { trustRoutes } from "./signing/trust.js";
import { compositeRoutes, verifyRoutes } from "./signing/verify.js";

/** Authentication and authorisation, and the names under which the service is asked for them. */
interface Access {
  readonly origins: Origins;
  readonly sessions: Sessions;
  readonly gate: Gate;
}

interface RouteOptions {
  /** Whether the log is written elsewhere. */
  readonly isReadOnly?: boolean;
  /** Attestations that an address may make in the window of their limit; null when nothing is limited. */
  readonly attestations?: number | null;
  /** Whether the log is that of `cairnlog demo`. */
  readonly isDemonstration?: boolean;
  /** Whether `/readyz` and `/metrics` have an address of their own, and are not among the routes therefore. */
  readonly operatesApart?: boolean;
  /** Whether the service shows its log at `/`. */
  readonly explorer?: boolean;
}

/** `routes` as a service answers them that may not write the log, or may not have all of it. */
export function asHere(
  routes: readonly Route[],
  log: Served["log"],
  replication: Services["replication"],
  isReadOnly: boolean,
): readonly Route[] {
  const reach = new ReplicaLag(log, replication?.role ?? null);
  if (isReadOnly) {
    const offered = readOnly(routes);
    return replication ? atNode(offered, replication, reach) : offered.map((row) => reach.before(row));
  }
  return untilFrozen(replication ? atNode(routes, replication, reach) : routes, log);
}

/** All routes of the API. */
export function routeTable(
  registry: Served,
  services: Services,
  chosen: ChosenTransport,
  { origins, sessions, gate }: Access,
  {
    isReadOnly = false,
    attestations = null,
    isDemonstration = false,
    operatesApart = false,
    explorer = false,
  }: RouteOptions = {},
): Route[] {
  const { readiness, anchoring, checkpoints, tlog, replication, verification } = services;
  const all = [
    ...healthRoutes(readiness, { isReadOnly, attestations, isDemonstration }),
    writersRoute(registry),
    ...nodeRoutes(replication),
    ...(operatesApart ? [] : operationRoutes(registry, services, chosen, isReadOnly)),
    ...accountRoutes(registry),
    ...keyRoutes(registry, gate),
    ...authRoutes(registry, { origins, sessions, gate }),
    ...attestationRoutes(registry, gate),
    ...logRoutes(registry.log, verification),
    ...mirrorRoutes(registry.log, checkpoints),
    ...tlogRoutes(registry.log, tlog),
    ...anchoringRoutes(registry.writer, anchoring, gate),
    ...shardRoutes(registry, gate),
    ...withholdingRoutes(registry, gate),
    ...logQueryRoutes(registry),
    ...endorsementRoutes(registry, gate),
    ...trustRoutes(registry, gate),
    ...verifyRoutes(registry),
    ...compositeRoutes(),
    ...auditExportRoutes(registry),
    ...claimRoutes(registry, gate),
    ...requestRoutes(registry, gate),
    ...inboxRoutes(registry, gate),
    ...webhookRoutes(registry, gate),
  ];
  const routes = asHere(all, registry.log, replication, isReadOnly);
  return [...routes, ...descriptionRoutes(routes, explorer)];
}
