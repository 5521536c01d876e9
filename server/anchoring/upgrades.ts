/**
 * The background work of anchoring: asks calendars repeatedly for the Bitcoin proofs that they promised, and stores
 * these in place. A calendar may promise a proof and never have it. So it is asked more and more rarely, and a promise
 * is not given up as long as nothing else proves the entry.
 */
import { CairnlogError } from "../../engine/base/error.js";
import type { UnsettledAnchor } from "../../engine/log/anchor/anchors.js";
import { type OpenPromise, openPromises, statusOf } from "../../engine/log/anchor/proof.js";
import type { Log } from "../../engine/log/log.js";
import { type Clock, parseTimestamp } from "../../engine/log/state/clock.js";
import type { Writer } from "../../engine/log/state/executor.js";
import type { OtsTimestamp } from "../../engine/verify/ots/ots.js";
import type { Logger } from "../process/logger.js";
import { type Calendar, CalendarError, extended, nodesOf } from "./calendar.js";

/** After the first Bitcoin proof of an anchor, the other calendars are asked for theirs for this time. */
const SPARE_PROOFS_MICROS = 7 * 86_400 * 1_000_000;
/**
 * A promise is asked about again after this fraction of its age, so the number of requests grows with the logarithm of
 * the age.
 */
const PATIENCE = 1 / 8;

interface UpgradeParts {
  readonly log: Pick<Log, "anchors">;
  readonly writer: Pick<Writer, "execute">;
  readonly calendars: readonly Calendar[];
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  readonly clock: Clock;
}

export class Upgrades {
  readonly #parts: UpgradeParts;
  readonly #stop = new AbortController();
  /** Leaf index → when it was last asked about. Not stored: after a restart it is asked once more. */
  readonly #asked = new Map<number, number>();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | null = null;

  constructor(parts: UpgradeParts) {
    this.#parts = parts;
  }

  /** Runs a round now, and another one `seconds` after each round has ended. */
  start(seconds: number): void {
    void this.run().finally(() => {
      if (this.#stop.signal.aborted) return;
      this.#timer = setTimeout(() => this.start(seconds), seconds * 1000);
    });
  }

  /** Ends a running round, and starts no more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    await this.#round;
  }

  /** One round; joins a running one. Never rejects: errors are logged, and the next round tries again. */
  run(): Promise<void> {
    this.#round ??= this.#runRound()
      .catch((error) => this.#parts.logger.error({ err: error }, "anchors could not be upgraded"))
      .finally(() => {
        this.#round = null;
      });
    return this.#round;
  }

  async #runRound(): Promise<void> {
    const silent = new Set<Calendar>();
    // A copy, because anchors that are completed during the round leave the table.
    for (const anchor of this.#stop.signal.aborted ? [] : [...this.#parts.log.anchors.unsettled()]) {
      if (this.#stop.signal.aborted) return;
      if (!this.#isDue(anchor)) continue;
      this.#asked.set(anchor.leafIndex, this.#parts.clock());
      await this.#upgrade(anchor, silent);
    }
  }

  #isDue({ leafIndex, anchored_at }: UnsettledAnchor): boolean {
    const now = this.#parts.clock();
    const asked = this.#asked.get(leafIndex);
    // The last request seems to be in the future: the clock has stepped back since, so the real time is unknown.
    if (asked === undefined || asked > now) return true;
    return now - asked >= (now - parseTimestamp(anchored_at)) * PATIENCE;
  }

  /** @param silent calendars that have failed in this round, and are not asked again before the next */
  async #upgrade({ leafIndex, anchored_at }: UnsettledAnchor, silent: Set<Calendar>): Promise<void> {
    const { log, writer, calendars, logger, clock } = this.#parts;
    const row = log.anchors.row(leafIndex);
    if (!row) return;
    const promises = openPromises(row.proof);
    const found = await Promise.all(calendars.map((calendar) => this.#askCalendar(calendar, promises, silent)));
    let { proof } = row;
    for (const timestamp of found.flat()) {
      try {
        proof = extended(proof, timestamp.message, timestamp, (root) => nodesOf(root, timestamp.message));
      } catch (error) {
        if (!(error instanceof CairnlogError)) throw error;
        logger.warn({ entry: leafIndex, err: error }, "a calendar's proof does not fit");
      }
    }
    const status = statusOf(proof);
    const isOld = clock() - parseTimestamp(anchored_at) > SPARE_PROOFS_MICROS;
    const isSettled = status === "confirmed" && (isOld || !openPromises(proof).length);
    if (proof === row.proof && !isSettled) return;
    // If the proof has changed in the meantime, the next round begins with the new one.
    if (!(await log.anchors.replace(writer, leafIndex, row.proof, { proof, status, isSettled }))) return;
    if (isSettled) this.#asked.delete(leafIndex);
    logger.info({ leaf_index: leafIndex, status }, "anchor upgraded");
  }

  async #askCalendar(
    calendar: Calendar,
    promises: readonly OpenPromise[],
    silent: Set<Calendar>,
  ): Promise<OtsTimestamp[]> {
    const found: OtsTimestamp[] = [];
    for (const { message, uris } of promises) {
      if (silent.has(calendar) || this.#stop.signal.aborted) break;
      if (!this.#mayKnow(calendar, uris)) continue;
      try {
        const timestamp = await calendar.lookUp(message, this.#stop.signal);
        if (timestamp) found.push(timestamp);
      } catch (error) {
        if (!(error instanceof CalendarError)) throw error;
        silent.add(calendar);
        this.#parts.logger.warn({ calendar: calendar.uri, reason: error.message }, "calendar failed");
      }
    }
    return found;
  }

  /**
   * A calendar wrote the addresses in a proof, so they are never contacted: they only select among the configured
   * calendars. If they match none of these, as behind the name of a pool, any calendar may have the proof.
   */
  #mayKnow(calendar: Calendar, uris: readonly string[]): boolean {
    const named = new Set(uris.map((uri) => uri.replace(/\/+$/, "")));
    return named.has(calendar.uri) || !this.#parts.calendars.some(({ uri }) => named.has(uri));
  }
}
