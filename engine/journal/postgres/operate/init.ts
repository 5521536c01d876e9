/**
 * Makes the journal: its tables, and the records of the log so far. Nobody writes the log meanwhile. All of it is one
 * transaction: if it fails, or this process ends, nothing is there.
 */
import { CairnlogError } from "../../../base/error.js";
import { type JournalPosition, ORIGIN } from "../../../store/changeset.js";
import type { JournalRecord } from "../../record.js";
import type { RecordedChange } from "../../rows.js";
import { DUPLICATE_SCHEMA, type PgConnection, serverSilent } from "../connection.js";
import { parseConnectionString } from "../connection-string.js";
import { Servers } from "../servers.js";
import { columnsOf } from "../statements.js";
import { GRANTS_SQL, SCHEMA_SQL } from "./schema.js";

const STATEMENT_MS = 60_000;
/** A commit waits for a standby, which has to receive the whole log. */
const COMMIT_MS = 3_600_000;
const OLDEST_VERSION = 150_000;

/** A log as it was before it was replicated. */
interface Beginning {
  /** Rows of the first record, among them what the log is. */
  readonly rows: readonly RecordedChange[];
  /** Packed batches, oldest first, with the number of their first entry. */
  readonly batches: Iterable<{ readonly firstIndex: number; readonly packed: Buffer; readonly count: number }>;
}

/**
 * Makes the journal in the primary of `url`.
 * @param progress called with the number of entries that are there
 * @returns the position of its newest record
 * @throws CairnlogError `already-exists` where there is one; `precondition-failed` for a server that is too old, or
 *   acknowledges commits that no standby has (unless `isTrusted`); `storage-failed`
 */
export async function makeJournal(
  url: string,
  { rows, batches }: Beginning,
  isTrusted: boolean,
  progress: (entries: number) => void = () => {},
): Promise<JournalPosition> {
  const target = parseConnectionString(url);
  const servers = new Servers(target);
  let connection: PgConnection | undefined;
  try {
    connection = await servers.openPrimary();
    await checkServer(connection, isTrusted);
    await run(connection, "BEGIN");
    await run(connection, `${SCHEMA_SQL}${GRANTS_SQL}`);
    let position = await insert(connection, { ...ORIGIN, size: 0 }, { firstIndex: 0, batch: null, rows }, 0);
    for (const { firstIndex, packed, count } of batches) {
      position = await insert(connection, position, { firstIndex, batch: packed, rows: [] }, count);
      progress(position.size);
    }
    const { sequence, hash, size } = position;
    await connection.query(
      {
        text: "INSERT INTO cairnlog.lead (epoch, sequence, hash, size, acked) VALUES (0, $1, $2, $3, $1)",
        values: [sequence, Buffer.from(hash), size],
      },
      STATEMENT_MS,
    );
    const { notices } = connection;
    await connection.query({ text: "COMMIT" }, COMMIT_MS);
    if (connection.notices !== notices)
      throw new Error("the server did not wait for its standbys; see cairnlog replicate check");
    return { sequence, hash, epoch: 0 };
  } catch (error) {
    if (error instanceof CairnlogError) throw error;
    if ((error as { code?: unknown }).code === DUPLICATE_SCHEMA)
      throw new CairnlogError("already-exists", "There is a journal in this database already.", { cause: error });
    throw serverSilent(error);
  } finally {
    connection?.close();
    servers.close();
  }
}

type Place = JournalPosition & { readonly size: number };

async function insert(
  connection: PgConnection,
  { sequence, hash: previous }: Place,
  draft: Pick<JournalRecord, "firstIndex" | "batch" | "rows">,
  count: number,
): Promise<Place> {
  const columns = columnsOf({ ...draft, sequence: sequence + 1, previous, epoch: 0 }, count);
  const { hash, epoch, firstIndex, body, publicRows, privateRows, changes, size } = columns;
  await connection.query(
    {
      name: "cairnlog-init",
      text: `INSERT INTO cairnlog.record (sequence, hash, epoch, first_index, bytes, body, rows)
        VALUES ($1, $2, $3, $4, octet_length($5::bytea), $5::bytea, $6)`,
      values: [columns.sequence, hash, epoch, firstIndex, body, publicRows],
    },
    STATEMENT_MS,
  );
  if (privateRows !== null) {
    await connection.query(
      {
        text: "INSERT INTO cairnlog.private_change (sequence, rows) VALUES ($1, $2)",
        values: [columns.sequence, privateRows],
      },
      STATEMENT_MS,
    );
    await connection.query(
      {
        text: `INSERT INTO cairnlog.private_row (tbl, key, sequence, row)
          SELECT tbl, key, $1::bigint, row FROM unnest($2::text[], $3::text[], $4::text[]) AS c (tbl, key, row)`,
        values: [columns.sequence, changes.tables, changes.keys, changes.lines],
      },
      STATEMENT_MS,
    );
  }
  return { sequence: columns.sequence, hash, epoch, size };
}

/** Statements without parameters. */
const run = (connection: PgConnection, text: string) => connection.query({ text }, STATEMENT_MS);

/** @throws CairnlogError `precondition-failed` */
async function checkServer(connection: PgConnection, isTrusted: boolean): Promise<void> {
  const [row] = await run(
    connection,
    "SELECT current_setting('server_version_num')::int AS version, current_setting('synchronous_standby_names') AS names",
  );
  const { version, names } = row as { version: number; names: string };
  if (version < OLDEST_VERSION)
    throw new CairnlogError("precondition-failed", "Replication needs PostgreSQL 15 or newer.");
  if (names === "" && !isTrusted)
    throw new CairnlogError(
      "precondition-failed",
      "synchronous_standby_names is empty: this server acknowledges commits that no standby has. Name the standbys there, for example 'ANY 1 (s2, s3)'.",
    );
}
