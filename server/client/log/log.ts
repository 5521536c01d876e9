/** Reading the log: heads, proofs and entries, each checked before it is handed over. */
import {
  type Checkpoint,
  type Entry,
  type InclusionProof,
  type OperatorKeys,
  type PublicKey,
  type TreeHead,
  verifyCheckpoint,
} from "../../../engine/verify/index.js";
import * as wire from "../../wire/log/log.js";
import { confirmed } from "../compare.js";
import { ClientError } from "../error.js";
import type { Http, Query } from "../http.js";
import { pages } from "../pages.js";
import type { AuditTrailQuery, ConsistencyProof, LogHead, LogQuery, VerifyReport } from "../types.js";
import type { EntryCriteria } from "./filters.js";
import type { ProvenEntry } from "./proven.js";
import type { Watch } from "./watch.js";

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

  /**
   * The operator keys of the log, each with the sizes whose heads it signs: the chain that the service shows, in which the
   * pinned key is.
   * @throws ClientError `log-misbehaved`
   */
  operators(): Promise<OperatorKeys> {
    return this.#watch.operators();
  }

  /** The same as far as it is known, without a request; the pinned key alone before the chain was shown. @throws ClientError */
  knownOperators(): Promise<OperatorKeys> {
    return this.#watch.knownOperators();
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
    const known = await this.#watch.floor();
    const { heads } = await this.#http.get(wire.TreeHeads, "/log/heads", { from, limit });
    // Once there is a head, there is one of every size. Only the first ones may be those of imported history.
    const first = heads[0]?.tree_size ?? from + limit;
    for (const [i, head] of heads.entries()) {
      await this.#watch.accept(head);
      if (head.tree_size < from || head.tree_size >= from + limit || head.tree_size !== first + i)
        throw await this.#watch.misbehaved("The log showed other heads than those asked for.", { shown: head });
    }
    const last = Math.min(known, from + limit - 1);
    // Sizes of imported history have no heads, so those before the first one that is shown must have none.
    const isLate = first > from && (await this.#watch.hasHead(first - 1));
    // None at all may be imported history, unless the size of the last head seen is among those asked for.
    const isCut = heads.length ? first + heads.length <= last : from <= known && known <= last;
    if (isCut || isLate)
      throw await this.#watch.misbehaved("The log left out heads of sizes that it has.", {
        shown: (heads.at(-1) as TreeHead | undefined) ?? null,
      });
    return heads;
  }

  /** The newest entry in outline, proven to lie where the count says, and how many there are. @throws ClientError */
  async summary(): Promise<LogHead> {
    const floor = await this.#watch.floor();
    const summary = await this.#http.get(wire.LogHead, "/log/head");
    const { head, entry_count } = summary;
    if (entry_count < floor || (head === null) !== (entry_count === 0))
      throw await this.#watch.misbehaved(`The log counts ${entry_count} entries, and has shown ${floor}.`, {});
    if (!head) return summary;
    const proven = await this.#watch.owed(this.#watch.proven(head.id, entry_count - 1, floor), {});
    const { id, entry_hash, event_type, timestamp } = proven.entry;
    await this.#watch.agreed(head, { id, entry_hash, event_type, timestamp }, proven);
    return summary;
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
   * @throws ClientError `log-misbehaved`; `stale-answer` when it is older than the last head seen, as that of a mirror may
   *   be that copies the log just now
   */
  async checkpoint(name?: string): Promise<{ readonly note: string; readonly checkpoint: Checkpoint }> {
    const floor = await this.#watch.floor();
    const note = await this.#http.text("/log/checkpoint");
    const origin = name ?? note.split("\n", 1)[0]!;
    const checkpoint =
      (await verifyCheckpoint(note, await this.#watch.operators(), origin)) ??
      // The key may have been rotated since.
      (await verifyCheckpoint(note, await this.#watch.refreshedOperators(), origin));
    if (!checkpoint) throw await this.#watch.misbehaved("The checkpoint is not one of this log and its operator.", {});
    const shown = await this.#watch.owed(this.headOf(checkpoint.treeSize), {});
    if (shown.root_hash !== checkpoint.rootHash)
      throw await this.#watch.misbehaved("The checkpoint has another root than the head of its size.", { shown });
    if (checkpoint.treeSize < floor)
      throw new ClientError(
        "stale-answer",
        `The checkpoint is of ${checkpoint.treeSize} leaves, though a head of ${floor} was seen.`,
      );
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
  async verify(): Promise<VerifyReport> {
    const floor = await this.#watch.floor();
    const report = await this.#http.post(wire.VerifyReport, "/log/verify", {});
    if (report.entry_count < floor)
      throw await this.#watch.misbehaved(`The log counts ${report.entry_count} entries, and has shown ${floor}.`, {});
    return confirmed(report, { valid: report.errors.length === 0 }, "The report");
  }

  /**
   * Entries that match, oldest first, each once. Their content is checked against their hashes and the filter; that the
   * list is complete, or that an entry in it is in the tree, nothing shows (`entry` and `since` prove it).
   * @throws ClientError
   */
  entries(filter: EntryFilter = {}): AsyncGenerator<Entry, void, undefined> {
    return this.#checked("/log", filter, filter);
  }

  /** Entries that name a key, oldest first; checked as those of `entries` are. @throws ClientError */
  byFingerprint(fingerprint: string): AsyncGenerator<Entry, void, undefined> {
    return this.#checked(`/log/by-fingerprint/${encodeURIComponent(fingerprint)}`, {}, { fingerprint });
  }

  /** Entries about a key or a document, or of a period, oldest first; checked as those of `entries` are. @throws ClientError */
  auditTrail(filter: TrailFilter): AsyncGenerator<Entry, void, undefined> {
    return this.#checked("/log/audit-trail", filter, filter);
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
      for (const [i, entry] of batch.entries()) {
        await this.#watch.checkContent(entry);
        if (previous && entry.previous_hash !== previous.entry_hash)
          throw await this.#watch.misbehaved(`Entry ${entry.id} does not follow on entry ${previous.id}.`, { entry });
        await this.#checkId(entry, start + i, previous);
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

  /**
   * No hash covers an id. What is known: ids ascend from 1, one by one, but for those that imported history left out; and the
   * sizes of imported history have no heads.
   */
  async #checkId(entry: Entry, leafIndex: number, previous: Entry | undefined): Promise<void> {
    const isNext = previous ? entry.id === previous.id + 1 : entry.id === leafIndex + 1;
    if (isNext) return;
    const detail = `Entry ${entry.id} is not leaf ${leafIndex}.`;
    if (!previous && entry.id > leafIndex) {
      const { leaf_index } = await this.#watch.owed(this.#http.get(wire.InclusionProof, `/log/${entry.id}/proof`), {});
      if (leaf_index === leafIndex) return;
    } else if (previous && entry.id > previous.id) {
      if (!(await this.#watch.hasHead(leafIndex))) return;
    }
    throw await this.#watch.misbehaved(detail, { entry });
  }

  /** A list whose entries have the hashes that they claim and pass the filter that was sent. */
  async *#checked(path: string, query: Query, criteria: EntryCriteria): AsyncGenerator<Entry, void, undefined> {
    let previous = 0;
    for await (const entry of this.#list(path, query)) {
      await this.#watch.checkListed(entry, criteria);
      if (entry.id <= previous)
        throw await this.#watch.misbehaved(`Entry ${entry.id} is listed after entry ${previous}.`, { entry });
      previous = entry.id;
      yield entry;
    }
  }

  #list(path: string, query: Query, skip = 0): AsyncGenerator<Entry, void, undefined> {
    const list = pages(this.#http, { schema: wire.EntryPage, path, member: "entries", query, skip });
    return list as AsyncGenerator<Entry, void, undefined>;
  }
}
