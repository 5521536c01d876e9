/**
 * The watch on one log: every head that arrives must be signed by the operator key of its size and consistent with the last one seen,
 * and every entry that a receipt names must be the one it should be and lie under such a head. Everything that is judged
 * here was chosen by whoever answers; the store alone is trusted.
 */

import * as wire from "../../../engine/contract/log/log.js";
import { isCut, isWithheld, withholdingFault } from "../../../engine/verify/events/withheld.js";
import {
  CairnlogError,
  checkOtsProof,
  checkServiceEntry,
  type Entry,
  type EntryProblem,
  type InclusionProof,
  type OperatorKeys,
  type PublicKey,
  parsePublicKey,
  type TreeHead,
  verifyConsistency,
  verifyTreeHead,
} from "../../../engine/verify/index.js";
import { differingMember, type Members, same } from "../base/compare.js";
import { ClientError, type Evidence } from "../base/error.js";
import type { Http } from "../base/http.js";
import type { State, Store } from "../base/store.js";
import type { ConsistencyProof } from "../base/types.js";
import { deviation, type Expected } from "./expected.js";
import { type EntryCriteria, failedFilter } from "./filters.js";
import { newRotations, type OperatorKeyAnswer, OperatorPins, type ShownRotation } from "./operators.js";
import { isProven, type ProvenEntry } from "./proven.js";

/** The reason to refuse a signed head, as a sentence; undefined if there is none. */
type HeadObjection = (head: TreeHead) => string | undefined;

export class Watch {
  readonly #http: Http;
  readonly #pins: OperatorPins;
  readonly #objection: HeadObjection;
  /** Heads are taken one after the other: two at a time could each fit the one before and not one another. */
  #queue: Promise<unknown> = Promise.resolve();

  /** @throws CairnlogError `invalid-key` for an invalid pinned key */
  constructor(http: Http, store: Store, pinnedPem: string | undefined, objection: HeadObjection = () => undefined) {
    this.#http = http;
    this.#objection = objection;
    this.#pins = new OperatorPins(http, store, pinnedPem);
  }

  /**
   * The operator key: the pinned one, or the one in the store, or on first use the one that the service shows.
   * @throws ClientError
   */
  operatorKey(): Promise<PublicKey> {
    return this.#pins.key();
  }

  /** The chain of operator keys, as the service has shown it: asked for once. @throws ClientError `log-misbehaved` */
  async operators(): Promise<OperatorKeys> {
    const known = await this.#pins.known();
    return this.#pins.isChainKnown ? known : this.refreshedOperators();
  }

  /** The chain of operator keys that is known, without a request. Before one was shown, it holds the pinned key alone. */
  knownOperators(): Promise<OperatorKeys> {
    return this.#pins.known();
  }

  /**
   * The chain of operator keys as the service shows it now.
   * @param answer what it showed, if it was asked already
   * @throws ClientError `log-misbehaved`; without a head in the evidence when the chain by itself shows it
   */
  refreshedOperators(answer?: OperatorKeyAnswer): Promise<OperatorKeys> {
    return this.#inTurn(() => this.#learnOperators(null, answer));
  }

  /**
   * The size of the last seen head. Read before a write: its entry must have this leaf index or a higher one. Without a
   * last seen head, the newest is fetched, because an old entry could otherwise pass for a new one.
   * @throws ClientError
   */
  async sizeBefore(): Promise<number> {
    return (await this.floor()) || ((await this.newest())?.tree_size ?? 0);
  }

