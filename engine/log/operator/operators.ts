/**
 * The operator keys of a log, as its entries tell them: the first key, and every rotation away from the key that was the
 * operator's at that place. Other rotations do not count; they come with history that was imported from another log.
 */
import { CairnlogError } from "../../base/error.js";
import { verifySync } from "../../crypto/keys/signatures.js";
import { importPublicKey, type ServerKey } from "../../crypto/keys/spki.js";
import type { StoreReader } from "../../store/contract.js";
import type { LogMeta, OperatorRotationRow } from "../../store/schema/rows.js";
import { decodeBase64 } from "../../verify/bytes/encoding.js";
import { type PayloadOf, payloadMisfit } from "../../verify/events/kinds.js";
import { MAX_OPERATOR_TERMS, type OperatorTerm, rotationMessage } from "../../verify/tree/operators.js";
import type { DerivedWriter, LoggedEvent } from "../state/projection.js";
import type { Tree } from "../tree/tree.js";

/** How a term began; without a time as long as its entry is not in this copy of the log. */
type Beginning = Omit<OperatorRotationRow, "timestamp"> & { readonly timestamp: string | null };

/** A key and the first size whose head it signs. */
interface Term {
  readonly key: ServerKey;
  readonly from: number;
  /** Null for the first key. */
  readonly rotation: Beginning | null;
}

/** Immutable. */
export class Operators {
  readonly #terms: readonly Term[];
  /** Fingerprints of the keys that a rotation has ended. */
  readonly retired: ReadonlySet<string>;

  private constructor(terms: readonly Term[]) {
    this.#terms = terms;
    this.retired = new Set(terms.slice(0, -1).map(({ key }) => key.fingerprint));
  }

  /** The keys of a log that has had one. */
  static of(key: ServerKey): Operators {
    return new Operators([{ key, from: 1, rotation: null }]);
  }

  /** A chain that was verified (`OperatorKeys.verify`). */
  static ofChain(chain: readonly OperatorTerm[]): Operators {
    return new Operators(
      chain.map(({ public_key, from_size, rotation }, i) => {
        const key = importPublicKey(public_key);
        const old = i > 0 ? importPublicKey(chain[i - 1]!.public_key) : key;
        const keys = { old_fingerprint: old.fingerprint, old_public_key: old.pem, fingerprint: key.fingerprint };
        const row = { ...keys, public_key: key.pem, tree_size: from_size - 1, timestamp: null };
        return { key, from: from_size, rotation: rotation && { ...rotation, ...row } };
      }),
    );
  }

  /**
   * The keys that the rows of a log tell.
   * @param known one of its keys, or a chain of which the log has the beginning at least
   * @throws CairnlogError `wrong-operator` for a log that none of the known keys belongs to
   */
  static read(store: Pick<StoreReader, "range">, meta: LogMeta, known: Operators): Operators {
    const rows = [...store.range("operatorRotations")].map(({ row }) => row);
    return Operators.linked(rows, meta.first_key_id ?? meta.key_id, known);
  }

