/** The route table of a mirror: entries of another log can be read, checked and proven, but nothing can be written. */
import { CairnlogError } from "../../../../engine/base/error.js";
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
