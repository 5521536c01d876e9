/**
 * The operator keys of a log, one after the other. A rotation hands the log from one key to the next: both sign a
 * statement that names the two keys, the number of entries n up to which the old key speaks, and the root of those
 * entries (tree version 2). Heads of sizes up to n are the old key's; later heads, that of the rotation's own entry
 * included, are the new key's.
 *
 * Whoever holds one key of a chain can check the whole chain: forwards by the signatures of the old keys, backwards by
 * those of the new ones. A chain may come from an attacker.
 */
import { CairnlogError, inputError } from "../../base/error.js";
import { decodeBase64, isPrefixedHash, utf8 } from "../bytes/encoding.js";
import { anyText, arrayOf, hexHash, objectOf, orNull, positiveInteger, where } from "../json/shape.js";
import { type PublicKey, parsePublicKey } from "../keys/publickey.js";
import { verifySignature } from "../keys/signature.js";

/** What the statement of a rotation says. */
export interface RotationStatement {
  readonly old_fingerprint: string;
  readonly fingerprint: string;
  /** Number of entries before the rotation. */
  readonly tree_size: number;
  /** Root of those entries under tree version 2, lower-case hex. */
  readonly root_hash: string;
}

/** How a term began: what both keys signed, beside the sizes and keys that the chain names anyway. */
export interface TermRotation {
  /** The entry that records the rotation; no signature covers it. */
  readonly entry_id: number;
  readonly root_hash: string;
  /** Base64. */
  readonly old_key_signature: string;
  /** Base64. */
  readonly new_key_signature: string;
}

/** One operator key, and the sizes whose heads it signs. */
export interface OperatorTerm {
  readonly key_id: string;
  readonly algorithm: string;
  /** PEM. */
  readonly public_key: string;
  readonly from_size: number;
  /** The last size; null for the key that signs now. */
  readonly until_size: number | null;
  /** Null for the first key of the log. */
  readonly rotation: TermRotation | null;
}

/** Bounds the work on a hostile chain: each term takes two signatures. */
export const MAX_OPERATOR_TERMS = 100;

const DOMAIN = "cairnlog-operator-key-rotation/v1";

/** The form of a chain, oldest key first. */
export const OPERATOR_CHAIN = arrayOf(
  objectOf({
    key_id: where("a fingerprint", isPrefixedHash),
    algorithm: anyText,
    public_key: anyText,
    from_size: positiveInteger,
    until_size: orNull(positiveInteger),
    rotation: orNull(
      objectOf({
        entry_id: positiveInteger,
        root_hash: hexHash,
        old_key_signature: anyText,
        new_key_signature: anyText,
      }),
    ),
  }),
);

/**
 * The bytes that both keys of a rotation sign: UTF-8 of `cairnlog-operator-key-rotation/v1:OLD:NEW:N:ROOT`. Nothing else
 * that an operator key signs begins in this way. Check the form of the members first: a colon could move between them.
 */
export function rotationMessage({ old_fingerprint, fingerprint, tree_size, root_hash }: RotationStatement): Uint8Array {
  return utf8(`${DOMAIN}:${old_fingerprint}:${fingerprint}:${tree_size}:${root_hash}`);
}

/** The operator keys of a log by the sizes whose heads they sign. Made of a chain that was verified, or of one key. */
export class OperatorKeys {
  readonly chain: readonly OperatorTerm[];
  readonly #keys: readonly PublicKey[];

  private constructor(chain: readonly OperatorTerm[], keys: readonly PublicKey[]) {
    this.chain = chain;
    this.#keys = keys;
  }

  /** A chain with one key and no rotation. */
  static of(key: PublicKey): OperatorKeys {
    return new OperatorKeys([firstTerm(key)], [key]);
  }

  /**
   * Checks a chain against a key that is known from elsewhere.
   * @throws CairnlogError `invalid-input` or `invalid-key` for what is no chain; `invalid-signature` for a rotation that
   *   one of its keys has not signed; `wrong-operator` for a chain that does not hold the pinned key
   */
  static async verify(chain: unknown, pinned: PublicKey): Promise<OperatorKeys> {
    const misfit = OPERATOR_CHAIN(chain, "");
    if (misfit !== undefined) throw inputError(`This is no chain of operator keys. ${misfit}`);
    const terms = chain as readonly OperatorTerm[];
    if (terms.length > MAX_OPERATOR_TERMS)
      throw inputError(`The chain has more than ${MAX_OPERATOR_TERMS} operator keys.`);
    const keys = terms.map(({ public_key }) => parsePublicKey(public_key));
    checkTerms(terms, keys);
    if (!keys.some(({ fingerprint }) => fingerprint === pinned.fingerprint))
      throw new CairnlogError(
        "wrong-operator",
        `The pinned operator key ${pinned.fingerprint} is not among the keys of the chain.`,
      );
    for (const [i, { from_size, rotation }] of terms.entries())
      if (rotation) await checkSignatures(keys[i - 1]!, keys[i]!, from_size - 1, rotation);
    return new OperatorKeys(terms, keys);
  }

