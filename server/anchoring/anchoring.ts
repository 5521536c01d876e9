/**
 * Anchoring: asks OpenTimestamps calendars to put the newest entry's hash into Bitcoin, so that not even the operator
 * can rewrite earlier entries. Appends never wait for calendars: they are asked first, and a command then stores their
 * answers.
 */
import { randomBytes } from "node:crypto";
import { CairnlogError } from "../../engine/base/error.js";
import type * as contract from "../../engine/contract/log/anchoring.js";
import type { Value } from "../../engine/contract/types.js";
import { isProofOf, openPromises, statusOf } from "../../engine/log/anchor/proof.js";
import type { Log } from "../../engine/log/log.js";
import { type Clock, microsOf, systemClock } from "../../engine/log/state/clock.js";
import type { Writer } from "../../engine/log/state/executor.js";
import { OtsTimestamp } from "../../engine/verify/ots/ots.js";
import type { Entry } from "../../engine/verify/tree/entry.js";
import type { Logger } from "../process/logger.js";
import { blinded, Calendar, CalendarError, extended } from "./calendar.js";
import { Upgrades } from "./upgrades.js";

/** The length that the reference client uses. */
const NONCE_BYTES = 16;
const DAY_MICROS = 86_400 * 1_000_000;
/** Number of new entries after which the log should be anchored again. */
const DUE_ENTRIES = 1000;

interface AnchoringOptions {
  readonly log: Log;
  readonly writer: Pick<Writer, "execute">;
  /** The only addresses that are ever contacted: http: or https:, without a slash at the end. */
  readonly calendars: readonly string[];
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  readonly clock?: Clock;
  /** Time limit for an answer of a calendar, in milliseconds; 10,000 if absent. */
  readonly timeoutMs?: number;
}

export type Anchored = Value<typeof contract.Anchored>;

export type AnchorStatus = Value<typeof contract.AnchorStatus>;

export class Anchoring {
  readonly #log: Log;
  readonly #writer: AnchoringOptions["writer"];
  readonly #calendars: readonly Calendar[];
  readonly #logger: AnchoringOptions["logger"];
  readonly #clock: Clock;
  readonly #upgrades: Upgrades;
  readonly #stop = new AbortController();
  /** Failures since the start: calendars that were asked to take a digest and gave no usable answer. */
  failures = 0;
  /** Leaf index → the running anchoring of that entry. */
  readonly #running = new Map<number, Promise<Anchored>>();

  constructor({ log, writer, calendars, logger, clock = systemClock, timeoutMs }: AnchoringOptions) {
    this.#log = log;
    this.#writer = writer;
    this.#calendars = calendars.map((uri) => new Calendar(uri, timeoutMs));
    this.#logger = logger;
    this.#clock = clock;
    this.#upgrades = new Upgrades({ log, writer, calendars: this.#calendars, logger, clock });
  }

