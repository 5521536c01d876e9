/**
 * The journal of a log that more than one machine keeps: PostgreSQL 15 or newer, a primary and its standbys.
 *
 * A record is decided when the primary has acknowledged it, which it does when a quorum of its standbys has it on disk,
 * and a standby has shown its sequence and hash. A row that only the primary shows may be on one disk alone.
 *
 * Only one node appends: the one whose token the row `lead` holds. Every append changes that row under the condition that
 * it is as this node knows it, so whoever has lost the lead changes nothing, however late its statement arrives. Leases
 * decide only when another node tries to take the lead, and never what is decided.
 *
 * It belongs to the thread that opened it.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { CairnlogError } from "../../base/error.js";
import type { JournalPosition } from "../../store/changeset.js";
import { batchCount } from "../../store/schema/batch.js";
import type { LogMeta } from "../../store/schema/rows.js";
import type { Decided, Journal, PlaceInJournal } from "../ledger.js";
import type { JournalRecord } from "../record.js";
import { readLines } from "../rows.js";
import { loadDriver, notLeading, refusedByServer, serverSilent, UNDEFINED_TABLE } from "./connection.js";
import { parseConnectionString } from "./connection-string.js";
import { erasing } from "./erasing.js";
import { type ServerStatus, Servers } from "./servers.js";
import {
  appendRecord,
  beat,
  type Columns,
  columnsOf,
  GENESIS,
  hashAt,
  LEAD,
  type Lead,
  leadOf,
  recordWith,
  release,
  sweep,
  takeLead,
  touch,
  want,
} from "./statements.js";
import { checkPlace, placeIn, tailOf } from "./tail.js";
import { RecordWriter } from "./writer.js";

/** Milliseconds for which a question is waited for. */
const QUESTION_MS = 2_000;
/** Milliseconds before what is unknown is tried again; this doubles up to the longest. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 250;
/** Milliseconds for which standbys are asked for a record before the primary is asked again whether it is the primary. */
const SHOWN_MS = 1_000;
/** Milliseconds without a change after which a leader counts as gone. */
export const LEASE_MS = 1_800;
/** Seconds for which private rows stay with the record that changed them. */
const SWEEP_AFTER_S = 600;

/** Nobody else makes the same. */
const token = (): string => randomBytes(16).toString("hex");

/** How a record is made sure of, besides the primary's word. */
export type RecordVerification = "standby" | "engine";

interface PostgresJournalOptions {
  /** `postgres://user:password@host:port,host:port/database` */
  readonly url: string;
  /** `standby`: a standby must show each record. `engine`: the primary's word is enough, where no standby can be asked. */
  readonly verification: RecordVerification;
  /** Address of this node, for clients and other nodes. */
  readonly nodeUrl: string | null;
  /** For a node without rights on private rows. */
  readonly isPublic?: boolean;
}

/** What this node holds while it leads. */
interface Held {
  readonly epoch: number;
  readonly holder: string;
  /** The newest record that is decided, and when it was, by a clock that nobody sets. */
  sequence: number;
  decidedAt: number;
  /** The newest record of which followers have been told that it is decided: every append tells that of the one before. */
  told: number;
  isAppending: boolean;
}

/** Seconds that the newest append took, in all and for the standby's word alone. */
interface AppendTimes {
  readonly append: number;
  readonly readBack: number;
}

export class PostgresJournal implements Journal {
  readonly isRemote = true;
  readonly #options: PostgresJournalOptions;
  readonly #servers: Servers;
  readonly #writer: RecordWriter;
  #held: Held | null = null;
  /** What the newest look has shown, until records are read by it. */
  #seen: Lead | null = null;
  #isClosed = false;
  /** When the primary last heard of this leader, by a clock that nobody sets. */
  #heard = Number.NEGATIVE_INFINITY;
  /** Called when the lead is lost. */
  observeLoss: () => void = () => {};
  /** Called for every append that is decided. */
  observeAppend: (times: AppendTimes) => void = () => {};

  private constructor(options: PostgresJournalOptions) {
    this.#options = options;
    this.#servers = new Servers(parseConnectionString(options.url));
    this.#writer = new RecordWriter(this.#servers);
  }

  /**
   * Nothing is connected yet: a node starts without PostgreSQL, too.
   * @throws CairnlogError `precondition-failed` if `pg` is not installed; `invalid-input` for the connection string
   */
  static async open(options: PostgresJournalOptions): Promise<PostgresJournal> {
    await loadDriver();
    return new PostgresJournal(options);
  }

  /** Whether this node has the lead, as far as it knows. */
  get isLeading(): boolean {
    return this.#held !== null;
  }

  /** Whether nobody else can believe to lead yet: for what must not be done twice, and does not go through the journal. */
  get hasLease(): boolean {
    return this.#held !== null && performance.now() - this.#heard < LEASE_MS / 2;
  }

  /** Milliseconds since the primary heard of this leader. */
  get silence(): number {
    return performance.now() - this.#heard;
  }

  /** Milliseconds for which the newest record has been decided, and neither an append nor `beat` has told others so; 0 if one has. */
  get untold(): number {
    const held = this.#held;
    return held && !held.isAppending && held.told < held.sequence ? performance.now() - held.decidedAt : 0;
  }

