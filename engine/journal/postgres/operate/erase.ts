/**
 * Takes payloads that are withheld from the journal's files: from their records, and then from what PostgreSQL has kept of these
 * rows. A row that was changed or removed stays in the pages of its table, also behind a plain VACUUM; a table that is made anew
 * has none of it. Standbys follow. PostgreSQL's log of writes, archives and copies of the database keep what they have.
 *
 * If we crash here: each statement holds by itself, and all of it can be repeated.
 */
import { CairnlogError } from "../../../base/error.js";
import { type PgConnection, serverSilent } from "../connection.js";
import { parseConnectionString } from "../connection-string.js";
import { erasing } from "../erasing.js";
import { Servers } from "../servers.js";
import { recordWith } from "../statements.js";

const STATEMENT_MS = 60_000;
/** A table is copied meanwhile. */
const ANEW_MS = 3 * 3_600_000;
/** How often a record is changed that somebody else has changed meanwhile. */
const TRIES = 20;

/**
 * Takes payloads from the journal of `url`, and makes its table anew, for which the user must own it. Meanwhile nothing is
 * appended, and no node follows.
 * @param withheld entries as they are served, by their leaf indexes
 * @throws CairnlogError `storage-failed`; as `bodyWithout` does
 */
export async function eraseFromJournal(url: string, withheld: Iterable<readonly [number, Buffer]>): Promise<void> {
  const servers = new Servers(parseConnectionString(url));
  let connection: PgConnection | undefined;
  try {
    connection = await servers.openPrimary();
    for (const [leafIndex, json] of withheld) await take(connection, leafIndex, json);
    await connection.query({ text: "VACUUM (FULL) cairnlog.record" }, ANEW_MS);
  } catch (error) {
    throw error instanceof CairnlogError ? error : serverSilent(error);
  } finally {
    connection?.close();
    servers.close();
  }
}

/** The statement changes nothing if the leader has changed the record since it was read, which takes payloads from it, too. */
async function take(connection: PgConnection, leafIndex: number, json: Buffer): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    const [row] = await connection.query(recordWith(leafIndex), STATEMENT_MS);
    const statement = row && erasing(row, leafIndex, json);
    if (!statement || (await connection.query(statement, STATEMENT_MS)).length) return;
  }
  throw new CairnlogError("storage-failed", `The record with the entry at leaf ${leafIndex} did not take the change.`);
}
