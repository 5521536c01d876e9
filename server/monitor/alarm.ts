/**
 * Alarms of a monitor, and their evidence. Evidence is the received data, unchanged, beside the data that the monitor
 * had before, so that a third party can judge it offline (`docs/monitor.md`).
 */
import type { Entry, OperatorTerm, TreeHead } from "../../engine/verify/index.js";
import { ClientError, type Evidence } from "../client/index.js";

/** Maximum milliseconds by which the clock of the operator or a witness may be ahead of this machine's. */
export const CLOCK_SKEW_MS = 5 * 60_000;

/** The kinds of misbehaviour. Scripts of users depend on these names. */
export type Misconduct =
  /** The service shows another operator key than the pinned one, or a chain of keys that does not lead on from it. */
  | "operator-key"
  /** A tree head or checkpoint is not signed by the operator key of its size. */
  | "bad-signature"
  /** A tree head is signed by an operator key that was retired before its size. */
  | "retired-key"
  /** Two signed heads that cannot both be of one log. */
  | "fork"
  /** The service does not prove that a signed head goes on from the last one. */
  | "missing-proof"
  /** The newest head has been smaller than one that was shown before for longer than `--max-silence`. */
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
  | "changed-entry"
  /** A signed head or an entry goes on behind the entry that froze the log. */
  | "after-freeze";

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

/** The evidence about a tiled log that may be anybody's. Members that do not matter are null. */
export interface TiledEvidence {
  /** Verifier keys of the log, as they were trusted. */
  readonly logs: readonly string[];
  /** The checkpoint that was believed until now, a signed note. */
  readonly known: string | null;
  /** The checkpoint of the misbehaviour. */
  readonly shown: string | null;
  /**
   * With `fork`: the root, in hexadecimal, that the larger of the two trees has for the size of the smaller one; and the
   * consistency proof from it to the larger one, in base64. It holds, so the smaller checkpoint is of another tree.
   */
  readonly prefixRoot: string | null;
  readonly proof: readonly string[] | null;
  /** The data of the wrong entry, in base64. */
  readonly entry: string | null;
  /**
   * With `after-freeze`: a proof file (c2sp.org/tlog-proof) with the entry that froze the log, in the tree of `known` or `shown`;
   * absent if the tiles for it could not be had.
   */
  readonly end?: string;
}

/** The error for a misbehaviour of the log. Nothing of the data that shows it is mirrored. */
export class Misbehaviour<E extends MonitorEvidence | TiledEvidence = MonitorEvidence> extends Error {
  readonly kind: Misconduct;
  readonly evidence: E;

  constructor(kind: Misconduct, detail: string, evidence: E) {
    super(detail);
    this.name = "Misbehaviour";
    this.kind = kind;
    this.evidence = evidence;
  }
}

/**
 * The kinds that rest on something that a service does not answer: a node that is behind, or a cache, may not have it yet. The
 * others rest on what was received.
 */
const DENIALS: ReadonlySet<Misconduct> = new Set(["missing-proof", "missing-head", "missing-entry"]);

/**
 * Whether a later answer may show that the log is honest. Such a round is begun again, for as long as the monitor is
 * patient.
 */
export const mayPass = (error: unknown): boolean =>
  error instanceof OlderHead || (error instanceof Misbehaviour && DENIALS.has(error.kind));

/**
 * The newest head or checkpoint is signed and of the mirrored tree, but smaller than the last one. An honest cache may have
 * kept it, so the round is not finished. If it lasts, it is `misbehaviour`.
 */
export class OlderHead extends ClientError {
  readonly misbehaviour: Misbehaviour<MonitorEvidence | TiledEvidence>;

  constructor(misbehaviour: Misbehaviour<MonitorEvidence | TiledEvidence>) {
    super("stale-answer", `${misbehaviour.message} It is of the same log, and older.`);
    this.misbehaviour = misbehaviour;
  }
}

/** The newest verified checkpoint of a tiled log, as alarms and rounds tell it. */
export interface CheckpointHead {
  readonly origin: string;
  readonly tree_size: number;
  readonly root_hash: string;
  /**
   * Since when a quorum of the witnesses has cosigned it, by their clocks; without a quorum, when this machine has seen its tree
   * first: a checkpoint does not say when it was made.
   */
  readonly timestamp: string;
}

/** An alarm as it is printed and posted. */
export interface Alarm {
  readonly alarm: Misconduct | "stalled" | "watched" | "rotated" | "frozen";
  /** A sentence. */
  readonly detail: string;
  readonly server: string;
  /** The time by the clock of this machine. */
  readonly observed_at: string;
  /** The newest verified head. */
  readonly head: TreeHead | CheckpointHead | null;
  /** Of `watched`, `rotated` and `frozen`. */
  readonly entry?: Entry;
  /** The fingerprint that the entry names, for `watched`. */
  readonly fingerprint?: string;
  /** The evidence, for a misbehaviour. */
  readonly evidence?: MonitorEvidence | TiledEvidence;
}
