/** The route table. */
import type { OperatorKey } from "../../../engine/crypto/keys/operator-key.js";
import { Checkpoints, defaultLogName } from "../../../engine/log/tree/checkpoints.js";
import type { Registry } from "../../../engine/registry/registry.js";
import type { Anchoring } from "../../anchoring/anchoring.js";
import type { Gate } from "../gate.js";
import type { Metrics } from "../observing/metrics.js";
import type { Readiness } from "../observing/readiness.js";
import type { Route } from "../route.js";
import type { Sessions } from "../sessions.js";
import type { ChosenTransport } from "../transport/choose.js";
import { accountRoutes } from "./identity/accounts.js";
import { authRoutes } from "./identity/auth.js";
import { keyRoutes } from "./identity/keys.js";
import { anchoringRoutes } from "./log/anchoring.js";
import { auditExportRoutes } from "./log/audit-export.js";
import { logRoutes } from "./log/log.js";
import { logQueryRoutes } from "./log/log-queries.js";
import { mirrorRoutes } from "./log/mirrors.js";
import { readOnly } from "./read-only.js";
import { healthRoutes } from "./service/health.js";
import { descriptionRoutes } from "./service/openapi.js";
import { webhookRoutes } from "./service/webhooks.js";
import { attestationRoutes } from "./signing/attestations.js";
import { claimRoutes } from "./signing/claims.js";
import { compositeRoutes } from "./signing/composites.js";
import { endorsementRoutes } from "./signing/endorsements.js";
import { inboxRoutes } from "./signing/inbox.js";
import { requestRoutes } from "./signing/requests.js";
import { trustRoutes } from "./signing/trust.js";
import { verifyRoutes } from "./signing/verify.js";

/** Authentication and authorisation. */
export interface Access {
  readonly sessions: Sessions;
  readonly gate: Gate;
}

/** Health and metrics. */
export interface Watch {
  readonly metrics: Metrics;
  readonly readiness: Readiness;
  readonly chosen: ChosenTransport;
}

/** All routes of the service. @param mirrored checkpoints of a log that this process only reads */
export function routeTable(
  registry: Registry,
  operator: OperatorKey,
  { metrics, readiness, chosen }: Watch,
  { sessions, gate }: Access,
  anchoring: Anchoring,
  // After the first key, so that a rotation does not rename the log.
  logName = defaultLogName(registry.log.operators.first.fingerprint),
  mirrored: Pick<Checkpoints, "newest"> | null = null,
): Route[] {
  const all = [
    ...healthRoutes(registry, readiness, metrics, chosen, mirrored !== null),
    ...accountRoutes(registry),
    ...keyRoutes(registry, gate),
    ...authRoutes(registry, sessions, gate),
    ...attestationRoutes(registry, gate),
    ...logRoutes(registry.log),
    ...mirrorRoutes(registry.log, mirrored ?? new Checkpoints(registry.log, operator, logName)),
    ...anchoringRoutes(registry.log, anchoring, gate),
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
  const routes = mirrored ? readOnly(all) : all;
  return [...routes, ...descriptionRoutes(routes)];
}
