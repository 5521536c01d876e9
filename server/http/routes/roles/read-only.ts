/** The route tables of logs that are not written: a mirror reads the log of another service, and a frozen log has ended. */
import { CairnlogError } from "../../../../engine/base/error.js";
import type { Log } from "../../../../engine/log/log.js";
import { logFrozen } from "../../../../engine/log/operator/frozen.js";
import type { Route } from "../../route/route.js";

/** Routes that compute, and write nothing. */
const COMPUTING: ReadonlySet<string> = new Set([
  "/api/v1/verify",
  "/api/v1/log/verify",
  "/api/v1/composite/assemble",
  "/api/v1/composite/compile",
]);
export const isComputing = (path: string): boolean => COMPUTING.has(path);

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
