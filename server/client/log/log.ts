/** Reading the log: heads, proofs and entries, each checked before it is handed over. */
import {
  type Checkpoint,
  type Entry,
  type InclusionProof,
  type PublicKey,
  type TreeHead,
  verifyCheckpoint,
} from "../../../engine/verify/index.js";
import * as wire from "../../wire/log/log.js";
import type { Http, Query } from "../http.js";
import { pages } from "../pages.js";
import type { AuditTrailQuery, ConsistencyProof, LogHead, LogQuery, VerifyReport } from "../types.js";
import type { ProvenEntry, Watch } from "./watch.js";

/** Which entries `LogReader.entries` lists; without any, all. */
export type EntryFilter = Pick<LogQuery, "event_type" | "tags" | "search">;

/** What `LogReader.auditTrail` goes by: at least one of fingerprint, document_hash, start_date and end_date. */
export type TrailFilter = Omit<AuditTrailQuery, "page" | "per_page">;

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

  /** The head that was signed when the tree had `treeSize` leaves, checked. @throws ClientError */
  headOf(treeSize: number): Promise<TreeHead> {
    return this.#watch.headOf(treeSize);
  }

  /**
   * The heads that were signed of the sizes from `from` on, `limit` (at most 1000) sizes of them, each checked: signed, and
   * the beginning of the last head seen. Sizes of imported history have none.
   * @throws ClientError `log-misbehaved`
   */
  async heads(from: number, limit: number): Promise<readonly TreeHead[]> {
    const { heads } = await this.#http.get(wire.TreeHeads, "/log/heads", { from, limit });
    for (const [i, head] of heads.entries()) {
      await this.#watch.accept(head);
      if (head.tree_size < from || head.tree_size >= from + limit || head.tree_size <= (heads[i - 1]?.tree_size ?? 0))
        throw await this.#watch.misbehaved("The log showed other heads than those asked for.", { shown: head });
    }
    return heads;
  }

  /** The newest entry in outline, and how many there are: the service's word. @throws ClientError */
  summary(): Promise<LogHead> {
    return this.#http.get(wire.LogHead, "/log/head");
  }

  /** An entry, proven to lie in the tree of the newest head. @throws ClientError */
  async entry(id: number): Promise<ProvenEntry> {
    return this.#watch.proven(id, null, await this.#watch.floor());
  }

  /** The proof of a leaf, checked; under the newest head, or under that of an earlier size. @throws ClientError */
  proof(leafIndex: number, treeSize?: number): Promise<InclusionProof> {
    return this.#watch.inclusion(leafIndex, treeSize);
  }

  /** The proof that the tree of `from` leaves is the beginning of that of `to`, checked against both heads. @throws ClientError */
  async consistency(from: number, to: number): Promise<ConsistencyProof> {
    const [older, newer] = [await this.headOf(from), await this.headOf(to)];
    return this.#watch.consistency(older, newer);
  }

  /**
   * The newest checkpoint, whose signature holds and whose root is that of the head of its size. Only of logs whose operator
   * key is Ed25519.
   * @param name of the log; default: the one in the checkpoint
   * @throws ClientError `log-misbehaved`
   */
  async checkpoint(name?: string): Promise<{ readonly note: string; readonly checkpoint: Checkpoint }> {
    const note = await this.#http.text("/log/checkpoint");
    const checkpoint = await verifyCheckpoint(note, await this.operatorKey(), name ?? note.split("\n", 1)[0]!);
    if (!checkpoint) throw await this.#watch.misbehaved("The checkpoint is not one of this log and its operator.", {});
    const shown = await this.#watch.owed(this.headOf(checkpoint.treeSize), {});
    if (shown.root_hash !== checkpoint.rootHash)
      throw await this.#watch.misbehaved("The checkpoint has another root than the head of its size.", { shown });
    return { note, checkpoint };
  }

  /**
   * A tile of the tree (`docs/tiles.md`): hashes of 32 bytes, which the root of a head shows to be right, or not.
   * @param width number of hashes of a partial tile
   * @throws ClientError `not-found` for a tile that is not complete yet
   */
  tile(version: 1 | 2, level: number, index: number, width?: number): Promise<Uint8Array> {
    const partial = width === undefined ? "" : `.p/${width}`;
    return this.#http.bytes(`/log/tile/${version}/${level}/${index}${partial}`);
  }

  /** Has the service verify the whole log, which is its word. @throws ClientError */
  verify(): Promise<VerifyReport> {
    return this.#http.post(wire.VerifyReport, "/log/verify", {});
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

  /** Entries about a key or a document, or of a period, oldest first; checked as those of `entries` are. @throws ClientError */
  async *auditTrail(filter: TrailFilter): AsyncGenerator<Entry, void, undefined> {
    for await (const entry of this.#list("/log/audit-trail", { ...filter })) {
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
