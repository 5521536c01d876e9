/** Reads the log: heads, proofs and entries. Each is verified before it is returned. */
import * as wire from "../../../engine/contract/log/log.js";
import {
  type Checkpoint,
  type Entry,
  type InclusionProof,
  type OperatorKeys,
  type PublicKey,
  type TreeHead,
  verifyCheckpoint,
} from "../../../engine/verify/index.js";
import { confirmed } from "../base/compare.js";
import { ClientError } from "../base/error.js";
import type { Query } from "../base/http.js";
import { pages } from "../base/pages.js";
import type { AuditTrailQuery, ConsistencyProof, LogHead, LogQuery, VerifyReport } from "../base/types.js";
import { Area } from "./area.js";
import type { EntryCriteria } from "./filters.js";
import type { ProvenEntry } from "./proven.js";

/** Selects the entries that `LogReader.entries` lists; all, if empty. */
export type EntryFilter = Pick<LogQuery, "event_type" | "tags" | "search" | "title">;

/**
 * Selects the entries of `LogReader.auditTrail`: at least one of fingerprint, document_hash, start_date and end_date.
 */
export type TrailFilter = Omit<AuditTrailQuery, "page" | "per_page">;

/** Number of entries that are proven together. */
const BATCH = 200;

export class LogReader extends Area {
  /** The operator key for all heads. @throws ClientError */
  operatorKey(): Promise<PublicKey> {
    return this.watch.operatorKey();
  }

  /**
   * The operator keys of the log, each with the sizes whose heads it signs: the chain that the service shows, in which the
   * pinned key is.
   * @throws ClientError `log-misbehaved`
   */
  operators(): Promise<OperatorKeys> {
    return this.watch.operators();
  }

  /**
   * The chain of operator keys that this client knows, without a request. Before the service has shown a chain, it holds
   * the pinned key alone.
   * @throws ClientError
   */
  knownOperators(): Promise<OperatorKeys> {
    return this.watch.knownOperators();
  }

  /** The newest head, signed and consistent with the last one seen; undefined while the log is empty. @throws ClientError */
  head(): Promise<TreeHead | undefined> {
    return this.watch.newest();
  }

  /** The head of the tree with `treeSize` leaves, verified. @throws ClientError */
  headOf(treeSize: number): Promise<TreeHead> {
    return this.watch.headOf(treeSize);
  }

  /**
   * The first signed heads of `limit` (at most 1000) sizes from `from` on. Each is verified: signed, and consistent
   * with the last seen head. Sizes of imported history have no heads.
   * @throws ClientError `log-misbehaved`
   */
  async heads(from: number, limit: number): Promise<readonly TreeHead[]> {
    const known = await this.watch.floor();
    const { heads } = await this.http.get(wire.TreeHeads, "/log/heads", { from, limit });
    // From the first size with a head on, every size has one. Only sizes of imported history, which come first, may
    // have none.
    const first = heads[0]?.tree_size ?? from + limit;
    for (const [i, head] of heads.entries()) {
      await this.watch.accept(head);
      if (head.tree_size < from || head.tree_size >= from + limit || head.tree_size !== first + i)
        throw await this.watch.misbehaved("The log showed other heads than those asked for.", { shown: head });
    }
    const last = Math.min(known, from + limit - 1);
    // Sizes of imported history have no heads. The sizes before the first shown head must be of that kind.
    const isLate = first > from && (await this.watch.hasHead(first - 1));
    // An answer without heads may be about imported history, unless the requested sizes include that of the last seen
    // head.
    const isCut = heads.length ? first + heads.length <= last : from <= known && known <= last;
    if (isCut || isLate)
      throw await this.watch.misbehaved("The log left out heads of sizes that it has.", {
        shown: (heads.at(-1) as TreeHead | undefined) ?? null,
      });
    return heads;
  }

  /**
   * A summary of the newest entry, which is proven to be the last leaf, and the number of entries.
   * @throws ClientError
   */
  async summary(): Promise<LogHead> {
    const floor = await this.watch.floor();
    const summary = await this.http.get(wire.LogHead, "/log/head");
    const { head, entry_count } = summary;
    if (entry_count < floor || (head === null) !== (entry_count === 0))
      throw await this.watch.misbehaved(`The log counts ${entry_count} entries, and has shown ${floor}.`, {});
    if (!head) return summary;
    const proven = await this.watch.owed(this.watch.proven(head.id, entry_count - 1, floor), {});
    const { id, entry_hash, event_type, timestamp } = proven.entry;
    await this.watch.agreed(head, { id, entry_hash, event_type, timestamp }, proven);
    return summary;
  }

  /** An entry, proven to be in the tree of the newest head. @throws ClientError */
  async entry(id: number): Promise<ProvenEntry> {
    return this.watch.proven(id, null, await this.watch.floor());
  }

  /** The verified proof of a leaf, under the newest head or under that of an earlier size. @throws ClientError */
  proof(leafIndex: number, treeSize?: number): Promise<InclusionProof> {
    return this.watch.inclusion(leafIndex, treeSize);
  }

  /**
   * The proof that the tree of `to` leaves extends the tree of `from` leaves, verified against both heads. @throws
   * ClientError
   */
  async consistency(from: number, to: number): Promise<ConsistencyProof> {
    const [older, newer] = [await this.headOf(from), await this.headOf(to)];
    return this.watch.consistency(older, newer);
  }

