/** Probes and metrics. */
import { Health, Ready, WritersRule } from "../../../../engine/contract/service/health.js";
import type { Served } from "../../../../engine/registry/registry.js";
import { VERSION } from "../../../process/version.js";
import { LIMITS } from "../../limits/limits.js";
import { livenessRoute, metricsRoute } from "../../observing/probes.js";
import { type Route, route } from "../../route/route.js";
import type { ChosenTransport } from "../../servers/choose.js";
import type { Services } from "../../services.js";
import { frozenEnd } from "../log/shards.js";
import { described } from "./node.js";

/** A warning at the start and in `/readyz` as long as no hardware roots are set. */
export const DECLARATIONS_BELIEVED =
  "SERVICE_HARDWARE_ROOTS is not set: a credential of the type hardware is taken for hardware-backed on its holder's word.";

/** Told at the start and by `/readyz` where nobody chose `node:http`, and it serves. */
export const UWS_DOES_NOT_LOAD =
  "uWebSockets.js does not load on this machine, so node:http serves. Each request takes more CPU. The log says why.";

interface HealthOptions {
  /** Whether the log is written elsewhere. */
  readonly isReadOnly: boolean;
  /** Attestations that an address may make in the window of their limit; null when nothing is limited. */
  readonly attestations: number | null;
  /** Whether the log is that of `cairnlog demo`. */
  readonly isDemonstration: boolean;
}

/** `GET /api/v1/health`, `/livez`. */
export const healthRoutes = (
  readiness: Services["readiness"],
  { isReadOnly, attestations, isDemonstration }: HealthOptions,
): Route[] => [
  route({
    method: "GET",
    path: "/api/v1/health",
    summary: "Whether the service is there, and its version",
    answer: Health,
    limit: "general",
    handle: () => ({
      status: "ok" as const,
      version: VERSION,
      ...(attestations === null || isReadOnly
        ? {}
        : { attestation_limit: { requests: attestations, seconds: LIMITS.attestation.seconds } }),
      ...(isReadOnly ? { read_only: true as const } : {}),
      ...(isDemonstration ? { demonstration: true as const } : {}),
    }),
  }),
  livenessRoute(() => readiness.checkAlive()),
];

/** `GET /api/v1/writers`. The list of a log is nobody's, so it is not part of the answer. */
export const writersRoute = ({ writers }: Pick<Served, "writers">): Route =>
  route({
    method: "GET",
    path: "/api/v1/writers",
    summary: "Who may write to the log",
    answer: WritersRule,
    limit: "general",
    handle: () => writers.view,
  });

/** What is for the operator, and may have an address of its own: `GET /readyz`, `/metrics`. */
export function operationRoutes(
  { credentials, writers, log }: Pick<Served, "credentials" | "writers" | "log">,
  { readiness, metrics, tlog, replication }: Pick<Services, "readiness" | "metrics" | "tlog" | "replication">,
  { transport, whyNotUws }: ChosenTransport,
  isReadOnly: boolean,
): Route[] {
  return [
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
        const own = tlog.vkey;
        const witnesses = (await tlog.witnesses()).map(({ name, vkey, treeSize, time, isLate, trouble }) => ({
          name,
          vkey,
          tree_size: treeSize,
          cosigned_at: time,
          late: isLate,
          trouble,
        }));
        return {
          status: "ok",
          transport: transport.name,
          ...(own === null ? {} : { vkey: own }),
          ...(isReadOnly ? {} : { writers: writers.view }),
          ...(log.frozen ? { frozen: frozenEnd(log)! } : {}),
          ...(replication ? { replication: described(await replication.status()) } : {}),
          ...(witnesses.length ? { witnesses } : {}),
          ...(warnings.length ? { warnings } : {}),
        } as const;
      },
    }),
    metricsRoute(metrics),
  ];
}
