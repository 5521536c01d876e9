/**
 * Alarms: what a monitor says of a log, and the evidence that goes with it. Evidence is what was received, to the letter,
 * beside what was held before, so that a third party can judge it offline (`docs/monitor.md`).
 */
import type { Entry, OperatorTerm, TreeHead } from "../../engine/verify/index.js";
import type { Evidence } from "../client/index.js";

/** How a log can be caught. Renaming one breaks the scripts of those who listen. */
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
  /** A signed head is of a time that has not come yet. */
  | "future-head"
  /** There is no head where there must be one. */
  | "missing-head"
  /** A signed head has another root than the entries that are served. */
  | "wrong-root"
  /** An entry's content does not have the hashes that it claims. */
  | "bad-entry"
  /** The log lists fewer entries than its signed head has leaves. */
  | "missing-entry"
  /** An entry does not follow on the one before it: its link or its id. */
  | "broken-chain"
  /** An entry or a head is older than the one before it. */
  | "time-reversal"
  /** An entry is not served as it was mirrored. */
  | "changed-entry";

/** What shows it. Members that are of no concern are null. */
export interface MonitorEvidence extends Evidence {
  /** The entry before `entry`, or with `changed-entry` the one that was mirrored. */
  readonly other: Entry | null;
  /** PEM of the key that the service shows now, with `operator-key`. */
  readonly shownKey: string | null;
  /** The chain of operator keys that the service shows now, with `operator-key`; it may be any JSON. */
  readonly shownOperators: readonly OperatorTerm[] | null;
  /** The signed note that contradicts `known`. */
  readonly checkpoint: string | null;
}

/** A log that was caught. Nothing of what it showed is mirrored. */
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
  /** By the clock of this machine. */
  readonly observed_at: string;
  /** The newest head that holds. */
  readonly head: TreeHead | null;
  /** Of `watched` and `rotated`. */
  readonly entry?: Entry;
  /** Of `watched`: the fingerprint that the entry names. */
  readonly fingerprint?: string;
  /** Of misconduct. */
  readonly evidence?: MonitorEvidence;
}
