/** The route table of a node of a replicated log: only the leader writes, and nobody answers with what is too old. */
import { isOrigin } from "../../../../engine/contract/origin.js";
import type { ReplicaLag } from "../../replica-lag.js";
import { HttpError } from "../../route/problems.js";
import type { Route } from "../../route/route.js";
import type { Services } from "../../services.js";
import { isComputing } from "./read-only.js";

/** What a node says about itself, and what asks nothing of the log. */
const ALWAYS: ReadonlySet<string> = new Set([
  "/livez",
  "/readyz",
  "/metrics",
  "/leader",
  "/follower",
  "/api/v1/health",
  "/api/v1/openapi.json",
]);

const TOO_OLD =
  "This node of the log has had no news for too long: what it would answer may be outdated. Ask another node, or try again.";

/** `routes` as a node answers them. */
export function atNode(
  routes: readonly Route[],
  replication: NonNullable<Services["replication"]>,
  reach: ReplicaLag,
): Route[] {
  return routes.map((row) => {
    if (ALWAYS.has(row.path)) return row;
    if (row.method === "GET" || isComputing(row.path)) return fresh(reach.before(row), replication);
    return atLeader(row, replication);
  });
}

function fresh(row: Route, { role }: NonNullable<Services["replication"]>): Route {
  return {
    ...row,
    handle(context, refusal) {
      if (role.isStale) throw new HttpError("not-ready", TOO_OLD, { "retry-after": "5" });
      return row.handle(context, refusal);
    },
  };
}

/** Before anything of the request is looked at: challenges and tries are in the leader's memory. */
function atLeader(row: Route, replication: NonNullable<Services["replication"]>): Route {
  const { role } = replication;
  const { authorize } = row;
  return {
    ...row,
    async authorize(asking) {
      if (!role.leads) throw notLeader((await replication.status()).leader);
      return authorize?.(asking);
    },
  };
}

/** @param told the address of the leader, if it is known; what is more than an origin is not passed on */
export function notLeader(told: string | null): HttpError {
  const leader = told !== null && isOrigin(told) ? told : null;
  const where = leader === null ? "Which one is not known now. Try again." : `Send it to ${leader}.`;
  return new HttpError("not-leader", `Another node writes this log, and nothing was written here. ${where}`, {
    "retry-after": "1",
    ...(leader === null ? {} : { "cairnlog-leader": leader }),
  });
}
