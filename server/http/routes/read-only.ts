/** The route table of a mirror: what others wrote can be read, checked and proven; nothing can be written. */
import { CairnlogError } from "../../../engine/error.js";
import type { Route } from "../route.js";

/** They compute, and write nothing. */
const COMPUTING: ReadonlySet<string> = new Set([
  "/api/v1/verify",
  "/api/v1/log/verify",
  "/api/v1/composite/assemble",
  "/api/v1/composite/compile",
]);
/** Not on the log, so a mirror does not have them; an empty list would be a wrong answer. */
const PRIVATE = "/api/v1/trust-configs";

const REFUSAL =
  "This is a read-only mirror. Writing, signing in, and what is not on the log are matters of the log's own service.";

/** `routes`, with every one that writes, or answers from private rows, refused with 403. */
export function readOnly(routes: readonly Route[]): Route[] {
  return routes.map((row) => (isOffered(row) ? row : refused(row)));
}

function isOffered({ method, path, authorize }: Route): boolean {
  if (COMPUTING.has(path)) return true;
  return method === "GET" && !authorize && !path.startsWith(PRIVATE);
}

const refused = ({ method, path, summary, params, answer, limit }: Route): Route => ({
  ...{ method, path, summary, answer, limit },
  ...(params ? { params } : {}),
  refusals: [403],
  handle() {
    throw new CairnlogError("forbidden", REFUSAL);
  },
});
