/** The messages between the load generator and its client processes over IPC. */
import type { TreeHead } from "cairnlog/verify";

/** First message to a client: prepare this many attestations, then say so. */
export interface Prepare {
  readonly kind: "prepare";
  readonly host: string;
  readonly port: number;
  readonly secure?: boolean;
  readonly requests: number;
  readonly connections: number;
  /** Distinguishes the documents of one client and run from those of all others. */
  readonly name: string;
}

/** Second message: send them. */
export interface Start {
  readonly kind: "start";
  /** Requests a second, regardless of the answers; without it each connection waits for its answer (closed loop). */
  readonly rate?: number;
}

/** At any time after the start: send no more, wait for pending answers, and end. */
export interface Stop {
  readonly kind: "stop";
}

/** The part of a receipt that is needed to check its proofs. */
export interface Sample {
  readonly entry_hash: string;
  readonly leaf_index: number;
  readonly sth: TreeHead;
}

/** Every hundredth receipt, as it arrives. */
export interface Sampled {
  readonly kind: "sampled";
  readonly sample: Sample;
}

export interface Done {
  readonly kind: "done";
  /**
   * For the requests that were answered with 200: milliseconds from the planned time of each to its answer, and from
   * the start to its answer.
   */
  readonly latencies: readonly number[];
  readonly finished: readonly number[];
  /** Answers by status; 0 for connections that broke or could not be made. */
  readonly statuses: Readonly<Record<number, number>>;
}

export type Order = Prepare | Start | Stop;
export type Reply = { readonly kind: "ready" } | Sampled | Done;
