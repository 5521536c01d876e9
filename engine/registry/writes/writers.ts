/**
 * Who may write to the log (docs/spec §12.7): the rule of the service, which is asked about the key that signs a request.
 * `Writes` asks it before a command of a client is queued, so whatever is stored for a client goes past it.
 *
 * Each thread has its own; what it looks at are rows on disk and a list that is replaced as a whole.
 */
import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/service/health.js";
import type { Value } from "../../contract/types.js";
import type { Log } from "../../log/log.js";
import { type Clock, formatTimestamp } from "../../log/state/clock.js";
import type { AllowedSigner } from "../../verify/index.js";
import { ENDORSEMENT_CATEGORIES } from "../../verify/keys/contract.js";
import { endorsementStatus, timeAt } from "../events/endorsements.js";
import { statusAt } from "../events/status.js";

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
    return (this.#listed.get(fingerprint) ?? []).some(
      ({ validAfter, validBefore }) => (validAfter ?? now) <= now && now <= (validBefore ?? now),
    );
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
