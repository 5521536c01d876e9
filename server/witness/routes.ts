/** What a witness answers over HTTP (c2sp.org/tlog-witness), and to those who look after it. */
import Type from "typebox";
import { CairnlogError } from "../../engine/base/error.js";
import { Alive } from "../../engine/contract/service/health.js";
import { isHexHash } from "../../engine/verify/bytes/encoding.js";
import { HttpError } from "../http/route/problems.js";
import { type Route, route } from "../http/route/route.js";
import { Answer } from "../http/transport/answer.js";
import type { WitnessMetrics } from "./metrics.js";
import { parseAddCheckpoint } from "./request.js";
import type { WitnessRows } from "./rows.js";
import type { Witness } from "./witness.js";

const TEXT = "text/plain; charset=utf-8";
/** The type of the answer to a request that starts from another size than the witness. */
const SIZE = "text/x.tlog.size";
/** Bytes of free disk below which the witness is not ready: LMDB writes some pages for a row. */
const MIN_FREE_BYTES = 16 * 1024 * 1024;

interface WitnessServices {
  readonly witness: Witness;
  readonly rows: WitnessRows;
  readonly metrics: WitnessMetrics;
  readonly freeBytes: () => number;
}

/**
 * The routes of a witness.
 * @param prefix of the two paths of the specification: empty, or a slash and a path without one at its end
 */
export function witnessRoutes({ witness, rows, metrics, freeBytes }: WitnessServices, prefix: string): Route[] {
  return [
    route({
      method: "POST",
      path: `${prefix}/add-checkpoint`,
      summary: "Cosign a checkpoint",
      isRaw: true,
      answer: Type.String(),
      limit: null,
      async handle({ body }) {
        const request = parseAddCheckpoint(body as Buffer);
        const verdict = await witness.addCheckpoint(request);
        if (verdict.kind === "conflict") return new Answer(`${verdict.size}\n`, { status: 409, contentType: SIZE });
        metrics.cosigned(request.checkpoint.origin);
        return new Answer(Buffer.from(verdict.line), { contentType: TEXT });
      },
    }),
    route({
      method: "GET",
      path: `${prefix}/{origin_hash}/checkpoint`,
      summary: "The newest cosigned checkpoint of a log",
      params: Type.Object({ origin_hash: Type.String() }),
      answer: Type.String(),
      limit: null,
      handle({ params }) {
        const row = isHexHash(params.origin_hash) ? rows.byHash(params.origin_hash) : undefined;
        if (!row) throw new CairnlogError("not-found", "No checkpoint of this log was cosigned.");
        return new Answer(Buffer.from(row.note), { contentType: TEXT, cacheControl: "no-cache" });
      },
    }),
    route({
      method: "GET",
      path: `${prefix}/vkey`,
      summary: "The verifier key of the cosignatures",
      answer: Type.String(),
      limit: null,
      handle: () => new Answer(Buffer.from(`${witness.vkey}\n`), { contentType: TEXT, cacheControl: "no-cache" }),
    }),
    route({
      method: "GET",
      path: "/livez",
      summary: "Whether the process answers, and can use its rows",
      answer: Alive,
      limit: null,
      handle() {
        requireUsable(rows);
        return { status: "ok" } as const;
      },
    }),
    route({
      method: "GET",
      path: "/readyz",
      summary: "Whether a checkpoint would be cosigned",
      answer: Type.Object({ status: Type.Literal("ok"), vkey: Type.String(), logs: Type.Integer() }),
      limit: null,
      handle() {
        requireUsable(rows);
        const free = freeBytes();
        if (free < MIN_FREE_BYTES) throw unready(`Only ${free} bytes are free on the disk of the witness.`);
        if (!witness.logs.size) throw unready("The file of logs names no log.");
        return { status: "ok", vkey: witness.vkey, logs: witness.logs.size } as const;
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

/** @throws HttpError 503 when the process can write no more and ends */
function requireUsable({ health }: WitnessRows): void {
  if (health.failure) throw unready(health.failure.message);
}

const unready = (why: string): HttpError => new HttpError("not-ready", why, { "retry-after": "10" });
