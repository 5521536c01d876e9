/**
 * The newest checkpoint: the newest tree head, signed once more as a note. It is made on demand, once for each size,
 * and only for a size that is on disk, so no crash can make the operator sign another root for that size.
 */
import { CairnlogError } from "../../base/error.js";
import { importPublicKey } from "../../crypto/keys/spki.js";
import { type OperatorKey, signatures } from "../../crypto/signer/operator-key.js";
import { HASH } from "../../store/schema/schema.js";
import { type PublicKey, parsePublicKey } from "../../verify/keys/publickey.js";
import { noteKeyId } from "../../verify/note/key.js";
import { checkpointText, signedNote } from "../../verify/note/note.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import type { Log } from "../log.js";
import { TILE_WIDTH } from "../tree/tree.js";
import type { LogView } from "../view/view.js";

/** Number of hexadecimal digits of the operator's fingerprint in the default name of a log. */
const NAME_DIGITS = 16;

/** The default name of a log. */
export function defaultLogName(operatorFingerprint: string): string {
  const digits = operatorFingerprint.slice("sha256:".length);
  return `cairnlog/${digits.slice(0, NAME_DIGITS)}`;
}

export class Checkpoints {
  readonly #log: Pick<Log, "treeHead">;
  readonly #operator: Pick<OperatorKey, "public" | "sign">;
  readonly #key: PublicKey;
  readonly #name: string;
  #newest: { readonly treeSize: number; readonly note: Promise<string> } | null = null;

  /** @param name a name that `isNoteName` accepts */
  constructor(log: Pick<Log, "treeHead">, operator: Pick<OperatorKey, "public" | "sign">, name: string) {
    this.#log = log;
    this.#operator = operator;
    this.#key = parsePublicKey(operator.public.pem);
    this.#name = name;
  }

  /**
   * The checkpoint of the current size.
   * @throws CairnlogError `not-found` if the log has no head yet, or the operator key is not Ed25519;
   *   `signer-unavailable`
   */
  async newest(): Promise<string> {
    if (this.#key.algorithm !== "ed25519")
      throw new CairnlogError(
        "not-found",
        "This log has no checkpoints: its operator key is not Ed25519, the only type that notes support. GET /api/v1/log/sth gives its tree head.",
      );
    const head = this.#log.treeHead();
    if (!head)
      throw new CairnlogError("not-found", "There is no tree head of the current size, so there is no checkpoint.");
    if (this.#newest?.treeSize !== head.tree_size) {
      const made = { treeSize: head.tree_size, note: this.#sign(head) };
      this.#newest = made;
      // A failure is not cached: the next call tries again.
      made.note.catch(() => {
        if (this.#newest === made) this.#newest = null;
      });
    }
    return this.#newest.note;
  }

  async #sign({ tree_size, root_hash }: TreeHead): Promise<string> {
    const text = checkpointText({ origin: this.#name, treeSize: tree_size, rootHash: root_hash });
    let signature: Buffer;
    try {
      const key = importPublicKey(this.#operator.public.pem);
      signature = await signatures(this.#operator, key, [Buffer.from(text)]);
    } catch (cause) {
      throw new CairnlogError("signer-unavailable", "The operator key cannot sign a checkpoint.", { cause });
    }
    return signedNote(text, this.#name, noteKeyId(this.#name, this.#key), signature);
  }
}

// Entry bundles (c2sp.org/tlog-tiles, "Log entries"): the data of up to 256 leaves, each with its length before it. The
// data of a leaf is the entry's `entry_hash` as 64 lower-case hexadecimal characters, so an entry takes 66 bytes.

const LENGTH_BYTES = 2;
const LEAF_BYTES = 2 * HASH;

/** The first `width` (1 to 256) entries of bundle `index`; undefined if the log has not as many. */
export function entryBundle(log: Pick<LogView, "digests">, index: number, width: number): Buffer | undefined {
  const first = index * TILE_WIDTH;
  const isBundle = width >= 1 && width <= TILE_WIDTH && Number.isSafeInteger(first + width);
  const digests = isBundle ? log.digests(first, first + width) : undefined;
  if (!digests) return undefined;
  const leaves = digests.toString("hex");
  const bundle = Buffer.allocUnsafeSlow(width * (LENGTH_BYTES + LEAF_BYTES));
  for (let i = 0; i < width; i++) {
    const at = bundle.writeUInt16BE(LEAF_BYTES, i * (LENGTH_BYTES + LEAF_BYTES));
    bundle.write(leaves.slice(i * LEAF_BYTES, (i + 1) * LEAF_BYTES), at, "latin1");
  }
  return bundle;
}
