/**
 * The way of all writes of the registry to the log. Here it is decided whether a client may write, and who pays
 * for a command: the client that sent it, and whether an anchor reaches the key that signed it. Commands know nothing of
 * either (`log/write/budgets.ts`).
 */

import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/service/health.js";
import type { Value } from "../../contract/types.js";
import type { Log } from "../../log/log.js";
import { type Clock, formatTimestamp } from "../../log/state/clock.js";
import type { Command } from "../../log/state/commands.js";
import type { Committed, Writer } from "../../log/state/executor.js";
import { type AllowedSigner, maySignAt } from "../../verify/index.js";
import { ENDORSEMENT_CATEGORIES } from "../../verify/keys/contract.js";
import { endorsementStatus, timeAt } from "../events/endorsements.js";
import { statusAt } from "../events/keys.js";

/** Who sent a request. A program that embeds the log has no client; it writes as the operator does. */
export interface Caller {
  /** What is counted together, as `Payer.client`. */
  readonly address: string;
  /** Whether an anchor reaches the key of the request; only where another thread has found that out. */
  readonly isReached?: boolean;
}

/** The part of `TrustService` that says whom the log's anchors reach. */
interface AnchorReach {
  /** As far as it is known without a look at the graph. */
  isReached(fingerprint: string): boolean;
  /** As it is now. */
  reaches(fingerprint: string): Promise<boolean>;
}

export class Writes {
  readonly #writer: Pick<Writer, "enqueue">;
  readonly #trust: AnchorReach;
  /** Null where everybody may write. */
  readonly #writers: Writers | null;

  /** Use `openRegistry`. */
  constructor(writer: Pick<Writer, "enqueue">, trust: AnchorReach, writers: Writers | null = null) {
    this.#writer = writer;
    this.#trust = trust;
    this.#writers = writers?.isRestricted ? writers : null;
  }

  /**
   * Checks that a client may write, for callers that do something costly before their command.
   * @throws CairnlogError `not-a-writer`
   */
  check(client: Caller | null, key: string | null): void {
    if (client) this.#writers?.check(key);
  }

  /**
   * The key that answers for a write, which `execute` takes as `writer`: an anchor that has asked for it, otherwise the key
   * that signs. So an anchor lets in keys that may not write yet.
   */
  answering(asking: string | null, key: string | null): string | null {
    return asking !== null && this.#writers?.isAnchor(asking) ? asking : key;
  }

