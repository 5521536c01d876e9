/** Items of a history, and the groups of them that become batches. Errors name the item that is wrong. */
import { CairnlogError } from "../../base/error.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import type { CheckedEntry } from "../apply/entry.js";
import { headKind } from "../apply/head.js";

/** One entry to add. */
export interface HistoryItem {
  /** JSON text of the entry as it was served; an `ots_proof` in it is used if `otsProof` is null. */
  readonly entry: Uint8Array;
  /** Its anchoring proof. */
  readonly otsProof: Uint8Array | null;
  /** The head of the size that the entry makes; null if the caller does not have it. */
  readonly head: TreeHead | null;
}

/** Added to the path of an item if its head is wrong. */
export const HEAD = "/head";

/** Entries that become one batch: either all of them have heads of one kind, or none has a head. */
export interface Group {
  readonly entries: readonly CheckedEntry[];
  /** Either empty, or one head for each entry. */
  readonly heads: readonly TreeHead[];
}

/** Runs `check` on item number `i`, and adds that number to an error. */
export function about<T>(i: number, check: () => T, part = ""): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    const { code, message } = error;
    throw new CairnlogError(code, `Item ${i}: ${message}`, {
      cause: error,
      details: [{ path: `/${i}${part}`, message }],
    });
  }
}

/**
 * Stretches of items whose heads fit into one batch: either without heads, or with one key, tree version and signature
 * length.
 */
export function grouped(items: readonly HistoryItem[], entries: readonly CheckedEntry[]): Group[] {
  const groups: { kind: string; entries: CheckedEntry[]; heads: TreeHead[] }[] = [];
  for (const [i, { head }] of items.entries()) {
    const kind = head ? about(i, () => headKind(head), HEAD) : "none";
    let group = groups.at(-1);
    if (group?.kind !== kind) {
      group = { kind, entries: [], heads: [] };
      groups.push(group);
    }
    group.entries.push(entries[i]!);
    if (head) group.heads.push(head);
  }
  return groups;
}