  /**
   * The newest checkpoint. Its signature is verified, and its root must be that of the head of its size. Only logs with
   * an Ed25519 operator key have checkpoints.
   * @param name of the log; by default the one in the checkpoint
   * @throws ClientError `log-misbehaved`; `stale-answer` when it is older than the last seen head, which may happen
   *   with a mirror that is copying the log
   */
  async checkpoint(name?: string): Promise<{ readonly note: string; readonly checkpoint: Checkpoint }> {
    const floor = await this.watch.floor();
    const note = await this.http.text("/log/checkpoint");
    const origin = name ?? note.split("\n", 1)[0]!;
    const checkpoint =
      (await verifyCheckpoint(note, await this.watch.operators(), origin)) ??
      // The key may have been rotated since.
      (await verifyCheckpoint(note, await this.watch.refreshedOperators(), origin));
    if (!checkpoint) throw await this.watch.misbehaved("The checkpoint is not one of this log and its operator.", {});
    const shown = await this.watch.owed(this.headOf(checkpoint.treeSize), {});
    if (shown.root_hash !== checkpoint.rootHash)
      throw await this.watch.misbehaved("The checkpoint has another root than the head of its size.", { shown });
    if (checkpoint.treeSize < floor)
      throw new ClientError(
        "stale-answer",
        `The checkpoint is of ${checkpoint.treeSize} leaves, though a head of ${floor} was seen.`,
      );
    return { note, checkpoint };
  }

  /**
   * A tile of the tree (`docs/tiles.md`): hashes of 32 bytes, not verified. They can be verified against the root of a
   * head.
   * @param width number of hashes of a partial tile
   * @throws ClientError `not-found` for a tile that is not complete yet
   */
  tile(version: 1 | 2, level: number, index: number, width?: number): Promise<Uint8Array> {
    const partial = width === undefined ? "" : `.p/${width}`;
    return this.http.bytes(`/log/tile/${version}/${level}/${index}${partial}`);
  }

  /** Lets the service verify the whole log. The result cannot be verified. @throws ClientError */
  async verify(): Promise<VerifyReport> {
    const floor = await this.watch.floor();
    const report = await this.http.post(wire.VerifyReport, "/log/verify", {});
    if (report.entry_count < floor)
      throw await this.watch.misbehaved(`The log counts ${report.entry_count} entries, and has shown ${floor}.`, {});
    return confirmed(report, { valid: report.errors.length === 0 }, "The report");
  }

  /**
   * Matching entries, oldest first, each once. Their content is checked against their hashes and the filter. Nothing
   * proves that the list is complete, or that its entries are in the tree; `entry` and `since` prove that.
   * @throws ClientError
   */
  entries(filter: EntryFilter = {}): AsyncGenerator<Entry, void, undefined> {
    return this.#checked("/log", filter, filter);
  }

  /** Entries that name a key, oldest first, with the same checks as `entries`. @throws ClientError */
  byFingerprint(fingerprint: string): AsyncGenerator<Entry, void, undefined> {
    return this.#checked(`/log/by-fingerprint/${encodeURIComponent(fingerprint)}`, {}, { fingerprint });
  }

  /**
   * Entries about a key or a document, or of a period, oldest first, with the same checks as `entries`. @throws
   * ClientError
   */
  auditTrail(filter: TrailFilter): AsyncGenerator<Entry, void, undefined> {
    return this.#checked("/log/audit-trail", filter, filter);
  }

  /**
   * Every entry from leaf `from` up to the newest head, proven to be complete: each hash covers the one before, and the
   * last entry of every batch is proven to be in the tree of the head.
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
        throw await this.watch.misbehaved("The log lists fewer entries than its head has leaves.", { shown: head });
      for (const [i, entry] of batch.entries()) {
        await this.watch.checkContent(entry);
        if (previous && entry.previous_hash !== previous.entry_hash)
          throw await this.watch.misbehaved(`Entry ${entry.id} does not follow on entry ${previous.id}.`, { entry });
        await this.#checkId(entry, start + i, previous);
        previous = entry;
      }
      const proof = await this.proof(start + wanted - 1, head.tree_size);
      if (proof.entry_hash !== previous?.entry_hash)
        throw await this.watch.misbehaved("The entries listed are not those of the tree.", {
          shown: head,
          proof,
          entry: previous ?? null,
        });
      yield* batch;
    }
  }

  /**
   * Checks an id, which no hash covers. Ids ascend from 1 without gaps, except in imported history, and the sizes of
   * imported history have no heads.
   */
  async #checkId(entry: Entry, leafIndex: number, previous: Entry | undefined): Promise<void> {
    const isNext = previous ? entry.id === previous.id + 1 : entry.id === leafIndex + 1;
    if (isNext) return;
    const detail = `Entry ${entry.id} is not leaf ${leafIndex}.`;
    if (!previous && entry.id > leafIndex) {
      const { leaf_index } = await this.watch.owed(this.http.get(wire.InclusionProof, `/log/${entry.id}/proof`), {});
      if (leaf_index === leafIndex) return;
    } else if (previous && entry.id > previous.id) {
      if (!(await this.watch.hasHead(leafIndex))) return;
    }
    throw await this.watch.misbehaved(detail, { entry });
  }

  /** A list of entries whose content has the claimed hashes and that match the sent filter. */
  async *#checked(path: string, query: Query, criteria: EntryCriteria): AsyncGenerator<Entry, void, undefined> {
    let previous = 0;
    for await (const entry of this.#list(path, query)) {
      await this.watch.checkListed(entry, criteria);
      if (entry.id <= previous)
        throw await this.watch.misbehaved(`Entry ${entry.id} is listed after entry ${previous}.`, { entry });
      previous = entry.id;
      yield entry;
    }
  }

  #list(path: string, query: Query, skip = 0): AsyncGenerator<Entry, void, undefined> {
    const list = pages(this.http, { schema: wire.EntryPage, path, member: "entries", query, skip });
    return list as AsyncGenerator<Entry, void, undefined>;
  }
}
