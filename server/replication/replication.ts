/**
 * A node of a log that several machines keep: it follows the journal, or leads. It belongs to the writer's thread.
 *
 * A node leads when it has taken the lead in the journal, applied everything before that, and compared the log with what
 * it has shown to clients. It stops as soon as the journal says that the lead is another's, or somebody shows that the log
 * was set back. While it follows, it applies what the leader has said to be decided, and checks all of it.
 *
 * If we crash anywhere here: what is decided is in the journal, and this node's log is the beginning of it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { CairnlogError } from "../../engine/base/error.js";
import { LEASE_MS, type PostgresJournal } from "../../engine/journal/postgres/journal.js";
import type { Lead } from "../../engine/journal/postgres/statements.js";
import type { LogWriter } from "../../engine/log/writer.js";
import { isOutside } from "../../engine/store/changeset.js";
import type { Logger } from "../process/logger.js";
import { Observation, type Role } from "./role.js";
import { checkSettings } from "./settings.js";

/** Milliseconds between two looks at the journal, and after one that has shown something new. */
const POLL_MS = 40;
const BUSY_POLL_MS = 10;
/** Milliseconds between two signs of life of a leader that has nothing to tell. */
const BEAT_MS = 400;
/** Milliseconds after which followers are told that a record is decided, unless the next append has told them. */
const TELL_MS = 20;
/** Milliseconds between two removals of private rows from old records. */
const SWEEP_MS = 60_000;
/** Payloads that are taken from the journal between two signs of life. */
const ERASED_AT_ONCE = 4;
/**
 * Milliseconds for which a node does not try again to lead when it gave the lead away, or could not lead. That doubles while it
 * cannot, since each try may leave a record in every copy of the journal.
 */
const COOL_DOWN_MS = 5_000;
const LONGEST_COOL_DOWN_MS = 60_000;
/** Milliseconds that a node which is behind leaves the lead to those that are not. */
const BEHIND_MS = 3_000;
/** Milliseconds for which the end of a service waits for PostgreSQL. */
const RETIRE_MS = 4_000;
/** Milliseconds without an answer of PostgreSQL after which a leader refuses writes. */
const SILENT_MS = 3_000;

export interface ReplicationStatus {
  readonly role: "leader" | "follower";
  /** Address of the leader; null if it is not known. */
  readonly leader: string | null;
  readonly epoch: number;
  /** The newest record that is on disk here. */
  readonly sequence: number;
  /** Seconds since this node knew that it has all there is; null before the first time. */
  readonly lagSeconds: number | null;
  /** Why it cannot follow or lead, as a sentence; null if nothing is wrong. */
  readonly trouble: string | null;
  /** Whether only an operator can mend that. A node that cannot lead is well as long as another one leads. */
  readonly isBarred: boolean;
  /** The newest checkpoint of `/tlog/` that the leader has told. */
  readonly checkpoint: string | null;
}

/** What a node does while it leads, and only then. */
interface Leadership {
  /**
   * Checks that the log may be continued, and begins.
   * @param told the newest checkpoint that a leader before has told
   * @throws CairnlogError if it may not
   */
  begin(told: string | null): Promise<void>;
  end(): Promise<void>;
  /** The newest checkpoint to tell others; null for none. */
  checkpoint(): string | null;
}

interface ReplicationParts {
  readonly journal: PostgresJournal;
  readonly log: LogWriter;
  readonly role: Role;
  /** Settings that change what the log answers, by their names. */
  readonly settings: Readonly<Record<string, string>>;
  readonly nodeUrl: string | null;
  /** Seconds without news after which reads are refused. */
  readonly maxLagSeconds: number;
  /** Whether this node never leads. */
  readonly isFollower: boolean;
  readonly leadership: Leadership;
  readonly logger: Logger;
}

/** A lead that is not taken again while its epoch lasts, or until a time of the clock that nobody sets. */
interface Yielded {
  readonly epoch: number;
  readonly until: number;
}

const NOTHING_YIELDED: Yielded = { epoch: -1, until: 0 };

