/**
 * Alarms of a monitor, and their evidence. Evidence is the received data, unchanged, beside the data that the monitor
 * had before, so that a third party can judge it offline (`docs/monitor.md`).
 */
import type { Entry, OperatorTerm, TreeHead } from "../../engine/verify/index.js";
import type { Evidence } from "../client/index.js";

/** The kinds of misbehaviour. Scripts of users depend on these names. */
export type Misconduct =
  /** The service shows another operator key than the pinned one, or a chain of keys that does not lead on from it. */
  | "operator-key"
  /** A tree head or checkpoint is not signed by the operator key of its size. */
  | "bad-signature"
  /** A tree head is signed by an operator key that was retired before its size. */
  | "retired-key"
  /** Two signed heads of one size, or a signed head that does not go on from the last one. */
  | "fork"
  /** The newest head is smaller than one that was shown before. */
  | "shrunken"
  /** A signed head has a timestamp in the future. */
  | "future-head"
  /** A size that must have a head has none. */
  | "missing-head"
  /** A signed head has another root than the entries that are served. */
  | "wrong-root"
  /** The content of an entry does not have the claimed hashes. */
  | "bad-entry"
  /** The log lists fewer entries than its signed head has leaves. */
  | "missing-entry"
  /** The link or the id of an entry does not follow from the entry before it. */
  | "broken-chain"
  /** An entry or a head is older than the one before it. */
  | "time-reversal"
  /** The served entry differs from the mirrored one. */
  | "changed-entry";

/** The evidence. Members that do not matter are null. */
export interface MonitorEvidence extends Evidence {
  /** The entry before `entry`, or with `changed-entry` the mirrored entry. */
  readonly other: Entry | null;
  /** PEM of the key that the service shows now, with `operator-key`. */
  readonly shownKey: string | null;
  /** The chain of operator keys that the service shows now, with `operator-key`; it may be any JSON. */
  readonly shownOperators: readonly OperatorTerm[] | null;
  /** The signed note that contradicts `known`. */
  readonly checkpoint: string | null;
}

/** The error for a misbehaviour of the log. Nothing of the data that shows it is mirrored. */
export class Misbehaviour extends Error {
  readonly kind: Misconduct;
  readonly evidence: MonitorEvidence;

  constructor(kind: Misconduct, detail: string, evidence: MonitorEvidence) {
    super(detail);
    this.name = "Misbehaviour";
    this.kind = kind;
    this.evidence = evidence;
  }
}

/** An alarm as it is printed and posted. */
export interface Alarm {
  readonly alarm: Misconduct | "stalled" | "watched" | "rotated";
  /** A sentence. */
  readonly detail: string;
  readonly server: string;
  /** The time by the clock of this machine. */
  readonly observed_at: string;
  /** The newest verified head. */
  readonly head: TreeHead | null;
  /** Of `watched` and `rotated`. */
  readonly entry?: Entry;
  /** The fingerprint that the entry names, for `watched`. */
  readonly fingerprint?: string;
  /** The evidence, for a misbehaviour. */
  readonly evidence?: MonitorEvidence;
}
