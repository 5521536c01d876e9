/**
 * The background work of anchoring: asks calendars, again and again, for the Bitcoin proofs that they promised, and puts
 * them into the proofs in place. A calendar may promise and then know nothing for ever, so every promise is asked about
 * ever more rarely as it ages, and none is given up while nothing else proves the entry.
 */
import { CairnlogError } from "../../engine/error.js";
import type { UnsettledAnchor } from "../../engine/log/anchor/anchors.js";
import { type OpenPromise, openPromises, statusOf } from "../../engine/log/anchor/proof.js";
import { type Clock, parseTimestamp } from "../../engine/log/clock.js";
import type { Log } from "../../engine/log/log.js";
import type { OtsTimestamp } from "../../engine/verify/ots/ots.js";
import type { Logger } from "../http/observing/logger.js";
import { type Calendar, CalendarError } from "./calendar.js";
import { extended, nodesOf } from "./proof.js";

/** For how long after the first Bitcoin proof of an anchor the other calendars are asked for theirs. */
const SPARE_PROOFS_MICROS = 7 * 86_400 * 1_000_000;
/** A promise is asked about again after this part of its age: the number of requests grows with the logarithm of the age. */
const PATIENCE = 1 / 8;

export interface UpgradeParts {
  readonly log: Pick<Log, "anchors">;
  readonly calendars: readonly Calendar[];
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  readonly clock: Clock;
}

export class Upgrades {
  readonly #parts: UpgradeParts;
  readonly #stop = new AbortController();
  /** Leaf index → when it was last asked about; forgotten at a restart, which asks once more. */
  readonly #asked = new Map<number, number>();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | null = null;

  constructor(parts: UpgradeParts) {
    this.#parts = parts;
  }

  /** Runs a round now and one in every `seconds` after the last has ended. */
  start(seconds: number): void {
    void this.run().finally(() => {
      if (this.#stop.signal.aborted) return;
      this.#timer = setTimeout(() => this.start(seconds), seconds * 1000);
    });
  }

  /** Ends a round that is under way, and starts none any more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    await this.#round;
  }

  /** One round; joins the one that is under way. Never rejects: what goes wrong is logged, and the next round tries again. */
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
    // A copy: anchors that are settled meanwhile leave the table.
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
    // Asked at a time to come: the clock has stepped back since, and nothing else says when that was.
    if (asked === undefined || asked > now) return true;
    return now - asked >= (now - parseTimestamp(anchored_at)) * PATIENCE;
  }

  /** @param silent calendars that have failed in this round, which is why they are left alone until the next */
  async #upgrade({ leafIndex, anchored_at }: UnsettledAnchor, silent: Set<Calendar>): Promise<void> {
    const { log, calendars, logger, clock } = this.#parts;
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
    // When somebody has changed the proof meanwhile, the next round begins with what it is then.
    if (!(await log.anchors.replace(leafIndex, row.proof, { proof, status, isSettled }))) return;
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
   * The addresses in a proof are a calendar's word and are never contacted: they only pick among those configured. Where
   * they name none of them, as behind the name of a pool, any may know.
   */
  #mayKnow(calendar: Calendar, uris: readonly string[]): boolean {
    const named = new Set(uris.map((uri) => uri.replace(/\/+$/, "")));
    return named.has(calendar.uri) || !this.#parts.calendars.some(({ uri }) => named.has(uri));
  }
}
