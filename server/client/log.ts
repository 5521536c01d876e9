/** Reading the log: heads, proofs and entries, each checked before it is handed over. */
import type { Entry, InclusionProof, PublicKey, TreeHead } from "../../engine/verify/index.js";
import * as wire from "../wire/log.js";
import type { Http, Query } from "./http.js";
import { pages } from "./pages.js";
import type { LogQuery } from "./types.js";
import type { ProvenEntry, Watch } from "./watch.js";

/** Which entries `LogReader.entries` lists; without any, all. */
export type EntryFilter = Pick<LogQuery, "event_type" | "tags" | "search">;

/** Entries that are proven together. */
const BATCH = 200;

export class LogReader {
  readonly #http: Http;
  readonly #watch: Watch;

  constructor(http: Http, watch: Watch) {
    this.#http = http;
    this.#watch = watch;
  }

  /** The key that heads are checked under. @throws ClientError */
  operatorKey(): Promise<PublicKey> {
    return this.#watch.operatorKey();
  }

  /** The newest head, signed and consistent with the last one seen; undefined while the log is empty. @throws ClientError */
  head(): Promise<TreeHead | undefined> {
    return this.#watch.newest();
  }

  /** An entry, proven to lie in the tree of the newest head. @throws ClientError */
  async entry(id: number): Promise<ProvenEntry> {
    return this.#watch.proven(id, null, await this.#watch.floor());
  }

  /** The proof of a leaf, checked; under the newest head, or under that of an earlier size. @throws ClientError */
  proof(leafIndex: number, treeSize?: number): Promise<InclusionProof> {
    return this.#watch.inclusion(leafIndex, treeSize);
  }

  /**
   * Entries that match, oldest first. Their content is checked against their hashes; that the list is complete, or that
   * an entry in it is in the tree, nothing shows (`entry` and `since` prove it).
   * @throws ClientError
   */
  async *entries(filter: EntryFilter = {}): AsyncGenerator<Entry, void, undefined> {
    for await (const entry of this.#list("/log", { ...filter })) {
      await this.#watch.checkContent(entry);
      yield entry;
    }
  }

  /** Entries that name a key, oldest first; checked as those of `entries` are. @throws ClientError */
  async *byFingerprint(fingerprint: string): AsyncGenerator<Entry, void, undefined> {
    for await (const entry of this.#list(`/log/by-fingerprint/${encodeURIComponent(fingerprint)}`, {})) {
      await this.#watch.checkContent(entry);
      yield entry;
    }
  }

  /**
   * Every entry from leaf `from` up to the newest head, all of them and proven: each hash covers the one before, and the
   * last of every batch is proven to lie under the head.
   * @throws ClientError `log-misbehaved`
   */
  async *since(from: number): AsyncGenerator<Entry, void, undefined> {
    const head = await this.head();
    let previous: Entry | undefined;
    for (let start = from; head !== undefined && start < head.tree_size; start += BATCH) {
      const batch: Entry[] = [];
      const wanted = Math.min(BATCH, head.tree_size - start);
      for await (const entry of this.#list("/log", {}, start)) {
        batch.push(entry);
        if (batch.length === wanted) break;
      }
      if (batch.length < wanted)
        throw await this.#watch.misbehaved("The log lists fewer entries than its head has leaves.", { shown: head });
      for (const entry of batch) {
        await this.#watch.checkContent(entry);
        if (previous && entry.previous_hash !== previous.entry_hash)
          throw await this.#watch.misbehaved(`Entry ${entry.id} does not follow on entry ${previous.id}.`, { entry });
        previous = entry;
      }
      const proof = await this.proof(start + wanted - 1, head.tree_size);
      if (proof.entry_hash !== previous?.entry_hash)
        throw await this.#watch.misbehaved("The entries listed are not those of the tree.", {
          shown: head,
          proof,
          entry: previous ?? null,
        });
      yield* batch;
    }
  }

  #list(path: string, query: Query, skip = 0): AsyncGenerator<Entry, void, undefined> {
    const list = pages(this.#http, { schema: wire.EntryPage, path, member: "entries", query, skip });
    return list as AsyncGenerator<Entry, void, undefined>;
  }
}
