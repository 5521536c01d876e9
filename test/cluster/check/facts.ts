/** What clients were told, and what that promises. Two answers that cannot both be true are noticed at once. */
import type { TreeHead } from "#cairnlog/engine/verify/index.js";

export interface Receipt {
  readonly log_entry_id: number;
  readonly leaf_index: number;
  readonly entry_hash: string;
  readonly sth: TreeHead;
  readonly duplicate?: boolean;
}

/** A private row that somebody was told of. */
export interface PrivateFact {
  readonly table: "webhooks" | "trustConfigs";
  readonly key: number;
  /** Fingerprint of its key, for a trust configuration. */
  readonly owner?: string;
  /** Whether it is there, or was deleted; null while an unanswered request may have changed it. */
  isThere: boolean | null;
}

const PLACE = ["log_entry_id", "leaf_index", "entry_hash"] as const;

export class Facts {
  /** By the hash of the document that was attested. */
  readonly receipts = new Map<string, Receipt>();
  /** By the hash of the document: when the first answer came, by `performance.now()`. */
  readonly answeredAt = new Map<string, number>();
  /** The one head of each size that anybody was shown, as JSON. */
  readonly heads = new Map<number, string>();
  /** Documents of which nobody was told whether they are on the log. */
  readonly open = new Set<string>();
  /** Documents that were refused for what they are: they must not be on the log. */
  readonly refused = new Set<string>();
  readonly rows: PrivateFact[] = [];
  readonly problems: string[] = [];
  /** Longest time between two acknowledged appends, in milliseconds, and when the newest one was. */
  longestGap = 0;
  #newest = performance.now();

  /** An append was acknowledged. Sent again, it must have the receipt that it had. */
  acknowledge(document: string, receipt: Receipt, by: string): void {
    const known = this.receipts.get(document);
    if (known && PLACE.some((name) => known[name] !== receipt[name]))
      this.problems.push(`${by}: ${document} was entry ${known.log_entry_id} and is ${receipt.log_entry_id}`);
    if (!known && receipt.leaf_index !== receipt.log_entry_id - 1)
      this.problems.push(`${by}: entry ${receipt.log_entry_id} is said to be leaf ${receipt.leaf_index}`);
    const now = performance.now();
    this.receipts.set(document, known ?? receipt);
    if (!known) this.answeredAt.set(document, now);
    this.open.delete(document);
    this.show(receipt.sth, by);
    this.longestGap = Math.max(this.longestGap, now - this.#newest);
    this.#newest = now;
  }

  /** A head was shown. Two different heads of one size are a fork. */
  show(head: TreeHead, by: string): void {
    const text = JSON.stringify(head);
    const known = this.heads.get(head.tree_size);
    if (known !== undefined && known !== text)
      this.problems.push(`invariant 1: size ${head.tree_size} has two heads: ${known}, and by ${by} ${text}`);
    this.heads.set(head.tree_size, text);
  }

  /** Begins a new measurement of the longest gap. */
  restartGap(): void {
    this.longestGap = 0;
    this.#newest = performance.now();
  }
}
