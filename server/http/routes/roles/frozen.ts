/** The route table of a log that may be frozen: then all is read as before, and every write is refused with the successor. */
import type { Log } from "../../../../engine/log/log.js";
import { logFrozen } from "../../../../engine/log/operator/frozen.js";
import type { Route } from "../../route/route.js";
import { isComputing } from "./read-only.js";

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