  /** The size of the last seen head; 0 before the first. */
  async floor(): Promise<number> {
    await this.operatorKey();
    return (await this.#knownHead())?.tree_size ?? 0;
  }

  /**
   * The newest head, verified. Undefined while the log is empty. After the first head, the log cannot be empty again.
   * @throws ClientError `log-misbehaved`
   */
  async newest(): Promise<TreeHead | undefined> {
    const floor = await this.floor();
    let head: TreeHead;
    try {
      head = await this.#http.get(wire.TreeHead, "/log/sth");
    } catch (error) {
      if (!refuses(error) || error.status !== 404) throw error;
      if (floor === 0) return undefined;
      // It may be another log, which has no entry yet.
      await this.owed(this.refreshedOperators(), {});
      throw await this.misbehaved("The log shows no head any more.", {});
    }
    await this.accept(head, floor);
    return head;
  }

  /** The head of the tree with `treeSize` leaves, verified. @throws ClientError `not-found` before the first */
  async headOf(treeSize: number): Promise<TreeHead> {
    const head = await this.#http.get(wire.TreeHead, `/log/sth/${treeSize}`);
    await this.accept(head);
    // A program may give a size as text, which is no lie of the log.
    if (`${head.tree_size}` !== `${treeSize}`)
      throw await this.misbehaved(`Asked for the head of size ${treeSize}, the log showed another.`, { shown: head });
    return head;
  }

  /** Whether the service says that the log has a head of this size. @throws ClientError */
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
   * Accepts a head, or throws with evidence. A head that is smaller than the last seen one is accepted only down to
   * `atLeast` leaves, and its tree must be the beginning of the last one's.
   * @throws ClientError `log-misbehaved`; others if the proof of consistency cannot be fetched
   */
  accept(head: TreeHead, atLeast = 0): Promise<void> {
    return this.#inTurn(() => this.#accept(head, atLeast));
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }

  /**
   * The entry of a receipt for a request of this client, with its proof.
   * @param leafIndex the entry's place according to the receipt; null if the receipt does not name it
   * @param floor `sizeBefore()` before the request: an entry below it is not new
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
   * Returns a receipt, or a part of one, if it agrees with its entry and the request.
   * @param truth the values that follow from entry and request
   * @throws ClientError `log-misbehaved`
   */
  async agreed<T extends object>(receipt: T, truth: Members<T>, { entry, proof, head }: ProvenEntry): Promise<T> {
    const member = differingMember(receipt, truth);
    if (member === undefined) return receipt;
    const detail = `The receipt of entry ${entry.id} does not say what the entry says: it differs in ${member}.`;
    throw await this.misbehaved(detail, { shown: head, proof, entry });
  }

  /**
   * An entry with the proof that it is in the tree of the newest head.
   * @param leafIndex null if it is not known: imported history may skip ids, so the id does not give the place
   * @throws ClientError `log-misbehaved`; `not-found`
   */
  proven(entryId: number, leafIndex: number | null, floor: number): Promise<ProvenEntry> {
    return this.#proven(entryId, leafIndex, floor, this.entry(entryId));
  }

  async #proven(
    entryId: number,
    leafIndex: number | null,
    floor: number,
    fetched: Promise<Entry>,
  ): Promise<ProvenEntry> {
    const [entry, proof] = await Promise.all([
      fetched,
      leafIndex === null ? this.#http.get(wire.InclusionProof, `/log/${entryId}/proof`) : this.#newestProof(leafIndex),
    ]);
    const head = proof.sth;
    if (head === null) throw await this.misbehaved("The log has no head for its size.", { proof, entry });
    await this.accept(head, floor);
    const claimed = leafIndex ?? proof.leaf_index;
    // Ids ascend from 1, so an entry's leaf index is below its id. No hash says more about an id.
    const isItsOwn = proof.entry_hash === entry.entry_hash && claimed < entryId;
    if (!isItsOwn || !isProven(claimed, proof, head))
      throw await this.misbehaved(`The proof does not lead from entry ${entryId} to the tree head.`, {
        shown: head,
        proof,
        entry,
      });
    return { entry, proof, head };
  }

  /**
   * An entry whose content has the claimed hashes, or whose payload is withheld. It is not proven to be in the tree. @throws
   * ClientError
   */
  async entry(id: number): Promise<Entry> {
    const entry = await this.#fetched(id);
    await this.checkContent(entry, id);
    return entry;
  }

