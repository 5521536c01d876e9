/** The routes by which a supervisor and Prometheus look at a process, whatever it serves besides. */
import Type from "typebox";
import { Alive } from "../../../engine/contract/service/health.js";
import { type Route, route } from "../route/route.js";
import { Answer } from "../transport/answer.js";

/**
 * `GET /livez`.
 * @param check throws HttpError 503 when the process can do its work no more
 */
export const livenessRoute = (check: () => void): Route =>
  route({
    method: "GET",
    path: "/livez",
    summary: "Whether the process answers, and can use what it keeps on disk",
    answer: Alive,
    limit: null,
    handle() {
      check();
      return { status: "ok" } as const;
    },
  });

/** `GET /metrics`. */
export const metricsRoute = (metrics: { readonly contentType: string; text(): Promise<string> }): Route =>
  route({
    method: "GET",
    path: "/metrics",
    summary: "Measurements in the Prometheus text format",
    answer: Type.String(),
    answerType: "text/plain",
    limit: null,
    handle: async () => new Answer(Buffer.from(await metrics.text()), { contentType: metrics.contentType }),
  });
