/** What can go wrong with the journal, as sentences. */
import { CairnlogError } from "../../base/error.js";

/** PostgreSQL's code for a table that does not exist. */
export const UNDEFINED_TABLE = "42P01";
/** And for a schema that exists. */
export const DUPLICATE_SCHEMA = "42P06";

export const notLeading = (): CairnlogError =>
  new CairnlogError("not-leader", "Another node writes this log now.", { retryAfter: 1 });

export const refusedByServer = (cause: Error): CairnlogError =>
  new CairnlogError("storage-failed", `PostgreSQL refused a record: ${cause.message}.`, { cause });

export const serverSilent = (cause: unknown): CairnlogError =>
  new CairnlogError("storage-failed", `PostgreSQL does not answer: ${(cause as Error).message}.`, { cause });