  async #fetched(id: number): Promise<Entry> {
    return (await this.#http.get(wire.Entry, `/log/${id}`)) as Entry;
  }

  /** Like `entry`, but refuses one whose payload is withheld. */
  async #shown(id: number): Promise<Entry> {
    const entry = await this.#fetched(id);
    await this.#checkForm(entry, id, checkServiceEntry(entry)[0]);
    return entry;
  }

  /**
   * Checks the content of an entry. If its payload is withheld, another entry must say so, which is proven to be on the log.
   * @throws ClientError `log-misbehaved` unless it has the claimed hashes
   */
  async checkContent(entry: Entry, id = entry.id): Promise<void> {
    await this.#checkForm(
      entry,
      id,
      checkServiceEntry(entry).find(({ code }) => code !== "withheld"),
    );
    if (!isCut(entry)) return;
    const { withheld_by = 0 } = entry;
    const shown = isWithheld(entry) && this.#proven(withheld_by, null, 0, this.#shown(withheld_by));
    const by = shown ? (await this.owed(shown, { entry })).entry : undefined;
    const fault = withholdingFault(entry, by);
    if (fault !== undefined) throw await this.misbehaved(`Entry ${id}: ${fault}`, { entry });
  }

  async #checkForm(entry: Entry, id: number, problem: EntryProblem | undefined): Promise<void> {
    if (problem !== undefined) throw await this.misbehaved(`Entry ${id}: ${problem.message}`, { entry });
    const anchor = entry.ots_proof === undefined ? null : checkOtsProof(entry.ots_proof, entry.entry_hash);
    if (anchor?.ok === false) throw await this.misbehaved(`Entry ${id}: ${anchor.detail}`, { entry });
    if (entry.id !== id) throw await this.misbehaved(`Asked for entry ${id}, the log showed another.`, { entry });
  }

  /** Checks an entry of a list: its content, and the filters that were sent. @throws ClientError `log-misbehaved` */
  async checkListed(entry: Entry, criteria: EntryCriteria): Promise<void> {
    await this.checkContent(entry);
    const failed = failedFilter(entry, criteria);
    if (failed)
      throw await this.misbehaved(`Entry ${entry.id} was not asked for: it does not pass ${failed}.`, { entry });
  }

  /** The proof of a leaf in the tree of a size, verified against that size's head. @throws ClientError */
  async inclusion(leafIndex: number, treeSize?: number): Promise<InclusionProof> {
    const floor = treeSize === undefined ? await this.floor() : 0;
    const proof = await this.#newestProof(leafIndex, treeSize);
    const head = proof.sth;
    if (head === null) throw new ClientError("not-found", `The log has no tree head of size ${proof.tree_size}.`);
    await this.accept(head, floor);
    const holds = treeSize === undefined || head.tree_size === treeSize;
    if (!holds || !isProven(leafIndex, proof, head))
      throw await this.misbehaved(`The proof of leaf ${leafIndex} does not hold.`, { shown: head, proof });
    return proof;
  }

  /** The error for a misbehaviour of the log, with evidence; the last trusted head is added. */
  async misbehaved(detail: string, parts: Partial<Evidence>): Promise<ClientError> {
    const [{ pem }, { chain }, state] = await Promise.all([
      this.operatorKey(),
      this.#pins.known(),
      this.#pins.stored(),
    ]);
    const known = (state?.head ?? null) as TreeHead | null;
    const evidence = { operatorKey: pem, operators: chain, known, shown: null, proof: null, entry: null, ...parts };
    return new ClientError("log-misbehaved", detail, { evidence });
  }

  /**
   * Awaits an answer that the log must be able to give, because it has given a receipt or a head for it. A refusal (not
   * found, or invalid) is then a misbehaviour. An unreachable service proves nothing.
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

  async #accept(head: TreeHead, atLeast: number): Promise<void> {
    await this.#learnSigner(head);
    if ((await this.#newerOf(head, atLeast)) === head) await this.#pins.keep(head);
  }

  /** The larger one of a head and of the last one seen. Keeps nothing. @throws ClientError as `accept` does */
  async #newerOf(head: TreeHead, atLeast: number): Promise<TreeHead> {
    await this.#checkSigned(head);
    const objection = this.#objection(head);
    if (objection !== undefined) throw await this.misbehaved(objection, { shown: head });
    const known = await this.#knownHead();
    await this.#checkEnd(head);
    this.#http.hasSeen(head.tree_size);
    if (known !== null) await this.#checkConsistent(known, head);
    if (head.tree_size < atLeast) await this.#refuseOlder(head, atLeast, known);
    return known === null || head.tree_size > known.tree_size ? head : known;
  }

  async #knownHead(): Promise<TreeHead | null> {
    return ((await this.#pins.stored())?.head ?? null) as TreeHead | null;
  }

  /**
   * A signed head whose tree is the beginning of the last one's is true, and older: a cache may have kept it. A head that is
   * older than what a receipt names without one contradicts the receipt.
   */
  async #refuseOlder(shown: TreeHead, atLeast: number, known: TreeHead | null): Promise<never> {
    const detail = `The tree head has ${shown.tree_size} leaves, which is less than the ${atLeast} there must be.`;
    if (known === null || known.tree_size < atLeast) throw await this.misbehaved(detail, { shown });
    throw new ClientError("stale-answer", detail, { evidence: (await this.misbehaved(detail, { shown })).evidence! });
  }

  /** Asks for the chain, if the key whose term the head's size is in, as far as is known, is not the one that the head names. */
  async #learnSigner(head: TreeHead): Promise<void> {
    const operators = await this.#pins.known();
    if (operators.keyAt(head.tree_size).fingerprint !== head.key_id) await this.#learnOperators(head);
  }

  /** Believes from now on, and in later runs, that the log ended with an entry, which was proven. */
  keepEnd(end: NonNullable<State["frozen"]>): Promise<void> {
    return this.#inTurn(async () => {
      this.#pins.end = end;
      await this.#pins.keep(await this.#knownHead());
    });
  }

  /** A log that has ended has no larger head. */
  async #checkEnd(shown: TreeHead): Promise<void> {
    const { end } = this.#pins;
    if (!end || shown.tree_size <= end.tree_size) return;
    const entry = await this.#shown(end.entry_id).catch(() => null);
    const detail = `Entry ${end.entry_id} froze the log at size ${end.tree_size}, and there is a head of ${shown.tree_size}.`;
    throw await this.misbehaved(detail, { shown, entry });
  }

  /** A head must be signed by the key whose term its size is in. */
  async #checkSigned(head: TreeHead): Promise<void> {
    const operators = await this.#pins.known();
    if (await verifyTreeHead(head, operators)) return;
    const signer = operators.chain[operators.indexOf(head.key_id)];
    const retired = signer?.until_size ?? Number.POSITIVE_INFINITY;
    const isLate = retired < head.tree_size && (await verifyTreeHead(head, parsePublicKey(signer!.public_key)));
    const detail = isLate
      ? `The tree head of size ${head.tree_size} is signed by operator key ${head.key_id}, which was retired at size ${retired}.`
      : "The tree head is not signed by the pinned operator key.";
    throw await this.misbehaved(detail, { shown: head });
  }

  /**
   * Takes the chain of operator keys that the service shows, when it goes on from what is known and the log bears it out.
   * @param shown the head that gave reason to ask
   */
  async #learnOperators(shown: TreeHead | null = null, answer?: OperatorKeyAnswer): Promise<OperatorKeys> {
    const before = this.#pins.isChainKnown ? await this.#pins.known() : null;
    let operators: OperatorKeys;
    try {
      operators = await this.#pins.shown(answer);
    } catch (error) {
      if (error instanceof ClientError && error.code === "operator-key-mismatch") {
        const { evidence } = await this.misbehaved(error.detail, { shown });
        throw new ClientError(error.code, error.detail, { evidence: evidence! });
      }
      if (!(error instanceof CairnlogError)) throw error;
      throw await this.misbehaved(`The service shows a wrong chain of operator keys: ${error.message}`, { shown });
    }
    this.#pins.believe(operators);
    try {
      const rotations = newRotations(operators, before);
      if (rotations.length) await this.#checkRotations(operators, rotations);
      else await this.#pins.keep(await this.#knownHead());
    } catch (error) {
      this.#pins.believe(before);
      throw error;
    }
    return operators;
  }

  /**
   * The newest head is that of the last rotation at least, and the log under it has every rotation at its place. Chain and head
   * are kept when all of that holds: what the store has is not checked again.
   */
  async #checkRotations(operators: OperatorKeys, rotations: readonly ShownRotation[]): Promise<void> {
    // The chain is signed: some node has the last rotation.
    const atLeast = rotations.at(-1)!.leafIndex + 1;
    this.#http.hasSeen(atLeast);
    const newest = await this.owed(this.#http.get(wire.TreeHead, "/log/sth"), {});
    const isOfChain = operators.keyAt(newest.tree_size).fingerprint === newest.key_id;
    if (!isOfChain && (await this.#pins.shown()).chain.length > operators.chain.length)
      throw new ClientError("stale-answer", "The operator key was rotated again while its chain was checked.");
    const newer = await this.#newerOf(newest, atLeast);
    for (const { before, entryId, leafIndex, expected } of rotations) {
      await this.consistency(before, newest);
      const shown = this.#http.get(wire.InclusionProof, `/log/proof/${leafIndex}`, { tree_size: newest.tree_size });
      const [entry, proof] = await this.owed(Promise.all([this.#shown(entryId), shown]), { shown: newest });
      const isThere = proof.entry_hash === entry.entry_hash && isProven(leafIndex, proof, newest);
      if (isThere && deviation(entry, expected) === undefined) continue;
      const detail = "The log does not have the rotation of its operator key that the service shows.";
      throw await this.misbehaved(detail, { shown: newest, proof, entry });
    }
    await this.#pins.keep(newer);
  }

  async #checkConsistent(known: TreeHead, shown: TreeHead): Promise<void> {
    // The tree version is not signed. Heads of two tree versions cannot be compared, and a log signs only one.
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
   * The proof that the tree of one verified head is the beginning of that of another.
   * @param shown the head to blame if there is no proof
   * @throws ClientError `log-misbehaved`
   */
  async consistency(older: TreeHead, newer: TreeHead, shown = newer): Promise<ConsistencyProof> {
    const query = { from: older.tree_size, to: newer.tree_size, tree_version: newer.tree_version };
    const proof = await this.owed(this.#http.get(wire.ConsistencyProof, "/log/consistency", query), { shown });
    // The values in the proof must also agree with the signed heads.
    const claims: Members<ConsistencyProof> = {
      from_size: older.tree_size,
      to_size: newer.tree_size,
      from_root: older.root_hash,
      to_root: newer.root_hash,
      tree_version: newer.tree_version,
    };
    const holds =
      differingMember(proof, claims) === undefined &&
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

  /** Whether a head that comes with a proof is a head of that tree. A tree may have several signed heads. */
  async #isHeadOf(known: TreeHead, shown: TreeHead | null): Promise<boolean> {
    if (shown === null) return false;
    const { tree_size, root_hash, tree_version } = known;
    if (differingMember(shown, { tree_size, root_hash, tree_version }) !== undefined) return false;
    return same(shown, known) || verifyTreeHead(shown, await this.#pins.known());
  }
}

/** Whether the service itself denies the request. A 404 of a gateway is no evidence against the log. */
function refuses(error: unknown): error is ClientError {
  if (!(error instanceof ClientError) || error.code === "malformed-answer") return false;
  return error.status === 404 || error.status === 422;
}