/** Why a node could not lead. It does not try again until a time of that clock, whoever has tried since. */
interface Failed {
  readonly error: CairnlogError;
  readonly until: number;
  /** Milliseconds that it waits. */
  readonly pause: number;
}

export class Replication {
  readonly #parts: ReplicationParts;
  readonly #observation = new Observation();
  readonly #stop = new AbortController();
  #loops: Promise<unknown> = Promise.resolve();
  #lead: Lead | null = null;
  /** When this node last knew that it has everything, by a clock that nobody sets. */
  #fresh: number | null = null;
  #trouble: string | null = null;
  /** What is wrong for good: only an operator can mend it. */
  #isBarred = false;
  /** The lead that this node gave away: others may take it first. */
  #yielded: Yielded = NOTHING_YIELDED;
  /** Why it could not lead, until it does, or another one has led for some time. */
  #failed: Failed | null = null;
  #leading = false;
  #isRetiring = false;
  #ending: Promise<void> = Promise.resolve();
  /** Leaf indexes of entries whose payload is in the journal no more, or cannot be taken from it. */
  readonly #erased = new Set<number>();

  constructor(parts: ReplicationParts) {
    this.#parts = parts;
    parts.journal.observeLoss = () => this.#stepDown();
  }

  start(): void {
    this.#loops = Promise.all([this.#follow(), this.#live()]);
  }

  get status(): ReplicationStatus {
    const { journal, log } = this.#parts;
    const { sequence, epoch } = log.position;
    const leads = this.#leading && journal.isLeading;
    const since = leads ? journal.silence : this.#fresh === null ? null : performance.now() - this.#fresh;
    return {
      role: leads ? "leader" : "follower",
      leader: leads ? (this.#isSilent ? null : this.#parts.nodeUrl) : this.#leaderUrl,
      epoch,
      sequence,
      lagSeconds: since === null ? null : since / 1000,
      trouble: this.#trouble ?? this.#unable?.message ?? null,
      isBarred: this.#isBarred || (this.#unable !== null && isLasting(this.#unable)),
      checkpoint: this.#lead?.checkpoint ?? null,
    };
  }

  /** Of a leader that has given no sign for a while, nobody is sent to it. */
  get #leaderUrl(): string | null {
    return this.#isLed ? this.#lead!.url : null;
  }

