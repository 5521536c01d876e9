/** An anchoring proof: what it proves already, which promises of calendars are open, and the commands that record it. */

import type { AnchorRow, AnchorTotals } from "../../store/schema/rows.js";
import { type OtsTimestamp, otsCommitments, parseOtsFile } from "../../verify/ots/ots.js";
import { define, type Transaction } from "../state/commands.js";
import type { PrivateWriter } from "../state/projection.js";

/** A message that a calendar has promised to put into Bitcoin; the proof does not lead to a block yet. */
export interface OpenPromise {
  readonly message: Uint8Array;
  /**
   * Addresses of the calendars that promised, according to the proof. A calendar wrote them, so they are not trusted.
   */
  readonly uris: readonly string[];
}

/** The open promises of a proof. @throws CairnlogError if it is not a `.ots` file */
export function openPromises(proof: Uint8Array): OpenPromise[] {
  return [...parseOtsFile(proof).timestamp.nodes()].flatMap((node) => {
    const uris = node.attestations.flatMap((attestation) => (attestation.kind === "pending" ? [attestation.uri] : []));
    return uris.length && !isConfirmed(node) ? [{ message: node.message, uris }] : [];
  });
}

/** The state of a proof. @throws CairnlogError if it is not a `.ots` file */
export function statusOf(proof: Uint8Array): AnchorChange["status"] {
  return isConfirmed(parseOtsFile(proof).timestamp) ? "confirmed" : "pending";
}

/** Whether `proof` is a `.ots` file about this digest. The proof may come from an attacker. */
export function isProofOf(proof: Uint8Array, digest: Uint8Array): boolean {
  try {
    const { hash, timestamp } = parseOtsFile(proof);
    return hash === "sha256" && Buffer.compare(timestamp.message, digest) === 0;
  } catch {
    return false;
  }
}

const isConfirmed = (node: OtsTimestamp): boolean => otsCommitments(node).some(({ kind }) => kind === "bitcoin");

// The commands that create and change anchors.

export const NO_ANCHORS: AnchorTotals = { newest: -1, pending: 0, confirmed: 0 };
export const TOTALS_KEY = "log";

/** The new state of an entry's anchor. */
export interface AnchorChange extends Pick<AnchorRow, "status"> {
  /** A detached `.ots` file. */
  readonly proof: Uint8Array;
  /** Whether the proof is complete, so that nothing more is expected. */
  readonly isSettled: boolean;
}

/**
 * Replaces the anchor whose proof is `base` (null: there is none) by `next`.
 * @returns false, without writing, if the anchor has another proof
 */
export const replaceAnchor = define(
  "anchor.replace",
  (
    transaction: Transaction,
    { leaf_index, base, next }: { leaf_index: number; base: Uint8Array | null; next: AnchorChange },
  ): boolean => {
    const stored = transaction.get("anchors", leaf_index)?.proof ?? null;
    if (!isSame(stored, base)) return false;
    putAnchor(transaction, leaf_index, next, transaction.timestamp);
    return true;
  },
);

/** Writes the rows of a new or changed anchor at `now` (canonical form). */
export function putAnchor(
  state: PrivateWriter,
  leafIndex: number,
  { proof, status, isSettled }: AnchorChange,
  now: string,
): void {
  const stored = state.get("anchors", leafIndex);
  const anchored_at = stored?.anchored_at ?? now;
  const updated_at = stored && isSame(stored.proof, proof) ? stored.updated_at : now;
  const totals = { ...(state.get("anchorTotals", TOTALS_KEY) ?? NO_ANCHORS) };
  if (stored) totals[stored.status]--;
  totals[status]++;
  totals.newest = Math.max(totals.newest, leafIndex);
  state.put("anchors", leafIndex, { proof, status, anchored_at, updated_at });
  state.put("anchorTotals", TOTALS_KEY, totals);
  state.put("anchorWork", leafIndex, isSettled ? undefined : { status, anchored_at });
}

const isSame = (a: Uint8Array | null, b: Uint8Array | null): boolean => (a && b ? Buffer.compare(a, b) === 0 : a === b);
