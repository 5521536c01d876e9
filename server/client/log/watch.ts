/**
 * The watch on one log: every head that arrives must be signed by the pinned key and consistent with the last one seen,
 * and every entry that a receipt names must be the one it should be and lie under such a head. Everything that is judged
 * here was chosen by whoever answers; the store alone is trusted.
 */

import {
  checkOtsProof,
  checkServiceEntry,
  type Entry,
  type InclusionProof,
  leafHash,
  type PublicKey,
  parsePublicKey,
  type TreeHead,
  verifyConsistency,
  verifyInclusion,
  verifyTreeHead,
} from "../../../engine/verify/index.js";
import * as wire from "../../wire/log/log.js";
import { differing, type Members, same } from "../compare.js";
import { ClientError, type Evidence } from "../error.js";
import type { Http } from "../http.js";
import type { Store } from "../store.js";
import type { ConsistencyProof } from "../types.js";
import { deviation, type Expected } from "./expected.js";
import { type EntryCriteria, failedFilter } from "./filters.js";

/** An entry, where it lies, and the proof of that under a head that was checked. */
export interface ProvenEntry {
  readonly entry: Entry;
  readonly proof: InclusionProof;
  readonly head: TreeHead;
}

/** Where an entry lies, as receipts say it. */
export const placeOf = ({ entry, proof }: ProvenEntry) => ({
  log_entry_id: entry.id,
  leaf_index: proof.leaf_index,
  entry_hash: entry.entry_hash,
});

/** An entry without its anchoring proof, which may have come between one look at the entry and the next. */
export function bareEntry({ entry: { ots_proof: _, ...bare } }: ProvenEntry): Entry {
  return bare;
}

/** Why a head is not to be taken although it is signed, as a sentence; undefined when nothing speaks against it. */
export type HeadObjection = (head: TreeHead) => string | undefined;

export class Watch {
  readonly #http: Http;
  readonly #store: Store;
  readonly #pinned: PublicKey | undefined;
  readonly #objection: HeadObjection;
  #key: Promise<PublicKey> | undefined;
  /** Heads are taken one after the other: two at a time could each fit the one before and not one another. */
  #queue: Promise<unknown> = Promise.resolve();

  /** @throws CairnlogError `invalid-key` for a pinned key that is none */
  constructor(http: Http, store: Store, pinnedPem: string | undefined, objection: HeadObjection = () => undefined) {
    this.#http = http;
    this.#objection = objection;
    this.#store = store;
    this.#pinned = pinnedPem === undefined ? undefined : parsePublicKey(pinnedPem);
  }