  /**
   * Runs a command as `Log.execute` does.
   * @param key fingerprint of the key whose possession was proven; null if none was
   * @param writer fingerprint of the key that must be a writer's; `key` if absent
   * @throws CairnlogError as `Log.execute` does; `not-a-writer`, `budget-spent`
   */
  execute<Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    client: Caller | null,
    key: string | null,
    writer: string | null = key,
  ): Promise<Committed<Output>> {
    return new Promise((resolve, reject) => this.enqueue(command, input, client, key, resolve, reject, writer));
  }

  /** Like `execute`, for callers that need no promise (`Writer.enqueue`). */
  enqueue<Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    client: Caller | null,
    key: string | null,
    resolve: (committed: Committed<Output>) => void,
    reject: (error: unknown) => void,
    writer: string | null = key,
  ): void {
    if (!client) {
      this.#writer.enqueue(command, input, resolve, reject);
      return;
    }
    if (this.#writers)
      try {
        this.#writers.check(writer);
      } catch (error) {
        reject(error);
        return;
      }
    const run = (isReached: boolean, refuse: (error: unknown) => void) =>
      this.#writer.enqueue(command, input, resolve, refuse, { client: client.address, isReached });
    const isReached = this.#isReached(client, key);
    const again = (error: unknown) =>
      this.#again(error, key!).then((is) => (is ? run(true, reject) : reject(error)), reject);
    run(isReached, isReached || key === null || client.isReached !== undefined ? reject : again);
  }

  /**
   * For a command of another thread: calls `write` with a client of which everything is known.
   * @throws what `write` throws
   */
  async through<T>(client: Caller | null, key: string, write: (client: Caller | null) => Promise<T>): Promise<T> {
    if (!client) return write(null);
    const isReached = this.#isReached(client, key);
    try {
      return await write({ ...client, isReached });
    } catch (error) {
      if (isReached || !(await this.#again(error, key))) throw error;
      return write({ ...client, isReached: true });
    }
  }

  #isReached({ isReached }: Caller, key: string | null): boolean {
    return isReached ?? (key !== null && this.#trust.isReached(key));
  }

  /**
   * Whether a command that was refused as a stranger's is to be tried once more. What is known of a key without a look at
   * the graph may be some seconds old, and counts one way only: nobody is refused for it whom an anchor reaches now.
   */
  async #again(error: unknown, key: string): Promise<boolean> {
    const isForStrangers =
      error instanceof CairnlogError && (error.code === "budget-spent" || error.code === "storage-full");
    if (!isForStrangers) return false;
    // If the graph cannot be looked at, the first refusal holds.
    return this.#trust.reaches(key).catch(() => false);
  }
}

// Who may write to the log (docs/spec §12.7): the rule of the service, which is asked about the key that signs a request.
// `Writes` asks it before a command of a client is queued, so whatever is stored for a client goes past it.
//
// Each thread has its own; what it looks at are rows on disk and a list that is replaced as a whole.

export type WritersRule = WritersView["rule"];

export interface WritersSettings {
  readonly rule: WritersRule;
  /** With the rule `file`: the list. */
  readonly listed?: readonly AllowedSigner[] | null;
}

type WritersView = Value<typeof contract.WritersRule>;

const SENTENCES: Readonly<Record<WritersRule, string>> = {
  everybody: "Everybody who has a key may write to this log.",
  registered: "Keys that are registered may write to this log; its operator and its trust anchors register others.",
  endorsed: "Keys that the operator or another trust anchor of this log endorses may write to it.",
  file: "Keys that its operator has put on a list may write to this log.",
};

/** How a key becomes a writer. */
const WAYS: Readonly<Record<Exclude<WritersRule, "everybody">, string>> = {
  registered: "Send your public key to the operator, and ask to have it registered.",
  endorsed:
    "Send your public key to the operator or another trust anchor, ask for an endorsement, and accept it; it counts when it is active.",
  file: "Send the fingerprint of your key to the operator, and ask to have it put on the list.",
};

interface WritersParts {
  readonly log: Pick<Log, "row">;
  /** Fingerprint of the operator key. */
  readonly operator: string;
  /** Fingerprints of the other trust anchors. */
  readonly anchors: readonly string[];
  readonly activationDelaySeconds: number;
  readonly clock: Clock;
  readonly settings: WritersSettings;
}

export class Writers {
  readonly #log: Pick<Log, "row">;
  readonly #operator: string;
  readonly #anchors: ReadonlySet<string>;
  readonly #activationDelaySeconds: number;
  readonly #clock: Clock;
  readonly #rule: WritersRule;
  /** By fingerprint; a key may be listed for several times. */
  #listed: ReadonlyMap<string, readonly AllowedSigner[]> = new Map();

  /** Use `openRegistry`. */
  constructor({ settings, ...parts }: WritersParts) {
    this.#log = parts.log;
    this.#operator = parts.operator;
    this.#anchors = new Set([parts.operator, ...parts.anchors]);
    this.#activationDelaySeconds = parts.activationDelaySeconds;
    this.#clock = parts.clock;
    this.#rule = settings.rule;
    this.renew(settings.listed ?? []);
  }

  /** Whether there is anybody who may not write. */
  get isRestricted(): boolean {
    return this.#rule !== "everybody";
  }

  get view(): WritersView {
    return { rule: this.#rule, sentence: SENTENCES[this.#rule] };
  }

  /** Replaces the list, for requests to come. */
  renew(listed: readonly AllowedSigner[]): void {
    const byKey = new Map<string, AllowedSigner[]>();
    for (const one of listed) byKey.set(one.fingerprint, [...(byKey.get(one.fingerprint) ?? []), one]);
    this.#listed = byKey;
  }

  /** Whether the key is a trust anchor of the log. @param fingerprint in the registry's form */
  isAnchor(fingerprint: string): boolean {
    return this.#anchors.has(fingerprint);
  }

  /**
   * @param fingerprint in the registry's form; null for a request that no key has signed
   * @throws CairnlogError `not-a-writer`
   */
  check(fingerprint: string | null): void {
    if (fingerprint === this.#operator || this.#rule === "everybody") return;
    if (fingerprint !== null && this.#fits(fingerprint, this.#rule)) return;
    const who =
      fingerprint === null ? "No key that may write has signed this." : `The key ${fingerprint} may not write.`;
    throw new CairnlogError("not-a-writer", `${who} ${SENTENCES[this.#rule]} ${WAYS[this.#rule]}`);
  }

  #fits(fingerprint: string, rule: Exclude<WritersRule, "everybody">): boolean {
    if (rule === "registered") return this.#log.row("keys", fingerprint) !== undefined;
    if (rule === "endorsed") return this.isAnchor(fingerprint) || this.#isEndorsed(fingerprint);
    const now = formatTimestamp(this.#clock());
    return (this.#listed.get(fingerprint) ?? []).some((one) => maySignAt(one, now));
  }

  /**
   * Whether an anchor endorses the key now. The rows of the two keys are looked up, not those of all who have endorsed it:
   * strangers decide how many these are.
   */
  #isEndorsed(fingerprint: string): boolean {
    const now = formatTimestamp(this.#clock());
    const time = timeAt(now, this.#activationDelaySeconds);
    return [...this.#anchors].some(
      (anchor) =>
        this.#isActive(anchor, now) &&
        ENDORSEMENT_CATEGORIES.some((category) => {
          const pair = this.#log.row("endorsementPairs", [anchor, fingerprint, category]);
          const row = pair && this.#log.row("endorsements", pair.offer_entry_id);
          return row !== undefined && endorsementStatus(row, time) === "active";
        }),
    );
  }

  /** Only the operator key may have no row. */
  #isActive(anchor: string, now: string): boolean {
    const row = this.#log.row("keys", anchor);
    return row ? statusAt(row, now) === "active" : anchor === this.#operator;
  }
}