  /** As `read`, of rotations in their order, and the fingerprint of the first key. */
  static linked(rows: Iterable<OperatorRotationRow>, first: string, known: Operators): Operators {
    const counting: OperatorRotationRow[] = [];
    let current = first;
    for (const row of rows) {
      if (row.old_fingerprint !== current) continue;
      counting.push(row);
      current = row.fingerprint;
    }
    const key = counting[0] ? importPublicKey(counting[0].old_public_key) : known.named(first)?.key;
    const own =
      key &&
      new Operators([
        { key, from: 1, rotation: null },
        ...counting.map((row) => ({ key: importPublicKey(row.public_key), from: row.tree_size + 1, rotation: row })),
      ]);
    if (own) {
      if (known.#terms.length === 1 && own.named(known.current.fingerprint)) return own;
      if (own.#continues(known)) return own;
      if (known.#continues(own)) return known;
    }
    throw new CairnlogError(
      "wrong-operator",
      `This log is signed by operator key ${current}, not by ${known.current.fingerprint}. Give the key that belongs to it, or another data directory.`,
    );
  }

  /** The key that signs the next head. */
  get current(): ServerKey {
    return this.#terms.at(-1)!.key;
  }

  get first(): ServerKey {
    return this.#terms[0]!.key;
  }

  /** The key that signs the head of a size. */
  keyAt(size: number): ServerKey {
    return this.#termAt(size).key;
  }

  /** The term of a key; undefined for a key of another log. */
  named(fingerprint: string): (Term & { readonly until: Beginning | null }) | undefined {
    const i = this.#terms.findIndex(({ key }) => key.fingerprint === fingerprint);
    return i < 0 ? undefined : { ...this.#terms[i]!, until: this.#terms[i + 1]?.rotation ?? null };
  }

  /** As the log shows it to others. */
  get chain(): readonly OperatorTerm[] {
    return this.#terms.map(({ key, from, rotation }, i) => {
      const next = this.#terms[i + 1];
      return {
        key_id: key.fingerprint,
        algorithm: key.algorithm,
        public_key: key.pem,
        from_size: from,
        until_size: next ? next.from - 1 : null,
        rotation: rotation && {
          entry_id: rotation.entry_id,
          root_hash: rotation.root_hash,
          old_key_signature: rotation.old_key_signature,
          new_key_signature: rotation.new_key_signature,
        },
      };
    });
  }

  /** Every rotation that counts, oldest first. */
  get rotations(): readonly Beginning[] {
    return this.#terms.flatMap(({ rotation }) => rotation ?? []);
  }

  /**
   * The keys after an event. A rotation away from a key that is not the operator's there changes nothing.
   * @param tree of version 2, with the event's entry or without
   * @throws CairnlogError as `checkRotation` does; `invalid-input` for a rotation to a key that was the operator's before,
   *   or another than the one that is known to follow
   */
  after(event: LoggedEvent, tree: Tree): Operators {
    const row = rotationOf(event);
    const { leafIndex } = event;
    const before = this.#termAt(leafIndex);
    if (row?.old_fingerprint !== before.key.fingerprint) return this;
    const key = checkRotation(row, before.key, leafIndex, tree);
    const known = this.#terms[this.#terms.indexOf(before) + 1];
    if (known) {
      if (known.key.fingerprint === key.fingerprint && known.from === leafIndex + 1) return this;
      throw new CairnlogError("invalid-input", `Another rotation of the operator key ${row.old_fingerprint} is known.`);
    }
    this.checkNext(key.fingerprint);
    return new Operators([...this.#terms, { key, from: leafIndex + 1, rotation: row }]);
  }

  /** @throws CairnlogError `invalid-input` for a key that was the operator's before, and when there were too many */
  checkNext(fingerprint: string): void {
    if (this.named(fingerprint))
      throw new CairnlogError("invalid-input", `The key ${fingerprint} is or was an operator key of this log.`);
    if (this.#terms.length >= MAX_OPERATOR_TERMS)
      throw new CairnlogError("invalid-input", `A log has at most ${MAX_OPERATOR_TERMS} operator keys.`);
  }

  /** @throws CairnlogError `wrong-operator` unless the key signs the next head */
  checkCurrent(fingerprint: string): void {
    if (fingerprint === this.current.fingerprint) return;
    const retired = this.named(fingerprint)?.until;
    const why = retired
      ? `the operator key ${fingerprint} was retired by entry ${retired.entry_id}`
      : `${fingerprint} is not its operator key`;
    throw new CairnlogError(
      "wrong-operator",
      `This log is signed by operator key ${this.current.fingerprint}; ${why}. Give the key that signs it now.`,
    );
  }

  #termAt(size: number): Term {
    const next = this.#terms.findIndex(({ from }) => from > size);
    return this.#terms.at(next < 0 ? -1 : Math.max(0, next - 1))!;
  }

  #continues(other: Operators): boolean {
    return other.#terms.every((term, i) => {
      const own = this.#terms[i];
      return own?.key.fingerprint === term.key.fingerprint && own.from === term.from;
    });
  }
}

// Rotations in the log: the entry that hands the log from one operator key to the next, and the row that is derived from
// it. A row is written for every entry of this kind. Whether it counts follows from the first key of the log.

export const OPERATOR_ROTATION = "operator_key_rotation";

/** What an entry says of a rotation; undefined for an entry that is none. Imported history may hold anything. */
function rotationOf(event: LoggedEvent): OperatorRotationRow | undefined {
  if (event.event_type !== OPERATOR_ROTATION || payloadMisfit(event) !== undefined) return undefined;
  const payload = event.payload as PayloadOf<typeof OPERATOR_ROTATION>;
  return {
    entry_id: event.id,
    timestamp: event.timestamp,
    old_fingerprint: payload.old_fingerprint,
    old_public_key: payload.old_public_key,
    fingerprint: payload.fingerprint,
    public_key: payload.public_key,
    tree_size: payload.tree_size,
    root_hash: payload.root_hash,
    old_key_signature: payload.old_key_signature,
    new_key_signature: payload.new_key_signature,
  };
}

/** Writes the row of a rotation. */
export function applyRotation(event: LoggedEvent, state: DerivedWriter): void {
  const row = rotationOf(event);
  if (row) state.put("operatorRotations", event.leafIndex, row);
}

/**
 * Checks a rotation away from the key `old`, and gives the new key.
 * @param leafIndex of its entry
 * @param tree of version 2, with at least the entries before it
 * @throws CairnlogError `invalid-input`, `invalid-key`; `invalid-signature` when one of the keys has not signed it
 */
export function checkRotation(row: OperatorRotationRow, old: ServerKey, leafIndex: number, tree: Tree): ServerKey {
  const { tree_size, root_hash, public_key, fingerprint, old_public_key } = row;
  const refuse = (why: string) => {
    throw new CairnlogError("invalid-input", `The rotation of the operator key does not hold: ${why}`);
  };
  if (tree_size !== leafIndex)
    refuse(`it is about the first ${tree_size} entries, but stands behind the first ${leafIndex}.`);
  if (root_hash !== tree.rightEdge(tree_size).rootHex)
    refuse(`its root is not that of the first ${tree_size} entries.`);
  if (old_public_key !== old.pem) refuse("the old public key is not the one that its fingerprint names.");
  const key = importPublicKey(public_key);
  if (key.fingerprint !== fingerprint || key.pem !== public_key)
    refuse("the new public key is not the one that its fingerprint names.");
  const message = rotationMessage(row);
  for (const [signer, signature] of [
    [old, row.old_key_signature],
    [key, row.new_key_signature],
  ] as const) {
    const bytes = decodeBase64(signature);
    if (!bytes || !verifySync(signer, message, bytes))
      throw new CairnlogError(
        "invalid-signature",
        `The rotation of the operator key is not signed by ${signer.fingerprint}.`,
      );
  }
  return key;
}
