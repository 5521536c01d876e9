/** Logs for a witness to watch, made from the definitions with node:crypto, and the requests that they send. */

import { checkpointOf, type NoteSigner, newNoteSigner } from "../verify/note/notes.js";
import { hashOf, plainConsistency, plainRoot } from "../verify/tlog/plain-rfc6962.js";

type LogSigner = Pick<NoteSigner, "vkey" | "line" | "note">;

export interface WitnessedTree {
  readonly origin: string;
  readonly signer: LogSigner;
  /** A signed checkpoint of this size. */
  note(size: number): string;
  root(size: number): Uint8Array;
  /** The consistency proof from one size to another. */
  proof(from: number, to: number): Uint8Array[];
  /** The body of `add-checkpoint` from one size to another, with a valid proof. */
  body(from: number, to: number): string;
}

/** A log of 64 leaves. @param twist the number of the first leaf that is another one: with it, the log is a fork */
export function newTree(origin: string, signer: LogSigner = newNoteSigner(origin), twist = 64): WitnessedTree {
  const leaves = Array.from({ length: 64 }, (_, i) => hashOf(0, Uint8Array.of(i, i < twist ? 0 : 1)));
  const root = (size: number) => plainRoot(leaves.slice(0, size));
  const note = (size: number) => signer.note(checkpointOf(origin, size, root(size)));
  const proof = (from: number, to: number) => (from === 0 ? [] : plainConsistency(from, leaves.slice(0, to)));
  return { origin, signer, root, note, proof, body: (from, to) => bodyOf(from, proof(from, to), note(to)) };
}

/** The body of `add-checkpoint` by its definition. */
export function bodyOf(old: number | string, proof: readonly Uint8Array[], note: string): string {
  const lines = proof.map((hash) => `${Buffer.from(hash).toString("base64")}\n`);
  return `old ${old}\n${lines.join("")}\n${note}`;
}