  get servers(): readonly ServerStatus[] {
    return this.#servers.statuses;
  }

  /** Asks every server what it is. */
  async identify(): Promise<readonly ServerStatus[]> {
    await this.#servers.identify();
    return this.#servers.statuses;
  }

  /**
   * How the journal stands, as the primary says.
   * @throws CairnlogError `storage-failed` if no primary answers; `precondition-failed` if there is no journal in it
   */
  async look(): Promise<Lead> {
    try {
      const [row] = await this.#servers.askPrimary((connection) => connection.query(LEAD, QUESTION_MS));
      if (row) {
        this.#seen = leadOf(row);
        return this.#seen;
      }
    } catch (cause) {
      if ((cause as { code?: unknown }).code !== UNDEFINED_TABLE) throw serverSilent(cause);
    }
    throw new CairnlogError(
      "precondition-failed",
      "There is no journal in the database of SERVICE_REPLICATION yet. Make it: cairnlog replicate init.",
    );
  }

  /**
   * What the log is, as its first record says.
   * @throws CairnlogError as `look` does
   */
  async genesis(): Promise<LogMeta | undefined> {
    await this.look();
    try {
      const [row] = await this.#servers.askPrimary((connection) => connection.query(GENESIS, QUESTION_MS));
      const found = readLines((row?.rows ?? "") as string).find(({ table }) => table === "meta");
      return found?.row as LogMeta | undefined;
    } catch (cause) {
      throw serverSilent(cause);
    }
  }

  async propose(record: JournalRecord): Promise<Uint8Array | null> {
    const columns = columnsOf(record, record.batch ? batchCount(record.batch) : 0);
    return this.#writer.lock.run(async () => {
      const held = this.#held;
      if (!held || held.epoch !== record.epoch) throw notLeading();
      const started = performance.now();
      held.isAppending = true;
      try {
        const isCertain = await this.#append(columns, held);
        const written = performance.now();
        if (!isCertain || !(await this.#isShown(columns))) await this.#resolve(columns, held);
        const ended = performance.now();
        held.told = held.sequence;
        held.sequence = columns.sequence;
        held.decidedAt = ended;
        this.#heard = started;
        this.observeAppend({ append: (ended - started) / 1000, readBack: (ended - written) / 1000 });
      } finally {
        held.isAppending = false;
      }
      return columns.hash;
    });
  }

