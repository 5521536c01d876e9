/** Reads every record on every server, and compares them: what no single append looks at. */
import { CairnlogError } from "../../../base/error.js";
import { type JournalPosition, NO_HASH, ORIGIN } from "../../../store/changeset.js";
import { checkNext } from "../../ledger.js";
import { recordOf } from "../../record.js";
import { PgConnection } from "../connection.js";
import { parseConnectionString } from "../connection-string.js";
import { type ServerStatus, Servers } from "../servers.js";
import { LEAD, leadOf, recordsText } from "../statements.js";

const STATEMENT_MS = 120_000;
/** Records that are read at a time. */
const STEP = 64;

interface JournalReport {
  readonly servers: readonly (ServerStatus & { readonly records: number })[];
  /** Sentences; none if all is sound. */
  readonly faults: readonly string[];
}

/** @param position of the log of a node, to be compared; null for none */
export async function checkJournal(url: string, position: JournalPosition | null): Promise<JournalReport> {
  const target = parseConnectionString(url);
  const servers = new Servers(target);
  await servers.identify();
  const statuses = servers.statuses;
  servers.close();
  const faults: string[] = [];
  /** Hashes by sequence, as the first server told them. */
  const hashes: Buffer[] = [];
  const reports = [];
  // The primary first: standbys may be behind it, and not ahead.
  for (const i of [...statuses.keys()].sort((a, b) => rank(statuses[a]!) - rank(statuses[b]!))) {
    const status = statuses[i]!;
    if (status.role === "unreachable") {
      reports.push({ ...status, records: 0 });
      continue;
    }
    let records = 0;
    try {
      const connection = await PgConnection.open(target, target.places[i]!);
      try {
        records = await readAll(connection, status.address, hashes, faults);
      } finally {
        connection.close();
      }
      reports.push({ ...status, records });
    } catch (error) {
      faults.push(`${status.address}: ${(error as Error).message}`);
      reports.push({ ...status, records });
    }
  }
  if (!statuses.some(({ role }) => role === "primary")) faults.push("No server is a primary.");
  if (position?.sequence) faults.push(...placeOf(position, hashes));
  return { servers: reports, faults };
}

const rank = ({ role }: ServerStatus): number => ["primary", "standby", "unreachable"].indexOf(role);

/** @returns how many records the server has */
async function readAll(connection: PgConnection, address: string, hashes: Buffer[], faults: string[]): Promise<number> {
  const [row] = await connection.query(LEAD, STATEMENT_MS);
  if (!row) throw new CairnlogError("corrupt-log", "it has no row in cairnlog.lead");
  const { sequence } = leadOf(row);
  let at: JournalPosition = ORIGIN;
  while (at.sequence < sequence) {
    const end = Math.min(sequence, at.sequence + STEP);
    const rows = await connection.copy(recordsText(at.sequence, end, true), STATEMENT_MS);
    if (!rows.length) throw new CairnlogError("corrupt-log", `record ${at.sequence + 1} is missing`);
    for (const [, body] of rows) {
      const { record, hash } = recordOf(body!, [], false);
      checkNext(at, record);
      const known = hashes[record.sequence];
      if (known && !known.equals(hash))
        faults.push(`${address}: record ${record.sequence} differs from that of the others.`);
      hashes[record.sequence] ??= Buffer.from(hash);
      at = { sequence: record.sequence, epoch: record.epoch, hash };
    }
  }
  return at.sequence;
}

function placeOf({ sequence, hash }: JournalPosition, hashes: readonly Buffer[]): string[] {
  if (Buffer.compare(hash, NO_HASH) === 0) return ["The log in the data directory was written without the journal."];
  const there = hashes[sequence];
  if (!there) return [`The log in the data directory is ahead: it has record ${sequence}, and the journal has not.`];
  return there.equals(hash) ? [] : [`Record ${sequence} of the data directory is not that of the journal.`];
}
