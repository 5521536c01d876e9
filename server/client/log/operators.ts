/**
 * Whose heads are believed: the pinned key, and the chain of operator keys that it belongs to, as far as it is known. A
 * chain that the service shows is an attacker's choice; the store alone is trusted.
 */

import type { Static } from "typebox";
import * as wire from "../../../engine/contract/log/log.js";
import {
  CairnlogError,
  OperatorKeys,
  type PublicKey,
  parsePublicKey,
  type TreeHead,
} from "../../../engine/verify/index.js";
import { ClientError } from "../base/error.js";
import type { Http } from "../base/http.js";
import type { State, Store } from "../base/store.js";
import type { Expected } from "./expected.js";

// Rotations of the operator key that the service shows, held against the log itself: the entries that a rotation is about
// must be the beginning of the tree of a newer head, and the entry that records it must be the leaf behind them.

/** A rotation, and what shows that the log has it. */
export interface ShownRotation {
  /** What was signed about the entries before it, in the form of a head. */
  readonly before: TreeHead;
  readonly entryId: number;
  readonly leafIndex: number;
  /** What the entry must say. */
  readonly expected: Expected;
}

/** The rotations of `shown` that are not in `known`, oldest first. */
export function newRotations(shown: OperatorKeys, known: OperatorKeys | null): readonly ShownRotation[] {
  return shown.chain.flatMap((term, i) => {
    const { rotation, from_size, key_id } = term;
    if (!rotation || known?.chain[i]?.rotation) return [];
    const old = shown.chain[i - 1]!;
    const { root_hash, old_key_signature, new_key_signature, entry_id } = rotation;
    const tree_size = from_size - 1;
    const payload = {
      old_fingerprint: old.key_id,
      old_public_key: old.public_key,
      fingerprint: key_id,
      public_key: term.public_key,
      key_algorithm: term.algorithm,
      ...{ tree_size, root_hash, old_key_signature, new_key_signature },
    };
    // No key has signed this as a head: what is asked for is the head of this size and root.
    const before = { tree_size, root_hash, tree_version: 2, key_id: old.key_id, signature: "", timestamp: "" } as const;
    return [
      { before, entryId: entry_id, leafIndex: tree_size, expected: { event_type: "operator_key_rotation", payload } },
    ];
  });
}

/** What `GET /log/operator-key` answers. */
export type OperatorKeyAnswer = Static<typeof wire.OperatorPublicKey>;

export class OperatorPins {
  readonly #http: Http;
  readonly #store: Store;
  readonly #pinned: PublicKey | undefined;
  #key: Promise<PublicKey> | undefined;
  /** Null as long as no chain was shown. */
  #chain: OperatorKeys | null = null;
  /** The end of the log, if it was proven, now or to another client of the store. */
  end: State["frozen"];

  /** @throws CairnlogError `invalid-key` for a pinned key that is none */
  constructor(http: Http, store: Store, pinnedPem: string | undefined) {
    this.#http = http;
    this.#store = store;
    this.#pinned = pinnedPem === undefined ? undefined : parsePublicKey(pinnedPem);
  }

  /** The key that is pinned, or the one in the store, or, the first time, the one that the service shows. @throws ClientError */
  key(): Promise<PublicKey> {
    this.#key ??= this.#findKey().catch((error: unknown) => {
      this.#key = undefined;
      throw error;
    });
    return this.#key;
  }

  /** Whether the service has shown its chain, now or to an earlier client. */
  get isChainKnown(): boolean {
    return this.#chain !== null;
  }

  /** The chain as far as it is known: without any, the pinned key alone. @throws ClientError */
  async known(): Promise<OperatorKeys> {
    const key = await this.key();
    return this.#chain ?? OperatorKeys.of(key);
  }

  /**
   * The chain that the service shows now.
   * @param answer what it showed, if it was asked already
   * @throws ClientError `operator-key-mismatch` if the service shows another key than the pinned one, and the chain does not
   *   hold the pinned one; CairnlogError for a chain that is not signed, or does not go on from the known one
   */
  async shown(answer?: OperatorKeyAnswer): Promise<OperatorKeys> {
    const key = await this.key();
    const { operators, public_key } = answer ?? (await this.#http.get(wire.OperatorPublicKey, "/log/operator-key"));
    const chain = await OperatorKeys.verify(operators, key).catch((error: unknown) => {
      const isOther = error instanceof CairnlogError && error.code === "wrong-operator" && public_key !== key.pem;
      throw isOther ? this.#otherKey(key, parsePublicKey(public_key)) : error;
    });
    if (public_key !== chain.current.pem)
      throw new CairnlogError("wrong-operator", "The operator key is not the newest one of the chain.");
    if (this.#chain && !chain.continues(this.#chain))
      throw new CairnlogError(
        "wrong-operator",
        `The chain of ${chain.chain.length} operator keys does not go on from the ${this.#chain.chain.length} that are known.`,
      );
    return chain;
  }

  /** Believes a chain from now on; `keep` makes it last. */
  believe(chain: OperatorKeys | null): void {
    this.#chain = chain;
  }

  /** What the store has. The end that another client has noted there is believed from now on. */
  async stored(): Promise<State | undefined> {
    const state = await this.#store.load();
    this.#http.hasSeen(state?.head?.tree_size ?? 0);
    this.end ??= state?.frozen;
    return state;
  }

  /** Keeps the newest head, with the keys and the end that are believed, and what another client has noted beyond them. */
  async keep(head: State["head"]): Promise<void> {
    const operator_key = (await this.key()).pem;
    const { head: other, operators: noted = [] } = (await this.stored()) ?? {};
    const chain = this.#chain?.chain ?? [];
    const operators = noted.length > chain.length ? noted : [...chain];
    await this.#store.save({
      operator_key,
      head: other && other.tree_size > (head?.tree_size ?? 0) ? other : head,
      ...(operators.length && { operators }),
      ...(this.end && { frozen: this.end }),
    });
  }

  async #findKey(): Promise<PublicKey> {
    const state = await this.stored();
    const stored = state && parsePublicKey(state.operator_key);
    if (stored && state.operators) this.#chain = await OperatorKeys.verify(state.operators, stored);
    const isStored = !stored || !this.#pinned || this.#pinned.fingerprint === stored.fingerprint;
    if (!isStored && (this.#chain?.indexOf(this.#pinned!.fingerprint) ?? -1) < 0)
      throw new ClientError(
        "operator-key-mismatch",
        `The pinned operator key is ${this.#pinned!.fingerprint}, but so far the log was known under ${stored!.fingerprint}.`,
      );
    const key = this.#pinned ?? stored ?? (await this.#shownKey());
    if (!state) await this.#store.save({ operator_key: key.pem, head: null });
    return key;
  }

  /** Nobody can tell from here which of these it is. */
  #otherKey(pinned: PublicKey, shown: PublicKey): ClientError {
    return new ClientError(
      "operator-key-mismatch",
      `The log at ${this.#http.server} shows another operator key than the pinned one, and no rotation leads from that to it. Pinned: ${pinned.fingerprint}. Shown: ${shown.fingerprint}. A log may have been made anew at this address, or another log may answer in its place.`,
    );
  }

  async #shownKey(): Promise<PublicKey> {
    const { public_key } = await this.#http.get(wire.OperatorPublicKey, "/log/operator-key");
    try {
      return parsePublicKey(public_key);
    } catch (cause) {
      throw new ClientError("malformed-answer", "The service shows an operator key that is none.", { cause });
    }
  }
}