  /** Starts looking for Bitcoin proofs in the background: now, and every `seconds`. */
  start(seconds: number): void {
    if (this.#calendars.length) this.#upgrades.start(seconds);
  }

  /** Looks for Bitcoin proofs once, now. Never rejects. */
  upgrade(): Promise<void> {
    return this.#upgrades.run();
  }

  /** Cancels the running requests to calendars, and resolves when nothing is running any more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.allSettled([this.#upgrades.stop(), ...this.#running.values()]);
  }

  /**
   * Anchors the newest entry. If it has an anchor already, it keeps its proof. Calendars are then asked again, and
   * their answers added, only if the anchor has waited for a day, since a calendar may have lost its promise.
   * @throws CairnlogError `precondition-failed` on an empty log; `calendars-unavailable`, without writing, if no
   *   calendar answered or none is configured; `closed`; as `Log.execute` does
   */
  anchor(): Promise<Anchored> {
    const entry = this.#log.head();
    if (!entry) return Promise.reject(new CairnlogError("precondition-failed", "No entries to anchor"));
    const leafIndex = this.#log.leafIndexOf(entry.id)!;
    const running = this.#running.get(leafIndex);
    if (running) return running;
    const anchoring = this.#anchor(leafIndex, entry).finally(() => this.#running.delete(leafIndex));
    this.#running.set(leafIndex, anchoring);
    return anchoring;
  }

  async #anchor(leafIndex: number, entry: Entry): Promise<Anchored> {
    const row = this.#log.anchors.row(leafIndex);
    const digest = Buffer.from(entry.entry_hash, "hex");
    // A proof that came with imported history may be in any format; such a proof is not changed.
    const isWaiting =
      row?.status === "pending" && this.#since(row.updated_at) >= DAY_MICROS && isProofOf(row.proof, digest);
    if (row && !isWaiting) return anchored(entry, row.proof);
    if (!this.#calendars.length)
      throw new CairnlogError(
        "calendars-unavailable",
        "No calendar is configured. Set SERVICE_OTS_CALENDARS to the addresses of OpenTimestamps calendars.",
      );
    const nonce = randomBytes(NONCE_BYTES);
    const answers = await this.#submit(blinded(new OtsTimestamp(digest), nonce).message);
    for (;;) {
      const base = this.#log.anchors.row(leafIndex)?.proof;
      let proof = base ?? null;
      for (const answer of answers) {
        try {
          proof = extended(proof, digest, answer, (root) => [blinded(root, nonce)]);
        } catch (error) {
          if (!(error instanceof CairnlogError)) throw error;
          this.#logger.warn({ err: error }, "a calendar's answer does not fit into the proof");
        }
      }
      // An answer may be nested so deeply that no proof can contain it.
      if (!proof) throw new CairnlogError("calendars-unavailable", "No calendar gave an answer that can be used.");
      const status = statusOf(proof);
      const isSettled = status === "confirmed" && !openPromises(proof).length;
      const next = { proof, status, isSettled };
      if (await this.#log.anchors.replace(this.#writer, leafIndex, base, next)) return anchored(entry, proof);
    }
  }

  /** The answers of the calendars about `message`, at least one. */
  async #submit(message: Uint8Array): Promise<OtsTimestamp[]> {
    const { signal } = this.#stop;
    const outcomes = await Promise.allSettled(this.#calendars.map((calendar) => calendar.submit(message, signal)));
    const answers = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    const failures = outcomes.flatMap((outcome, i) => {
      if (outcome.status === "fulfilled") return [];
      if (!(outcome.reason instanceof CalendarError)) throw outcome.reason;
      return [`${this.#calendars[i]!.uri} ${outcome.reason.message}`];
    });
    this.failures += failures.length;
    if (answers.length) {
      for (const failure of failures) this.#logger.warn({ failure }, "a calendar was left out");
      return answers;
    }
    if (signal.aborted) throw new CairnlogError("closed", "The service is shutting down.");
    throw new CairnlogError("calendars-unavailable", `No calendar answered: ${failures.join("; ")}.`);
  }

  /** The current state of anchoring. */
  status(): AnchorStatus {
    const { newest } = this.#log.anchors.totals;
    const row = this.#log.anchors.row(newest);
    const entries = this.#log.size - (newest + 1);
    // A log that was never anchored has waited since its first entry.
    const since = row?.anchored_at ?? this.#log.entryAt(0)?.timestamp;
    const isDue = entries >= DUE_ENTRIES || (entries > 0 && since !== undefined && this.#since(since) >= DAY_MICROS);
    return {
      anchored_entry_id: row ? this.#log.entryAt(newest)!.id : null,
      anchored_at: row?.anchored_at ?? null,
      proof_status: row?.status ?? "none",
      entries_since_anchor: entries,
      anchor_due: isDue,
    };
  }

  /** Microseconds since a timestamp. */
  #since(timestamp: string): number {
    return this.#clock() - microsOf(timestamp);
  }
}

function anchored(entry: Entry, proof: Uint8Array): Anchored {
  const { id, entry_hashes } = entry;
  return { anchored_entry_id: id, entry_hashes, ots_proof: Buffer.from(proof).toString("base64") };
}