  /**
   * The operator key: pinned, or the one in the store, or, the first time, the one that the service shows.
   * @throws ClientError
   */
  operatorKey(): Promise<PublicKey> {
    this.#key ??= this.#findKey().catch((error: unknown) => {
      this.#key = undefined;
      throw error;
    });
    return this.#key;
  }

  /**
   * Leaves of the last head that was seen, before something is written: what is recorded from now on lies at this index or
   * beyond. Without any, the newest is looked at, or else an old entry could pass for a new one.
   * @throws ClientError
   */
  async sizeBefore(): Promise<number> {
    return (await this.floor()) || ((await this.newest())?.tree_size ?? 0);
  }

  /** Leaves of the last head that was seen; 0 before the first. */
  async floor(): Promise<number> {
    await this.operatorKey();
    return (await this.#store.load())?.head?.tree_size ?? 0;
  }

  /**
   * The newest head, checked. Undefined while the log is empty, which it cannot be once a head was seen.
   * @throws ClientError `log-misbehaved`
   */
  async newest(): Promise<TreeHead | undefined> {
    const floor = await this.floor();
    let head: TreeHead;
    try {
      head = await this.#http.get(wire.TreeHead, "/log/sth");
    } catch (error) {
      if (!refuses(error) || error.status !== 404) throw error;
      if (floor > 0) throw await this.misbehaved("The log shows no head any more.", {});
      return undefined;
    }
    await this.accept(head, floor);
    return head;
  }

  /** The head that was signed when the tree had `treeSize` leaves, checked. @throws ClientError `not-found` before the first */
  async headOf(treeSize: number): Promise<TreeHead> {
    const head = await this.#http.get(wire.TreeHead, `/log/sth/${treeSize}`);
    await this.accept(head);
    if (head.tree_size !== treeSize)
      throw await this.misbehaved(`Asked for the head of size ${treeSize}, the log showed another.`, { shown: head });
    return head;
  }

  /** Whether the log has a head of a size, as it says. @throws ClientError */
  async hasHead(treeSize: number): Promise<boolean> {
    try {
      await this.headOf(treeSize);
      return true;
    } catch (error) {
      if (refuses(error) && error.status === 404) return false;
      throw error;
    }
  }

  /**
   * Takes a head, or convicts. A head smaller than the last one seen is taken only down to `atLeast`, and must be the
   * beginning of it.
   * @throws ClientError `log-misbehaved`; others when the proof of consistency cannot be had
   */
  accept(head: TreeHead, atLeast = 0): Promise<void> {
    const taken = this.#queue.then(() => this.#accept(head, atLeast));
    this.#queue = taken.catch(() => {});
    return taken;
  }

  /**
   * The entry of a receipt that this client has just asked for, with its proof.
   * @param leafIndex where the receipt says that it lies; null where it does not say
   * @param floor what `sizeBefore()` was before the request: a new entry that lies below is an old one
   * @throws ClientError `log-misbehaved`
   */
  async recorded(entryId: number, leafIndex: number | null, floor: number, expected: Expected): Promise<ProvenEntry> {
    const proven = await this.owed(this.proven(entryId, leafIndex, floor), {});
    const { entry, head: shown, proof } = proven;
    if (proof.leaf_index < floor)
      throw await this.misbehaved("The receipt names an entry that is older than it.", { shown, proof, entry });
    const deviant = deviation(entry, expected);
    if (deviant === undefined) return proven;
    throw await this.misbehaved(`Entry ${entryId} is not what was asked for: it differs in ${deviant}.`, {
      shown,
      proof,
      entry,
    });
  }

  /**
   * A receipt, or a part of one, when it says of its entry what the entry and the request say.
   * @param truth members that follow from the two
   * @throws ClientError `log-misbehaved`
   */
  async agreed<T extends object>(receipt: T, truth: Members<T>, { entry, proof, head }: ProvenEntry): Promise<T> {
    const member = differing(receipt, truth);
    if (member === undefined) return receipt;
    const detail = `The receipt of entry ${entry.id} does not say what the entry says: it differs in ${member}.`;
    throw await this.misbehaved(detail, { shown: head, proof, entry });
  }

  /**
   * An entry with the proof that it lies under the newest head.
   * @param leafIndex null where it is not known: an id tells no place, for imported history may leave ids out
   * @throws ClientError `log-misbehaved`; `not-found`
   */
  async proven(entryId: number, leafIndex: number | null, floor: number): Promise<ProvenEntry> {
    const [entry, proof] = await Promise.all([
      this.entry(entryId),
      leafIndex === null ? this.#http.get(wire.InclusionProof, `/log/${entryId}/proof`) : this.#newestProof(leafIndex),
    ]);
    const head = proof.sth;
    if (head === null) throw await this.misbehaved("The log has no head for its size.", { proof, entry });
    await this.accept(head, floor);
    const claimed = leafIndex ?? proof.leaf_index;
    // Ids ascend from 1, so an entry lies no further on than its id. More no hash says of an id.
    const isItsOwn = proof.entry_hash === entry.entry_hash && claimed < entryId;
    if (!isItsOwn || !isIncluded(claimed, proof, head))
      throw await this.misbehaved(`The proof does not lead from entry ${entryId} to the tree head.`, {
        shown: head,
        proof,
        entry,
      });
    return { entry, proof, head };
  }

  /** An entry whose content has the hashes that it claims; not yet shown to be in the tree. @throws ClientError */
  async entry(id: number): Promise<Entry> {
    const entry = (await this.#http.get(wire.Entry, `/log/${id}`)) as Entry;
    await this.checkContent(entry, id);
    return entry;
  }

  /** @throws ClientError `log-misbehaved` unless the entry's content has the hashes that it claims */
  async checkContent(entry: Entry, id = entry.id): Promise<void> {
    const [problem] = checkServiceEntry(entry);
    if (problem !== undefined) throw await this.misbehaved(`Entry ${id}: ${problem.message}`, { entry });
    const anchor = entry.ots_proof === undefined ? null : checkOtsProof(entry.ots_proof, entry.entry_hash);
    if (anchor?.ok === false) throw await this.misbehaved(`Entry ${id}: ${anchor.detail}`, { entry });
    if (entry.id !== id) throw await this.misbehaved(`Asked for entry ${id}, the log showed another.`, { entry });
  }

  /** An entry of a list: its content, and that it passes the filters that were sent. @throws ClientError `log-misbehaved` */
  async checkListed(entry: Entry, criteria: EntryCriteria): Promise<void> {
    await this.checkContent(entry);
    const failed = failedFilter(entry, criteria);
    if (failed === undefined) return;
    throw await this.misbehaved(`Entry ${entry.id} was not asked for: it does not pass ${failed}.`, { entry });
  }

  /** The proof of a leaf under the tree of a size, checked against that size's head. @throws ClientError */
  async inclusion(leafIndex: number, treeSize?: number): Promise<InclusionProof> {
    const floor = treeSize === undefined ? await this.floor() : 0;
    const proof = await this.#newestProof(leafIndex, treeSize);
    const head = proof.sth;
    if (head === null) throw new ClientError("not-found", `The log has no tree head of size ${proof.tree_size}.`);
    await this.accept(head, floor);
    const holds = treeSize === undefined || head.tree_size === treeSize;
    if (!holds || !isIncluded(leafIndex, proof, head))
      throw await this.misbehaved(`The proof of leaf ${leafIndex} does not hold.`, { shown: head, proof });
    return proof;
  }

  /** The error for a log that was caught, with what shows it; the head believed so far is added. */
  async misbehaved(detail: string, parts: Partial<Evidence>): Promise<ClientError> {
    const [{ pem }, state] = await Promise.all([this.operatorKey(), this.#store.load()]);
    const known = (state?.head ?? null) as TreeHead | null;
    const evidence = { operatorKey: pem, known, shown: null, proof: null, entry: null, ...parts };
    return new ClientError("log-misbehaved", detail, { evidence });
  }

  /**
   * What the log must be able to show, since it gave a receipt or a head for it: that there is none, or that the question
   * makes no sense, is a lie. Being out of reach is no proof of anything.
   */
  async owed<T>(answer: Promise<T>, parts: Partial<Evidence>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (!refuses(error)) throw error;
      throw await this.misbehaved(`The log denies what it vouched for: ${error.detail}`, parts);
    }
  }

  #newestProof(leafIndex: number, treeSize?: number): Promise<InclusionProof> {
    return this.#http.get(wire.InclusionProof, `/log/proof/${leafIndex}`, { tree_size: treeSize });
  }

  async #findKey(): Promise<PublicKey> {
    const state = await this.#store.load();
    const stored = state && parsePublicKey(state.operator_key);
    if (this.#pinned && stored && this.#pinned.fingerprint !== stored.fingerprint)
      throw new ClientError(
        "operator-key-mismatch",
        `The pinned operator key is ${this.#pinned.fingerprint}, but so far the log was known under ${stored.fingerprint}.`,
      );
    const key = this.#pinned ?? stored ?? (await this.#shownKey());
    if (!state) await this.#store.save({ operator_key: key.pem, head: null });
    return key;
  }

  async #shownKey(): Promise<PublicKey> {
    const { public_key } = await this.#http.get(wire.OperatorPublicKey, "/log/operator-key");
    try {
      return parsePublicKey(public_key);
    } catch (cause) {
      throw new ClientError("malformed-answer", "The service shows an operator key that is none.", { cause });
    }
  }

  async #accept(head: TreeHead, atLeast: number): Promise<void> {
    const key = await this.operatorKey();
    if (!(await verifyTreeHead(head, key)))
      throw await this.misbehaved("The tree head is not signed by the pinned operator key.", { shown: head });
    const objection = this.#objection(head);
    if (objection !== undefined) throw await this.misbehaved(objection, { shown: head });
    const known = ((await this.#store.load())?.head ?? null) as TreeHead | null;
    if (head.tree_size < atLeast)
      throw await this.misbehaved(
        `The tree head has ${head.tree_size} leaves, which is less than the ${atLeast} there must be.`,
        { shown: head },
      );
    if (known !== null) await this.#checkConsistent(known, head);
    if (known === null || head.tree_size > known.tree_size) await this.#store.save({ operator_key: key.pem, head });
  }

  async #checkConsistent(known: TreeHead, shown: TreeHead): Promise<void> {
    // The lens is not signed; heads of two lenses cannot be compared, and a log signs under one.
    const comparable = known.tree_version === shown.tree_version;
    if (!comparable) throw await this.misbehaved("The tree heads are under different tree versions.", { shown });
    if (known.tree_size === shown.tree_size) {
      if (known.root_hash === shown.root_hash) return;
      throw await this.misbehaved(`There are two different tree heads of size ${known.tree_size}.`, { shown });
    }
    const [older, newer] = known.tree_size < shown.tree_size ? [known, shown] : [shown, known];
    await this.consistency(older, newer, shown);
  }

  /**
   * The proof that the tree of one checked head is the beginning of that of another.
   * @param shown the one of the two to blame
   * @throws ClientError `log-misbehaved`
   */
  async consistency(older: TreeHead, newer: TreeHead, shown = newer): Promise<ConsistencyProof> {
    const query = { from: older.tree_size, to: newer.tree_size, tree_version: newer.tree_version };
    const proof = await this.owed(this.#http.get(wire.ConsistencyProof, "/log/consistency", query), { shown });
    // What the proof says of itself must be what the signed heads say, too.
    const claims: Members<ConsistencyProof> = {
      from_size: older.tree_size,
      to_size: newer.tree_size,
      from_root: older.root_hash,
      to_root: newer.root_hash,
      tree_version: newer.tree_version,
    };
    const holds =
      differing(proof, claims) === undefined &&
      (await this.#isHeadOf(older, proof.from_sth)) &&
      (await this.#isHeadOf(newer, proof.to_sth)) &&
      verifyConsistency({
        fromSize: older.tree_size,
        toSize: newer.tree_size,
        peaks: proof.peaks,
        extension: proof.extension,
        fromRoot: older.root_hash,
        toRoot: newer.root_hash,
        treeVersion: newer.tree_version,
      });
    if (holds) return proof;
    throw await this.misbehaved(
      `The tree of ${older.tree_size} leaves is not shown to be the beginning of that of ${newer.tree_size}.`,
      { shown, proof },
    );
  }

  /** Whether a head that comes with a proof is one of that tree, which may have been signed more than once. */
  async #isHeadOf(known: TreeHead, shown: TreeHead | null): Promise<boolean> {
    if (shown === null) return false;
    const { tree_size, root_hash, tree_version } = known;
    if (differing(shown, { tree_size, root_hash, tree_version }) !== undefined) return false;
    return same(shown, known) || verifyTreeHead(shown, await this.operatorKey());
  }
}

/** Whether the service itself says that there is no such thing: a 404 of a gateway before it accuses nobody. */
function refuses(error: unknown): error is ClientError {
  if (!(error instanceof ClientError) || error.code === "malformed-answer") return false;
  return error.status === 404 || error.status === 422;
}

/** Whether a proof leads from its leaf to a signed head. What it says of itself must be what the head says, too. */
function isIncluded(leafIndex: number, proof: InclusionProof, head: TreeHead): boolean {
  const { tree_size, root_hash, tree_version } = head;
  const claims: Members<InclusionProof> = {
    leaf_index: leafIndex,
    leaf_hash: leafHash(proof.entry_hash, tree_version),
    tree_size,
    root_hash,
    tree_version,
  };
  if (differing(proof, claims) !== undefined) return false;
  return verifyInclusion({
    leaf: proof.entry_hash,
    leafIndex,
    treeSize: tree_size,
    auditPath: proof.audit_path,
    rootHash: root_hash,
    treeVersion: tree_version,
  });
}
