/**
 * The route tables of logs that are not written here, or not any more: by a node of a replicated log unless it leads, by a
 * mirror of another service's log, and of a log that has ended. No route of their own is here.
 */
import { CairnlogError } from "../../../../engine/base/error.js";
import { isOrigin } from "../../../../engine/contract/check.js";
import type { Log } from "../../../../engine/log/log.js";
import { logFrozen } from "../../../../engine/log/operator/entries.js";
import type { ReplicaLag } from "../../replica-lag.js";
import { HttpError } from "../../route/problems.js";
import type { Route } from "../../route/route.js";
import type { Services } from "../../services.js";

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

/** Routes that compute, and write nothing. */
const COMPUTING: ReadonlySet<string> = new Set([
  "/api/v1/verify",
  "/api/v1/log/verify",
  "/api/v1/composite/assemble",
  "/api/v1/composite/compile",
]);
const isComputing = (path: string): boolean => COMPUTING.has(path);

/** These rows are not in the log, so a mirror does not have them. An empty list would be a wrong answer. */
const PRIVATE = "/api/v1/trust-configs";
/** The log's service knows, a mirror does not. */
const WRITERS = "/api/v1/writers";

const REFUSAL =
  "This is a read-only mirror. Writing, signing in, and what is not on the log are matters of the log's own service.";

/** `routes`, with a 403 for every route that writes or that answers from private rows. */
export function readOnly(routes: readonly Route[]): Route[] {
  return routes.map((row) => (isOffered(row) ? row : refused(row)));
}

function isOffered({ method, path, authorize }: Route): boolean {
  if (COMPUTING.has(path)) return true;
  return method === "GET" && !authorize && !path.startsWith(PRIVATE) && path !== WRITERS;
}

const refused = ({ method, path, summary, params, answer, limit }: Route): Route => ({
  ...{ method, path, summary, answer, limit },
  ...(params ? { params } : {}),
  refusals: [403],
  handle() {
    throw new CairnlogError("forbidden", REFUSAL);
  },
});

/** What is no read, and stays: signing in, a comparison, what ends a subscription, and what the operator has attested to the end. */
const STAYS: ReadonlySet<string> = new Set([
  "/api/v1/auth/challenge",
  "/api/v1/auth/login",
  "/api/v1/auth/renew",
  "/api/v1/claims/{entry_id}/reveal",
  "/api/v1/webhooks/{webhook_id}",
  "/api/v1/log/anchor",
  "/api/v1/log/sth/sign",
]);

/** `routes`, with a 410 for every write from the moment on at which `log` is frozen. */
export const untilFrozen = (routes: readonly Route[], log: Pick<Log, "frozen">): Route[] =>
  routes.map((row) => (row.method === "GET" || isComputing(row.path) || STAYS.has(row.path) ? row : ending(row, log)));

/** Before anything of the request is looked at: whoever has no session any more must learn where the log goes on, too. */
function ending(row: Route, log: Pick<Log, "frozen">): Route {
  const { authorize, refusals = [] } = row;
  return {
    ...row,
    refusals: [...refusals, 410],
    authorize(asking) {
      if (log.frozen) throw logFrozen(log.frozen);
      return authorize?.(asking);
    },
  };
}
