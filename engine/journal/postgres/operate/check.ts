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
  const primary = statuses.filter(({ role }) => role === "primary").sort(byTimeline)[0];
  if (!primary) faults.push("No server is a primary.");
  const reports = statuses.map((status) => ({ ...status, records: 0 }));
  const on = async <T>(i: number, question: (connection: PgConnection) => Promise<T>): Promise<T> => {
    const connection = await PgConnection.open(target, target.places[i]!);
    try {
      return await question(connection);
    } finally {
      connection.close();
    }
  };
  // Of several primaries, the one of the newest timeline says what the others must have.
  const reached = [...statuses.keys()]
    .filter((i) => statuses[i]!.role !== "unreachable")
    .sort((a, b) => Number(statuses[b] === primary) - Number(statuses[a] === primary));
  // How far it is, it is asked last: whoever had more before then has what is not the journal's.
  const ends = new Map<number, number | Error>();
  for (const i of reached.toReversed()) ends.set(i, await on(i, newestRecord).catch((error: Error) => error));
  /** Hashes by sequence, as the first server told them. */
  const hashes: Buffer[] = [];
  let isWhole = false;
  for (const i of reached)
    try {
      const { address } = statuses[i]!;
      const end = ends.get(i)!;
      if (end instanceof Error) throw end;
      const others = { address, hashes, isWhole, faults };
      reports[i]!.records = await on(i, (connection) => readAll(connection, end, others));
      isWhole ||= statuses[i] === primary;
    } catch (error) {
      faults.push(`${statuses[i]!.address}: ${(error as Error).message}`);
    }
  if (position?.sequence) faults.push(...placeOf(position, hashes));
  return { servers: reports, faults };
}

const byTimeline = (a: ServerStatus, b: ServerStatus): number => b.timeline! - a.timeline!;

async function newestRecord(connection: PgConnection): Promise<number> {
  const [row] = await connection.query(LEAD, STATEMENT_MS);
  if (!row) throw new CairnlogError("corrupt-log", "it has no row in cairnlog.lead");
  return leadOf(row).sequence;
}

/** What was read of the servers before. */
interface Others {
  /** Of the server that is compared with them. */
  readonly address: string;
  readonly hashes: Buffer[];
  /** Whether these are all of the journal. */
  readonly isWhole: boolean;
  readonly faults: string[];
}

/**
 * Reads the records of a server up to `sequence`. Of the first that is not as others have it, it says so: none behind it is.
 * @returns how many there are
 */
async function readAll(
  connection: PgConnection,
  sequence: number,
  { address, hashes, isWhole, faults }: Others,
): Promise<number> {
  let at: JournalPosition = ORIGIN;
  let isSame = true;
  while (at.sequence < sequence) {
    const end = Math.min(sequence, at.sequence + STEP);
    const rows = await connection.copy(recordsText(at.sequence, end, true), STATEMENT_MS);
    if (!rows.length) throw new CairnlogError("corrupt-log", `record ${at.sequence + 1} is missing`);
    for (const [, body] of rows) {
      const { record, hash } = recordOf(body!, [], false);
      checkNext(at, record);
      const known = hashes[record.sequence];
      const fault = known
        ? !known.equals(hash) && "differs from that of the others"
        : isWhole && "is not in the journal";
      if (fault && isSame) faults.push(`${address}: record ${record.sequence} ${fault}.`);
      if (fault) isSame = false;
      else hashes[record.sequence] = Buffer.from(hash);
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