  /** The key that signs now. */
  get current(): PublicKey {
    return this.#keys.at(-1)!;
  }

  /** The key that signs heads of a size. An attacker may choose the size; below 1 it is the first key. */
  keyAt(treeSize: number): PublicKey {
    return this.#keys[this.indexAt(treeSize)]!;
  }

  /** Number of the term that a size is in; 0 is the first. */
  indexAt(treeSize: number): number {
    const next = this.chain.findIndex(({ from_size }) => from_size > treeSize);
    return Math.max(0, (next < 0 ? this.chain.length : next) - 1);
  }

  /** Number of the term of a key; -1 for a key of another log. */
  indexOf(fingerprint: string): number {
    return this.chain.findIndex(({ key_id }) => key_id === fingerprint);
  }

  /** Whether this begins with all keys of an earlier chain, at the same sizes and over the same entries. */
  continues({ chain }: OperatorKeys): boolean {
    return chain.every((term, i) => {
      const own = this.chain[i];
      return (
        own?.key_id === term.key_id &&
        own.from_size === term.from_size &&
        own.rotation?.root_hash === term.rotation?.root_hash
      );
    });
  }

  /** The chain as it was when the log had `treeSize` entries: without the keys that came later. */
  upTo(treeSize: number): readonly OperatorTerm[] {
    const terms = this.chain.slice(0, this.indexAt(treeSize) + 1);
    return terms.map((term, i) => (i === terms.length - 1 ? { ...term, until_size: null } : term));
  }
}

/** The term of the first key of a log, as long as no other is known. */
function firstTerm({ fingerprint, algorithm, pem }: PublicKey): OperatorTerm {
  return { key_id: fingerprint, algorithm, public_key: pem, from_size: 1, until_size: null, rotation: null };
}

/** Whether names, sizes and keys of the terms fit together. */
function checkTerms(terms: readonly OperatorTerm[], keys: readonly PublicKey[]): void {
  const refuse = (i: number, why: string) => {
    throw inputError(`Operator key ${i + 1} of the chain ${why}.`);
  };
  if (!terms.length) throw inputError("The chain has no operator key.");
  for (const [i, term] of terms.entries()) {
    const { fingerprint, algorithm, pem } = keys[i]!;
    if (term.key_id !== fingerprint || term.algorithm !== algorithm || term.public_key !== pem)
      refuse(i, "is not the key that the chain says it is");
    if (keys.findIndex((key) => key.fingerprint === fingerprint) !== i) refuse(i, "was used before");
    if ((i === 0) !== (term.rotation === null)) refuse(i, "has no rotation, or has one although it is the first");
    if (term.from_size !== (terms[i - 1]?.until_size ?? 0) + 1) refuse(i, "does not begin where the one before ends");
    const isLast = i === terms.length - 1;
    if (isLast !== (term.until_size === null)) refuse(i, "ends although no key follows, or has no end");
    if (!isLast && term.until_size! < term.from_size) refuse(i, "ends before it begins");
  }
}

async function checkSignatures(
  old: PublicKey,
  key: PublicKey,
  tree_size: number,
  { root_hash, old_key_signature, new_key_signature }: TermRotation,
): Promise<void> {
  const statement = { old_fingerprint: old.fingerprint, fingerprint: key.fingerprint, tree_size, root_hash };
  const message = rotationMessage(statement);
  for (const [signer, signature] of [
    [old, old_key_signature],
    [key, new_key_signature],
  ] as const) {
    const bytes = decodeBase64(signature);
    if (!bytes || !(await verifySignature(signer, message, bytes)))
      throw new CairnlogError(
        "invalid-signature",
        `The rotation from operator key ${old.fingerprint} to ${key.fingerprint} is not signed by ${signer.fingerprint}.`,
      );
  }
}