  /** Whether a leader gives signs of life, as a follower sees it. */
  get #isLed(): boolean {
    return !!this.#lead?.holder && this.#observation.unchangedMs < LEASE_MS;
  }

  /** Why this node cannot lead, as long as that matters: no other node leads, or its log is not the newest. */
  get #unable(): CairnlogError | null {
    return this.#parts.log.refuted ?? (this.#isLed ? null : (this.#failed?.error ?? null));
  }

  /** Gives the lead back, so that another node can take it at once, and ends. */
  async stop(): Promise<void> {
    this.#stop.abort();
    const { journal } = this.#parts;
    // Who is just taking the lead has it in the journal, and gives it back, too.
    const given = this.#leading ? this.#retire() : journal.release();
    // Where PostgreSQL does not answer, what is under way stays unknown, and the lease ends by itself.
    await Promise.race([given, sleep(RETIRE_MS, undefined, { ref: false })]);
    journal.close();
    await this.#loops;
    await this.#ending;
  }

  /** Looks at the journal, applies what is decided, and takes the lead when there is nobody else. Never rejects. */
  async #follow(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#ending;
      const before = this.#parts.log.position.sequence;
      if (this.#leading) await this.#listen();
      else await this.#tried(() => this.#step());
      const isNew = !this.#leading && this.#parts.log.position.sequence > before;
      await this.#pause(isNew ? BUSY_POLL_MS : POLL_MS);
    }
  }

  /**
   * A leader that PostgreSQL does not answer has writers look elsewhere; what it has accepted still waits. One that may append
   * nothing any more gives the lead away.
   */
  async #listen(): Promise<void> {
    const { journal, role, log, logger } = this.#parts;
    this.#judgeAge();
    if (log.refuted && !this.#isRetiring) {
      logger.error({ err: log.refuted }, "this node gives the lead away, and takes it no more");
      await this.#retire();
    } else if (this.#isSilent) role.retire();
    else if (!role.leads && journal.isLeading && !this.#isRetiring) role.lead();
  }

  get #isSilent(): boolean {
    return this.#parts.journal.silence > SILENT_MS;
  }

  /** Has front ends refuse reads while nobody knows how old they are. */
  #judgeAge(): void {
    const { lagSeconds } = this.status;
    this.#parts.role.isStale = lagSeconds === null || lagSeconds > this.#parts.maxLagSeconds;
  }

  async #step(): Promise<void> {
    const { journal, log } = this.#parts;
    const began = performance.now();
    const lead = await journal.look();
    this.#lead = lead;
    this.#observation.see(lead);
    const failed = this.#failed;
    // Another one has led all the time in which this node would have tried again.
    if (failed && this.#isLed && performance.now() >= failed.until + failed.pause) this.#failed = null;
    if (this.#mustFollow(lead)) await log.follow();
    checkSettings(log.row("meta", "log"), this.#parts.settings);
    const isBehind = log.position.sequence < lead.acked;
    // Without a sign of a leader, there may be a newer primary that this node does not see.
    if (!isBehind && this.#observation.unchangedMs < LEASE_MS) this.#fresh = began;
    this.#judgeAge();
    if (this.#mayLead(lead, isBehind)) await this.#takeLead(lead);
  }

  /** Whether there is something to apply, or this log does not belong behind the journal's records. */
  #mustFollow({ acked, sequence }: Lead): boolean {
    const { position } = this.#parts.log;
    return position.sequence < acked || position.sequence > sequence || isOutside(position);
  }

  #mayLead({ epoch, holder, wanted }: Lead, isBehind: boolean): boolean {
    const { isFollower, nodeUrl, log } = this.#parts;
    if (isFollower || this.#isBarred || log.refuted) return false;
    const now = performance.now();
    if (this.#failed && now < this.#failed.until) return false;
    if (epoch <= this.#yielded.epoch && now < this.#yielded.until) return false;
    const unchanged = this.#observation.unchangedMs;
    if (isBehind && unchanged < LEASE_MS + BEHIND_MS) return false;
    // The lead was given back for a node, which takes it at once; others wait as if somebody had it.
    if (holder === null && (wanted === null || wanted === nodeUrl)) return true;
    return unchanged >= LEASE_MS;
  }

  async #takeLead(lead: Lead): Promise<void> {
    const { journal, log, role, leadership, logger, nodeUrl } = this.#parts;
    let isTaken = false;
    try {
      await journal.checkContinues(log.position, lead);
      isTaken = await journal.takeLead(lead);
      if (!isTaken) return;
      // All that was appended before the takeover: nobody appends anything behind it.
      await log.follow();
      await leadership.begin(lead.checkpoint);
      if (!journal.isLeading) throw new CairnlogError("not-leader", "The lead was lost before it began.");
    } catch (thrown) {
      if (isTaken) {
        await this.#end();
        await journal.release();
      }
      const error = asCoded(thrown);
      // Where PostgreSQL is silent nothing was tried yet.
      if (!isTaken && !isLasting(error)) throw error;
      return this.#fail(error);
    }
    this.#leading = true;
    [this.#trouble, this.#failed, this.#yielded] = [null, null, NOTHING_YIELDED];
    role.lead();
    logger.info({ epoch: log.position.epoch, entries: log.size, url: nodeUrl }, "this node leads");
  }

  /** Leaves the lead to others for longer each time, and says why once. */
  #fail(error: CairnlogError): void {
    if (this.#stop.signal.aborted) return;
    const failed = this.#failed;
    if (failed?.error.message !== error.message) this.#parts.logger.error({ err: error }, "this node cannot lead");
    const pause = Math.min(failed ? 2 * failed.pause : COOL_DOWN_MS, LONGEST_COOL_DOWN_MS);
    this.#failed = { error, until: performance.now() + pause, pause };
  }

  /** Refuses appends at once; everything else ends in the background, and only then does the node follow. */
  #stepDown(): void {
    if (!this.#leading) return;
    const { role, log, logger } = this.#parts;
    this.#leading = false;
    role.follow();
    logger.warn({ epoch: log.position.epoch, entries: log.size }, "this node does not lead any more");
    this.#ending = this.#end();
  }

  /** Never rejects: whatever did not end, the lead is another's, or is to be. */
  #end(): Promise<void> {
    const { leadership, logger } = this.#parts;
    return leadership
      .end()
      .catch((error: unknown) => logger.error({ err: error }, "what only the leader does did not end in order"));
  }

  /** Gives signs of life while this node leads. Never rejects. */
  async #live(): Promise<void> {
    const { journal, role, leadership, nodeUrl } = this.#parts;
    let swept = performance.now();
    while (!this.#stop.signal.aborted) {
      await this.#untilBeat();
      this.#judgeAge();
      if (!journal.isLeading) continue;
      const wanted = await journal.beat(leadership.checkpoint(), () => role.confirm());
      if (this.#leading && wanted !== null && wanted !== nodeUrl) await this.#handOver(wanted);
      await this.#erase();
      if (performance.now() - swept < SWEEP_MS) continue;
      swept = performance.now();
      await journal.sweep();
    }
  }

  /** Takes payloads that are withheld from the journal, so that nodes to come never have them. */
  async #erase(): Promise<void> {
    const { journal, log, logger } = this.#parts;
    const { withheldLeaves } = log;
    if (withheldLeaves.length === this.#erased.size) return;
    for (const leaf of withheldLeaves.filter((leaf) => !this.#erased.has(leaf)).slice(0, ERASED_AT_ONCE))
      try {
        if (await journal.erase(leaf, log.bareJsonAt(leaf))) this.#erased.add(leaf);
      } catch (error) {
        logger.error({ err: error }, "a payload that is withheld stays in the journal");
        this.#erased.add(leaf);
      }
  }

  /** Waits for the next sign of life, which is sooner when there is something to tell. */
  async #untilBeat(): Promise<void> {
    const { journal } = this.#parts;
    const until = performance.now() + BEAT_MS;
    do await this.#pause(TELL_MS);
    while (!this.#stop.signal.aborted && performance.now() < until && journal.untold < TELL_MS);
  }

  async #handOver(wanted: string): Promise<void> {
    this.#parts.logger.info({ wanted }, "the lead is given to another node");
    this.#yielded = { epoch: this.#parts.log.position.epoch, until: performance.now() + COOL_DOWN_MS };
    await this.#retire();
  }

  /** Answers what was accepted, and gives the lead back. */
  async #retire(): Promise<void> {
    const { journal, log, role } = this.#parts;
    this.#isRetiring = true;
    role.retire();
    await log.settled();
    this.#stepDown();
    await this.#ending;
    await journal.release();
    this.#isRetiring = false;
  }

  /** Remembers what is wrong, and says it once. */
  async #tried(work: () => Promise<void>): Promise<void> {
    const { logger } = this.#parts;
    try {
      await work();
      if (this.#trouble !== null) logger.info("the journal can be followed again");
      [this.#trouble, this.#isBarred] = [null, false];
    } catch (thrown) {
      const error = asCoded(thrown);
      if (this.#stop.signal.aborted) return;
      this.#isBarred = isLasting(error);
      if (this.#trouble === null) logger.error({ err: error }, "the journal cannot be followed");
      this.#trouble = error.message;
    }
  }

  #pause(milliseconds: number): Promise<unknown> {
    return sleep(milliseconds, undefined, { signal: this.#stop.signal }).catch(() => {});
  }
}

/** Whether only an operator can mend it. */
const isLasting = ({ code }: CairnlogError): boolean => code !== "storage-failed" && code !== "not-leader";

/** What the machine refuses, such as a file on a full disk, may be over the next time. @throws what is a fault of the code */
function asCoded(error: unknown): CairnlogError {
  if (error instanceof CairnlogError) return error;
  const { message, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined) throw error;
  return new CairnlogError("storage-failed", `This machine refuses what the node needs: ${message}.`, { cause: error });
}
