/**
 * Anchors: external proofs that an entry existed, stored in rows beside the log and added when an entry is served. They
 * are not derived from entries, and no hash covers them. So they may come late, grow, or be lost without harm to the
 * log.
 */

import type { StoreReader } from "../../store/contract.js";
import type { AnchorRow, AnchorTotals } from "../../store/schema/rows.js";
import type { Writer } from "../state/executor.js";
import { type AnchorChange, NO_ANCHORS, replaceAnchor, TOTALS_KEY } from "./proof.js";

const CLOSING_BRACE = 1;

/** An anchor whose proof is not complete yet. */
export interface UnsettledAnchor extends Pick<AnchorRow, "status" | "anchored_at"> {
  readonly leafIndex: number;
}

export class Anchors {
  readonly #store: Pick<StoreReader, "get" | "range">;
  #totals = NO_ANCHORS;

  constructor(store: Pick<StoreReader, "get" | "range">) {
    this.#store = store;
  }

  /** Reads the state from disk again. */
  restore(): void {
    this.#totals = this.#store.get("anchorTotals", TOTALS_KEY) ?? NO_ANCHORS;
  }

  /** The number of anchors; `newest` is the highest anchored leaf index, or −1. */
  get totals(): AnchorTotals {
    return this.#totals;
  }

  /** The anchor of the entry at a leaf index. */
  row(leafIndex: number): AnchorRow | undefined {
    return leafIndex <= this.#totals.newest ? this.#store.get("anchors", leafIndex) : undefined;
  }

  /** Anchors whose proof is not complete, oldest entry first. */
  *unsettled(): Iterable<UnsettledAnchor> {
    for (const { key, row } of this.#store.range("anchorWork")) yield { leafIndex: key, ...row };
  }

  /** Creation time, in canonical form, of the oldest anchor that waits for its block; null if none waits. */
  oldestPending(): string | null {
    for (const { status, anchored_at } of this.unsettled()) if (status === "pending") return anchored_at;
    return null;
  }

  /** An entry as it is served: `json`, its stored text, with its proof as the last member if it has one. */
  join(leafIndex: number, json: Buffer): Buffer {
    const row = this.row(leafIndex);
    if (!row) return json;
    const proof = Buffer.from(row.proof).toString("base64");
    return Buffer.concat([json.subarray(0, -CLOSING_BRACE), Buffer.from(`,"ots_proof":"${proof}"}`)]);
  }

  /**
   * Replaces the anchor that the caller has read, whose proof is `base` (undefined: there was none), by `next`.
   * @returns false, without writing, if the anchor has another proof by now: read it and try again
   * @throws CairnlogError as `execute` does
   */
  async replace(
    writer: Pick<Writer, "execute">,
    leafIndex: number,
    base: Uint8Array | undefined,
    next: AnchorChange,
  ): Promise<boolean> {
    const { value } = await writer.execute(replaceAnchor, { leaf_index: leafIndex, base: base ?? null, next });
    this.restore();
    return value;
  }
}
