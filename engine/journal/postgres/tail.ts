/**
 * Reads records from the primary, in windows, and puts them together again. A node that is so late that private rows were
 * removed from records that it lacks gets these records without them, and first of all every private row as it is now.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { CairnlogError } from "../../base/error.js";
import { isOutside, type JournalPosition } from "../../store/changeset.js";
import { Batch } from "../../store/schema/batch.js";
import { HASH } from "../../store/schema/schema.js";
import type { Decided, PlaceInJournal } from "../ledger.js";
import { recordOf } from "../record.js";
import { type RecordedChange, readLines, readRowLine } from "../rows.js";
import { type PgConnection, serverSilent } from "./connection.js";
import { bigintOf, type CopyRow } from "./copy.js";
import type { Servers } from "./servers.js";
import {
  GENESIS,
  hashAt,
  LEAD,
  type Lead,
  lastBefore,
  leadOf,
  privateRowsText,
  recordsText,
  windowEnd,
} from "./statements.js";

/** Bytes of records that are in memory at a time; one record may be larger. */
const WINDOW_BYTES = 16 * 2 ** 20;
const QUESTION_MS = 5_000;
const COPY_MS = 60_000;
/** Milliseconds for which private rows wait until what they were read with is decided. */
const DECIDED_MS = 5_000;

interface TailParts {
  readonly servers: Servers;
  readonly position: JournalPosition;
  readonly lead: Lead;
  /** The last record that may be given out. */
  readonly upTo: number;
  /** Whether this node must not ask for private rows. */
  readonly isPublic: boolean;
}

/** Where private rows come from that are in no record any more. */
interface Kept {
  /** Private rows of records up to this one are among these. */
  readonly upTo: number;
  readonly rows: readonly RecordedChange[];
}

export async function* tailOf(parts: TailParts): AsyncIterable<Decided> {
  const { servers, position, lead, upTo, isPublic } = parts;
  if (position.sequence >= upTo) return checkPlace(servers, position, lead);
  checkNotAhead(position, lead);
  let kept: Kept | null = null;
  let isDue = false;
  for (let after = position.sequence; after < upTo; ) {
    const window = await asked(servers, (connection) => readWindow(connection, after, upTo, isPublic));
    if (after === position.sequence) checkHash(position, window.hash);
    // Records of this window may have lost rows since the rows were read, also where it begins before those.
    if (!isPublic && window.swept > Math.max(after, kept?.upTo ?? 0)) {
      kept = await asked(servers, (connection) => readPrivateRows(connection, upTo));
      isDue = true;
    }
    for (const row of window.rows) {
      const sequence = bigintOf(row[0]);
      const isStripped = isPublic || sequence <= (kept?.upTo ?? 0);
      const { record, hash } = recordOf(row[1]!, rowsOf(row, isStripped), !isStripped);
      if (record.sequence !== after + 1)
        throw new CairnlogError("corrupt-log", `Record ${after + 1} is missing from the journal.`);
      if (kept && isDue)
        yield { record: { ...record, rows: [...record.rows, ...kept.rows] }, hash, replacesPrivateRows: true };
      else yield { record, hash };
      isDue = false;
      after = sequence;
    }
  }
}

const rowsOf = (row: CopyRow, isStripped: boolean): RecordedChange[] =>
  [row[2], isStripped ? null : row[3]].flatMap((text) => (text ? readLines(text.toString("utf8")) : []));

const ADVICE =
  "It must never lead. If PostgreSQL lost records, bring them back; otherwise give this node an empty data directory.";

/** A node continues from a record that the journal has at the same place. */
export async function checkPlace(servers: Servers, position: JournalPosition, lead: Lead): Promise<void> {
  const { sequence } = position;
  if (sequence === 0) return;
  checkNotAhead(position, lead);
  const [row] = await asked(servers, (connection) => connection.query(hashAt(sequence), QUESTION_MS));
  checkHash(position, row?.hash as Buffer | undefined);
}

function checkNotAhead(position: JournalPosition, lead: Lead): void {
  const { sequence } = position;
  if (sequence > 0 && isOutside(position))
    throw new CairnlogError("corrupt-log", "The log in this data directory was written without the journal.");
  if (sequence > lead.sequence)
    throw new CairnlogError(
      "corrupt-log",
      `This node is ahead of the journal: it has record ${sequence}, and the journal ends with ${lead.sequence}. ${ADVICE}`,
    );
}

