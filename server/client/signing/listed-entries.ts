/**
 * Entries and proofs of many receipts, with few requests. Receipts whose entries lie close together are one run. The service gives
 * the proof of the first. Its path holds the complete subtrees to the left of that leaf. With the entries that follow, which
 * the service lists, the client computes the other proofs itself.
 */
import * as wire from "../../../engine/contract/log/log.js";
import { type Entry, type InclusionProof, leafHash, nodeHash, type TreeHead } from "../../../engine/verify/index.js";
import type { Http } from "../base/http.js";
import { pages } from "../base/pages.js";
import { isProven, type ProvenEntry } from "../log/proven.js";
import type { Watch } from "../log/watch.js";

/** Entries of others that are fetched to save a request for a proof: as many as fit on a page. */
const MAX_GAP = 200;

/** A leaf, and the head of the tree that ends with it. */
interface LeafWithHead {
  readonly leafIndex: number;
  readonly head: TreeHead;
}

/** An entry, and the one before it in the log; null if that was not listed. */
interface ListedEntry extends ProvenEntry {
  readonly before: Entry | null;
}

export class ListedEntries {
  readonly #http: Http;
  readonly #watch: Watch;
  readonly #found = new Map<number, ListedEntry>();

  private constructor(http: Http, watch: Watch) {
    this.#http = http;
    this.#watch = watch;
  }

  /**
   * Fetches the entries of `places`. The last head of every run is accepted by the watch. The other proofs and heads are not verified:
   * the caller has to do that. All heads of a run whose proofs hold belong to one tree, because the proofs follow from the
   * same entries.
   * @throws ClientError `log-misbehaved`
   */
  static async of(places: readonly LeafWithHead[], http: Http, watch: Watch): Promise<ListedEntries> {
    const entries = new ListedEntries(http, watch);
    const sorted = [...places].sort((a, b) => a.leafIndex - b.leafIndex);
    for (let from = 0; from < sorted.length; ) {
      let to = from + 1;
      while (to < sorted.length && sorted[to]!.leafIndex - sorted[to - 1]!.leafIndex <= MAX_GAP) to++;
      await entries.#fetch(sorted.slice(from, to));
      from = to;
    }
    return entries;
  }

  /** The entry with this leaf index; undefined if it was not asked for. */
  at(leafIndex: number): ListedEntry | undefined {
    return this.#found.get(leafIndex);
  }

  async #fetch(run: readonly LeafWithHead[]): Promise<void> {
    const [first, last] = [run[0]!, run.at(-1)!];
    await this.#watch.accept(last.head);
    // Largest subtree first. Proofs name the sibling next to the leaf first, which is the smallest.
    const peaks = [...(await this.#firstProof(first)).audit_path].reverse();
    const wanted = new Map(run.map(({ leafIndex, head }) => [leafIndex, head]));
    let leafIndex = first.leafIndex;
    let before: Entry | null = null;
    const list = { schema: wire.EntryPage, path: "/log", member: "entries", skip: leafIndex } as const;
    for await (const entry of pages(this.#http, list) as AsyncGenerator<Entry>) {
      const head = wanted.get(leafIndex);
      const leaf = leafHash(entry.entry_hash, first.head.tree_version);
      if (head) {
        await this.#watch.checkContent(entry);
        const proof = lastLeafProof(leafIndex, entry, leaf, peaks, head);
        this.#found.set(leafIndex, { entry, before, head, proof });
      }
      if (leafIndex === last.leafIndex) return;
      addLeaf(peaks, leafIndex, leaf, first.head);
      before = entry;
      leafIndex++;
    }
    throw await this.#watch.misbehaved("The log lists fewer entries than it has given receipts for.", {
      shown: last.head,
    });
  }

  async #firstProof({ leafIndex, head }: LeafWithHead): Promise<InclusionProof> {
    const query = { tree_size: head.tree_size };
    const asked: Promise<InclusionProof> = this.#http.get(wire.InclusionProof, `/log/proof/${leafIndex}`, query);
    const proof = await this.#watch.owed(asked, { shown: head });
    if (isProven(leafIndex, proof, head)) return proof;
    throw await this.#watch.misbehaved(`The proof of leaf ${leafIndex} does not hold.`, { shown: head, proof });
  }
}

/**
 * The proof that an entry is the last leaf of the tree that ends with it: its path has the complete subtrees to its left.
 * @param peaks their roots, largest first
 */
function lastLeafProof(
  leafIndex: number,
  entry: Entry,
  leaf: string,
  peaks: readonly string[],
  sth: TreeHead,
): InclusionProof {
  const { root_hash, tree_version } = sth;
  return {
    leaf_index: leafIndex,
    tree_size: leafIndex + 1,
    tree_version,
    leaf_hash: leaf,
    root_hash,
    audit_path: [...peaks].reverse(),
    entry_hash: entry.entry_hash,
    sth,
  };
}

/** Adds leaf number `size` to the complete subtrees of the `size` leaves before it. Two of one size become one. */
function addLeaf(peaks: string[], size: number, leaf: string, { tree_version }: TreeHead): void {
  let hash = leaf;
  // Every low bit of the size that is set is a subtree as large as the one in hand.
  for (let left = size; left % 2 === 1; left = (left - 1) / 2) hash = nodeHash(peaks.pop()!, hash, tree_version);
  peaks.push(hash);
}
