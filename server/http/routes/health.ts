/** Probes: is it there, is it alive, can it do its work, what does it measure. */
import Type from "typebox";
import type { OperatorKey } from "../../../engine/crypto/operator-key.js";
import { verifySync } from "../../../engine/crypto/signatures.js";
import { CairnlogError } from "../../../engine/error.js";
import type { Log } from "../../../engine/log/log.js";
import type { Registry } from "../../../engine/registry/registry.js";
import { decodeBase64, treeHeadMessage } from "../../../engine/verify/index.js";
import { VERSION } from "../../version.js";
import { Alive, Health, Ready } from "../../wire/health.js";
import { Answer } from "../answer.js";
import type { Metrics } from "../metrics.js";
import { type Route, route } from "../route.js";

/** No tree head reads like this: a head's message begins with 64 hexadecimal characters. */
const PROBE = Buffer.from("service.readiness.probe.v1");
/** Milliseconds for which a verdict holds: probes are not limited, and each costs two signatures. */
const VERDICT_MS = 1_000;

/** Told at the start and by `/readyz` while no hardware roots are set. */
export const DECLARATIONS_BELIEVED =
  "SERVICE_HARDWARE_ROOTS is not set: a credential of the type hardware is taken for hardware-backed on its holder's word.";

/** `GET /api/v1/health`, `/livez`, `/readyz`, `/metrics`. */
export function healthRoutes(
  { log, credentials }: Pick<Registry, "log" | "credentials">,
  operator: OperatorKey,
  metrics: Metrics,
  isReadOnly: boolean,
): Route[] {
  const isReady = readiness(log, operator, isReadOnly);
  return [
    route({
      method: "GET",
      path: "/api/v1/health",
      summary: "Whether the service is there, and its version",
      answer: Health,
      limit: "general",
      handle: () => ({ status: "ok", version: VERSION, ...(isReadOnly ? { read_only: true as const } : {}) }) as const,
    }),
    route({
      method: "GET",
      path: "/livez",
      summary: "Whether the process answers",
      answer: Alive,
      limit: null,
      handle: () => ({ status: "ok" }) as const,
    }),
    route({
      method: "GET",
      path: "/readyz",
      summary: "Whether the newest entry has a valid tree head and the operator key can sign",
      answer: Ready,
      limit: null,
      async handle() {
        if (!(await isReady()))
          throw new CairnlogError(
            "signer-unavailable",
            "The operator key cannot sign, or the newest head is not valid.",
          );
        const warnings = credentials.believesDeclarations ? { warnings: [DECLARATIONS_BELIEVED] } : {};
        return { status: "ok", ...warnings } as const;
      },
    }),
    route({
      method: "GET",
      path: "/metrics",
      summary: "Measurements in the Prometheus text format",
      answer: Type.String(),
      answerType: "text/plain",
      limit: null,
      handle: async () => new Answer(Buffer.from(await metrics.text()), { contentType: metrics.contentType }),
    }),
  ];
}

/** Whether an append would succeed now, or on a mirror, whether its head is good; asked at most once in `VERDICT_MS`. */
function readiness(log: Log, operator: OperatorKey, isReadOnly: boolean): () => Promise<boolean> {
  let verdict: Promise<boolean> | null = null;
  let until = 0;
  return () => {
    if (!verdict || Date.now() >= until) {
      until = Date.now() + VERDICT_MS;
      verdict = examine(log, operator, isReadOnly).catch(() => false);
    }
    return verdict;
  };
}

async function examine(log: Log, operator: OperatorKey, isReadOnly: boolean): Promise<boolean> {
  if (log.size) {
    const head = log.treeHead();
    const signature = head && decodeBase64(head.signature);
    if (!signature) return false;
    const message = treeHeadMessage(head.root_hash, head.tree_size, head.timestamp);
    if (!verifySync(operator.public, message, signature)) return false;
  }
  if (isReadOnly) return true;
  const [signature] = await operator.sign([PROBE]);
  return signature !== undefined && verifySync(operator.public, PROBE, signature);
}