/** @param hash of the journal's record at this place, if it has one */
function checkHash({ sequence, hash: own }: JournalPosition, hash: Buffer | null | undefined): void {
  if (sequence > 0 && (!hash || Buffer.compare(hash, own) !== 0))
    throw new CairnlogError(
      "corrupt-log",
      `This node has another history than the journal: record ${sequence} is not the same. ${ADVICE}`,
    );
}

/** See `Journal.placeOf`. */
export async function placeIn(servers: Servers, lead: Lead, size: number, digest: Uint8Array): Promise<PlaceInJournal> {
  return asked(servers, async (connection) => {
    const [at] = await connection.query(lastBefore(size), QUESTION_MS);
    const sequence = Number(at?.sequence ?? 0);
    const [row] = sequence ? await connection.copy(recordsText(sequence - 1, sequence, true), COPY_MS) : [];
    const found = row && recordOf(row[1]!, [], false);
    const batch = found?.record.batch && new Batch(found.record.firstIndex, found.record.batch);
    const isHere = batch && batch.firstIndex + batch.count === size && batch.digests.subarray(-HASH).equals(digest);
    if (!isHere || sequence > lead.acked)
      throw new CairnlogError(
        "corrupt-log",
        `The log in this data directory was written without the journal, and its ${size} entries are not a beginning of the journal's. Give this node an empty data directory.`,
      );
    const kept = await readPrivateRows(connection, lead.acked, sequence);
    const [first] = await connection.query(GENESIS, QUESTION_MS);
    const meta = readLines((first?.rows ?? "") as string).filter(({ table }) => table === "meta");
    return { position: { sequence, epoch: found!.record.epoch, hash: found!.hash }, rows: [...meta, ...kept.rows] };
  });
}

async function asked<T>(servers: Servers, question: (connection: PgConnection) => Promise<T>): Promise<T> {
  try {
    return await servers.askPrimary(question);
  } catch (error) {
    throw error instanceof CairnlogError ? error : serverSilent(error);
  }
}

async function readWindow(
  connection: PgConnection,
  after: number,
  upTo: number,
  isPublic: boolean,
): Promise<{ readonly rows: readonly CopyRow[]; readonly swept: number; readonly hash: Buffer | null }> {
  const [end] = await connection.query(windowEnd(after, upTo, WINDOW_BYTES), QUESTION_MS);
  const last = Number(end!.sequence ?? 0);
  if (last <= after) throw new CairnlogError("corrupt-log", `Record ${after + 1} is missing from the journal.`);
  const rows = await connection.copy(recordsText(after, last, isPublic), COPY_MS);
  if (!rows.length) throw new CairnlogError("corrupt-log", `Record ${after + 1} is missing from the journal.`);
  return { rows, swept: bigintOf(rows[0]![4]), hash: end!.hash as Buffer | null };
}

/**
 * Every private row that no record after the swept ones, or after `place`, has changed; those that later records have changed come with
 * these. Where a record that is not decided has changed a row, its value before is not there any more, so this waits until
 * all that was read is decided.
 */
async function readPrivateRows(connection: PgConnection, upTo: number, place?: number): Promise<Kept> {
  await connection.query({ text: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" }, QUESTION_MS);
  const [row] = await connection.query(LEAD, QUESTION_MS);
  const { sequence, swept } = leadOf(row!);
  const end = place ?? swept;
  const lines = await connection.copy(privateRowsText(end), COPY_MS);
  await connection.query({ text: "COMMIT" }, QUESTION_MS);
  const until = performance.now() + DECIDED_MS;
  for (let decided = upTo; decided < sequence; ) {
    if (performance.now() > until)
      throw new CairnlogError("storage-failed", "The newest record in PostgreSQL is not decided yet.");
    await sleep(20);
    const [newer] = await connection.query(LEAD, QUESTION_MS);
    decided = leadOf(newer!).acked;
  }
  return { upTo: end, rows: lines.map(([line]) => readRowLine(line!.toString("utf8"))) };
}
