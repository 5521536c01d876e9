/** The route table. */
import type { OperatorKey } from "../../../engine/crypto/operator-key.js";
import { Checkpoints, defaultLogName } from "../../../engine/log/checkpoints.js";
import type { Registry } from "../../../engine/registry/registry.js";
import type { Anchoring } from "../../anchoring/anchoring.js";
import type { Gate } from "../gate.js";
import type { Metrics } from "../metrics.js";
import type { Readiness } from "../readiness.js";
import type { Route } from "../route.js";
import type { Sessions } from "../sessions.js";
import { accountRoutes } from "./accounts.js";
import { anchoringRoutes } from "./anchoring.js";
import { attestationRoutes } from "./attestations.js";
import { auditExportRoutes } from "./audit-export.js";
import { authRoutes } from "./auth.js";
import { claimRoutes } from "./claims.js";
import { compositeRoutes } from "./composites.js";
import { endorsementRoutes } from "./endorsements.js";
import { healthRoutes } from "./health.js";
import { inboxRoutes } from "./inbox.js";
import { keyRoutes } from "./keys.js";
import { logRoutes } from "./log.js";
import { logQueryRoutes } from "./log-queries.js";
import { mirrorRoutes } from "./mirrors.js";
import { descriptionRoutes } from "./openapi.js";
import { readOnly } from "./read-only.js";
import { requestRoutes } from "./requests.js";
import { trustRoutes } from "./trust.js";
import { verifyRoutes } from "./verify.js";
import { webhookRoutes } from "./webhooks.js";

/** Who may do what. */
export interface Access {
  readonly sessions: Sessions;
  readonly gate: Gate;
}

/** How it goes. */
export interface Watch {
  readonly metrics: Metrics;
  readonly readiness: Readiness;
}

/** Everything that the service answers. @param mirrored checkpoints of a log that is only read here */
export function routeTable(
  registry: Registry,
  operator: OperatorKey,
  { metrics, readiness }: Watch,
  { sessions, gate }: Access,
  anchoring: Anchoring,
  logName = defaultLogName(operator.fingerprint),
  mirrored: Pick<Checkpoints, "newest"> | null = null,
): Route[] {
  const all = [
    ...healthRoutes(registry, readiness, metrics, mirrored !== null),
    ...accountRoutes(registry),
    ...keyRoutes(registry, gate),
    ...authRoutes(registry, sessions, gate),
    ...attestationRoutes(registry),
    ...logRoutes(registry.log, operator),
    ...mirrorRoutes(registry.log, mirrored ?? new Checkpoints(registry.log, operator, logName)),
    ...anchoringRoutes(registry.log, anchoring, gate),
    ...logQueryRoutes(registry.log, registry.keys),
    ...endorsementRoutes(registry, gate),
    ...trustRoutes(registry, gate),
    ...verifyRoutes(registry),
    ...compositeRoutes(),
    ...auditExportRoutes(registry.log),
    ...claimRoutes(registry, gate),
    ...requestRoutes(registry, gate),
    ...inboxRoutes(registry, gate),
    ...webhookRoutes(registry, gate),
  ];
  const routes = mirrored ? readOnly(all) : all;
  return [...routes, ...descriptionRoutes(routes)];
}