  /**
   * Has the primary take the record and its standbys acknowledge it.
   * @returns false if it was sent more than once: a server may hold it from a try that did not count
   * @throws CairnlogError `not-leader` when another node has the lead; `storage-failed` when the server refuses the
   *   record for another reason, and nothing of it is there
   */
  async #append(columns: Columns, held: Held): Promise<boolean> {
    const statement = appendRecord(columns, held.holder, held.sequence);
    let isUnknown = false;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      const outcome = await this.#writer.run(statement);
      if (outcome.kind === "done") return !isUnknown && outcome.rows[0]!.count === "1";
      if (outcome.kind === "refused" && !isUnknown) throw refusedByServer(outcome.error);
      // No time turns this into a no: the record may be there, or on its way.
      isUnknown = true;
      await this.#pause(pause);
    }
  }

  /**
   * Finds out whether a record is there of which an earlier try may have been. It counts only if the lead is still this
   * node's and ends with it, and a later commit is acknowledged and shown by a standby, which has everything before then. To
   * show the record itself is not enough: an old primary that was attached without rewind may have it from another try.
   * @throws CairnlogError `not-leader`; the record may be in the journal then
   */
  async #resolve({ sequence, hash }: Pick<Columns, "sequence" | "hash">, held: Held): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      const mark = token();
      const outcome = await this.#writer.run(touch(held.epoch, held.holder, sequence, mark));
      if (outcome.kind === "done") {
        if (!outcome.rows.length) throw this.#lose();
        const found = await this.#writer.run(hashAt(sequence));
        if (found.kind === "done") {
          const [row] = found.rows;
          if (!row || !hash.equals(row.hash as Buffer)) throw this.#lose();
          if (await this.#isMarked(mark)) return;
        }
      }
      await this.#pause(pause);
    }
  }

  async #isShown({ sequence, hash }: Pick<Columns, "sequence" | "hash">): Promise<boolean> {
    if (this.#options.verification === "engine") return true;
    return this.#servers.areShown(sequence, hash, SHOWN_MS);
  }

  async #isMarked(mark: string): Promise<boolean> {
    if (this.#options.verification === "engine") return true;
    return this.#servers.areMarked(mark, SHOWN_MS);
  }

  async #pause(milliseconds: number): Promise<void> {
    if (this.#isClosed) throw new CairnlogError("storage-failed", "The journal was closed before it answered.");
    await sleep(milliseconds);
  }

  /** The lead is another node's, or nobody's. */
  #lose(): CairnlogError {
    this.#held = null;
    this.observeLoss();
    return notLeading();
  }

  /**
   * Checks that a node at `position` may continue the journal.
   * @throws CairnlogError `corrupt-log` for a node that is ahead of it, or has another history; `storage-failed`
   */
  checkContinues(position: JournalPosition, lead: Lead): Promise<void> {
    return checkPlace(this.#servers, position, lead);
  }

  /**
   * Takes the lead, unless the journal has changed since `seen`. From then on nothing of an earlier leader can be
   * appended, and `tail` ends with the record that says so. The caller applies it before it proposes anything.
   * @returns false if it was not taken, or nobody knows: then nobody appends until somebody takes it
   */
  takeLead(seen: Lead): Promise<boolean> {
    return this.#writer.lock.run(async () => {
      const holder = token();
      const { nodeUrl: url } = this.#options;
      const epoch = seen.epoch + 1;
      const row = { holder, url, at: new Date().toISOString() };
      const columns = columnsOf(
        {
          sequence: seen.sequence + 1,
          previous: seen.hash,
          epoch,
          firstIndex: seen.size,
          batch: null,
          rows: [{ table: "leader", key: "log", row }],
        },
        0,
      );
      const started = performance.now();
      const outcome = await this.#writer.run(takeLead(columns, seen, holder, url));
      if (outcome.kind !== "done" || outcome.rows[0]!.count !== "1") return false;
      // Everything before it is on a standby, too, as soon as it is.
      if (!(await this.#isShown(columns))) return false;
      const { sequence } = columns;
      this.#held = { epoch, holder, sequence, decidedAt: started, told: seen.sequence, isAppending: false };
      this.#heard = started;
      return true;
    });
  }

  /**
   * Tells others that this node leads, and what is decided. To be called more than once in a lease.
   * @param confirmed called when PostgreSQL has said that this node leads, after this call began
   * @returns the address of a node that asks for the lead; null if none does
   */
  async beat(checkpoint: string | null, confirmed: () => void = () => {}): Promise<string | null> {
    return this.#writer.lock.run(async () => {
      const held = this.#held;
      if (!held) return null;
      const started = performance.now();
      const outcome = await this.#writer.run(beat(held.epoch, held.holder, held.sequence, checkpoint));
      if (outcome.kind !== "done") return null;
      const [row] = outcome.rows;
      if (!row) {
        this.#lose();
        return null;
      }
      this.#heard = started;
      held.told = held.sequence;
      confirmed();
      return row.wanted as string | null;
    });
  }

  /** Removes private rows from records that have been in the journal for some time. */
  async sweep(seconds = SWEEP_AFTER_S): Promise<void> {
    await this.#writer.lock.run(async () => {
      const held = this.#held;
      if (held) await this.#writer.run(sweep(held.epoch, held.holder, seconds));
    });
  }

  /**
   * Takes a payload that is withheld from its record, while this node leads. What is old of the row stays in PostgreSQL's files
   * until they are made anew (`operate/erase.ts`).
   * @param json the entry as it is served
   * @returns whether it is gone; if not, somebody may try again
   * @throws CairnlogError as `bodyWithout` does
   */
  async erase(leafIndex: number, json: Buffer): Promise<boolean> {
    return this.#writer.lock.run(async () => {
      if (!this.#held) return false;
      const found = await this.#writer.run(recordWith(leafIndex));
      const row = found.kind === "done" ? found.rows[0] : undefined;
      if (!row) return false;
      const statement = erasing(row, leafIndex, json);
      if (!statement) return true;
      const outcome = await this.#writer.run(statement);
      return outcome.kind === "done" && outcome.rows.length === 1;
    });
  }

  /** Gives the lead back, if this node has it. */
  async release(): Promise<void> {
    await this.#writer.lock.run(async () => {
      const held = this.#held;
      if (!held) return;
      this.#held = null;
      await this.#writer.run(release(held.epoch, held.holder, held.sequence));
      this.observeLoss();
    });
  }

  /** Asks whoever leads to give the lead to the node at this address. @throws CairnlogError `storage-failed` */
  async want(url: string): Promise<void> {
    const outcome = await this.#writer.lock.run(() => this.#writer.run(want(url)));
    if (outcome.kind !== "done") throw serverSilent(outcome.error);
  }

  /**
   * The records after `position`: all that are decided, for the leader; for others, those that the leader has said to be.
   * Who has looked just before, as followers do, is not made to wait for another look.
   * @throws CairnlogError `storage-failed` when PostgreSQL does not answer; `corrupt-log` when this node is ahead of the
   *   journal, or has another history
   */
  async *tail(position: JournalPosition): AsyncIterable<Decided> {
    const lead = this.#held === null && this.#seen !== null ? this.#seen : await this.look();
    this.#seen = null;
    yield* tailOf({
      servers: this.#servers,
      position,
      lead,
      upTo: this.#held?.sequence ?? lead.acked,
      isPublic: this.#options.isPublic ?? false,
    });
  }

  async placeOf(size: number, digest: Uint8Array): Promise<PlaceInJournal> {
    return placeIn(this.#servers, await this.look(), size, digest);
  }

  /** Ends all connections. What is being proposed stays unknown. */
  close(): void {
    this.#isClosed = true;
    this.#held = null;
    this.#writer.close();
    this.#servers.close();
  }
}
