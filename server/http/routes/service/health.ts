/** Probes and metrics. */
import Type from "typebox";
import type { Served } from "../../../../engine/registry/registry.js";
import { VERSION } from "../../../version.js";
import { Alive, Health, Ready } from "../../../wire/health.js";
import { type Route, route } from "../../route.js";
import type { Services } from "../../services.js";
import { Answer } from "../../transport/answer.js";
import type { ChosenTransport } from "../../transport/choose.js";

/** A warning at the start and in `/readyz` as long as no hardware roots are set. */
export const DECLARATIONS_BELIEVED =
  "SERVICE_HARDWARE_ROOTS is not set: a credential of the type hardware is taken for hardware-backed on its holder's word.";

/** Told at the start and by `/readyz` where nobody chose `node:http`, and it serves. */
export const UWS_DOES_NOT_LOAD =
  "uWebSockets.js does not load on this machine, so node:http serves. Each request takes more CPU. The log says why.";

/** `GET /api/v1/health`, `/livez`, `/readyz`, `/metrics`. */
export function healthRoutes(
  { credentials }: Pick<Served, "credentials">,
  readiness: Services["readiness"],
  metrics: Services["metrics"],
  { transport, whyNotUws }: ChosenTransport,
  isReadOnly: boolean,
): Route[] {
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
      summary: "Whether the process answers, and can use its log",
      answer: Alive,
      limit: null,
      handle() {
        readiness.checkAlive();
        return { status: "ok" } as const;
      },
    }),
    route({
      method: "GET",
      path: "/readyz",
      summary: "Whether an append would succeed: newest tree head, operator key, disk",
      answer: Ready,
      limit: null,
      async handle() {
        const warnings = [...(await readiness.check())];
        if (credentials.believesDeclarations) warnings.push(DECLARATIONS_BELIEVED);
        if (whyNotUws !== null) warnings.push(UWS_DOES_NOT_LOAD);
        return { status: "ok", transport: transport.name, ...(warnings.length ? { warnings } : {}) } as const;
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
