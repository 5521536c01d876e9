/**
 * A witness (c2sp.org/tlog-witness): it cosigns a checkpoint of a log if it is consistent with all that it has cosigned
 * before. Then nobody can be shown another history of that log with this cosignature. It belongs to one thread.
 */
import { isUtf8 } from "node:buffer";
import { CairnlogError } from "../../engine/base/error.js";
import { checkNoteSignature } from "../../engine/crypto/keys/signatures.js";
import { fromHex } from "../../engine/verify/bytes/encoding.js";
import {
  type Checkpoint,
  cosignatureMessage,
  decodeBase64,
  encodeCosignature,
  formatNote,
  formatVkey,
  parseCheckpointText,
  parseNote,
  parseSignatureLines,
  parseTreeSize,
  rfc6962,
  type SignedNote,
  signatureLine,
  type VerifiedSignature,
  verifySignatures,
} from "../../engine/verify/index.js";
import { HttpError } from "../http/route/problems.js";
import type { WitnessedLog, WitnessedLogs } from "./logs.js";
import type { WitnessRow, WitnessRows } from "./rows.js";
import type { WitnessSigner } from "./signer.js";

// The body of `add-checkpoint` (c2sp.org/tlog-witness). All of it comes from an attacker.

/** A request that can be read. Nothing about it has been verified. */
interface AddCheckpoint {
  /** The size from which the proof starts. */
  readonly oldSize: number;
  /** At most 63 hashes of 32 bytes. */
  readonly proof: readonly Uint8Array[];
  readonly checkpoint: Checkpoint;
  readonly note: SignedNote;
}

const MAX_PROOF_LINES = 63;
const HASH_BYTES = 32;
const OLD = "old ";

/**
 * Reads a body: the line `old N`, hashes in base64 with a line each, an empty line, a checkpoint.
 * @throws HttpError `malformed-request`
 */
export function parseAddCheckpoint(body: Buffer): AddCheckpoint {
  if (!isUtf8(body)) throw malformed("The body is not UTF-8.");
  const text = body.toString("utf8");
  const end = text.indexOf("\n\n");
  if (end < 0) throw malformed("An empty line must separate the proof from the checkpoint.");
  // One more than a valid body has, so that a body of line feeds is not taken apart.
  const [first = "", ...hashes] = text.slice(0, end).split("\n", MAX_PROOF_LINES + 2);
  const oldSize = first.startsWith(OLD) ? parseTreeSize(first.slice(OLD.length)) : undefined;
  if (oldSize === undefined) throw malformed('The first line must be "old" and a tree size of at most 2^53 − 1.');
  if (hashes.length > MAX_PROOF_LINES) throw malformed(`A proof has at most ${MAX_PROOF_LINES} lines.`);
  const proof = hashes.map((line) => {
    const hash = decodeBase64(line);
    if (hash?.length !== HASH_BYTES) throw malformed("Each line of the proof must be 32 bytes in base64.");
    return hash;
  });
  const note = parseNote(text.slice(end + 2));
  if (!note) throw malformed("What follows the empty line must be a signed note.");
  const checkpoint = parseCheckpointText(note.text);
  if (!checkpoint) throw malformed("The note must be a checkpoint: an origin, a tree size and a root, a line each.");
  return { oldSize, proof, checkpoint, note };
}

/** @param sentence why the request cannot be read */
const malformed = (sentence: string): HttpError => new HttpError("malformed-request", sentence);

/** The answer to a request that is well formed and signed by its log. */
type Verdict =
  /** `line` is the cosignature, with its line feed. */
  | { readonly kind: "cosigned"; readonly line: string }
  /** The request does not start from the newest cosigned checkpoint, whose size is `size`. */
  | { readonly kind: "conflict"; readonly size: number };

/** Two checkpoints of one size with different roots, both signed by their log: the proof of a fork. */
interface Fork {
  readonly cosigned: string;
  /** The other one, with the signatures of the log that hold. */
  readonly refused: string;
}

/** A checkpoint behind the end of its log, signed by it. */
interface Resumption {
  /** The size at which the log has ended. */
  readonly end: number;
  readonly refused: string;
}

interface WitnessParts {
  /** A key that signs nothing else. */
  readonly signer: WitnessSigner;
  readonly rows: WitnessRows;
  readonly logs: WitnessedLogs;
  /** Seconds since 1970. */
  readonly now?: () => number;
  /** Called with evidence against a log. */
  readonly forked?: (log: WitnessedLog, fork: Fork) => void;
  readonly resumed?: (log: WitnessedLog, resumption: Resumption) => void;
}

/** The newest cosignature of a log. */
interface Fresh {
  readonly size: number;
  readonly text: string;
  readonly time: number;
  readonly line: string;
}

export class Witness {
  readonly #parts: WitnessParts;
  readonly #now: () => number;
  #logs: WitnessedLogs;
  /** The newest cosignature of each log, by origin: at most one for each log in the file. */
  readonly #fresh = new Map<string, Fresh>();

  constructor(parts: WitnessParts) {
    this.#parts = parts;
    this.#now = parts.now ?? (() => Math.floor(Date.now() / 1000));
    this.#logs = parts.logs;
  }

  /** The verifier key of the cosignatures. */
  get vkey(): string {
    return formatVkey(this.#parts.signer.key);
  }

  /** The logs whose checkpoints are cosigned. Rows of others stay, for the day when their log is named again. */
  get logs(): WitnessedLogs {
    return this.#logs;
  }

  set logs(logs: WitnessedLogs) {
    this.#logs = logs;
  }

  /** The newest cosigned checkpoint of a log. */
  cosigned(origin: string): WitnessRow | undefined {
    return this.#parts.rows.get(origin);
  }

  /**
   * Cosigns a checkpoint, or says from which size on a proof is needed. The cosignature is on disk when this resolves.
   * @throws CairnlogError `not-found` for a log that is not in the file; `forbidden` if no key of the log signed it or a
   *   signature does not hold; `frozen` for one behind the end of its log; `invalid-proof`; `storage-full`, `storage-failed`, `signer-unavailable`.
   *   HttpError `malformed-request` if the checkpoint is smaller than the old size, or has an origin that the key cannot sign
   */
  async addCheckpoint({ oldSize, proof, checkpoint, note }: AddCheckpoint): Promise<Verdict> {
    const log = this.#logs.get(checkpoint.origin);
    if (!log) throw new CairnlogError("not-found", "This witness does not cosign for a log of this origin.");
    const signatures = await verifySignatures(note, log.keys, checkNoteSignature);
    if (!signatures) throw new CairnlogError("forbidden", "A signature of the log does not hold.");
    if (signatures.length === 0) throw new CairnlogError("forbidden", "No key of the log signed this checkpoint.");
    const refused = formatNote(
      note.text,
      signatures.map(({ line }) => line),
    );
    if (log.end !== null && checkpoint.treeSize > log.end) {
      this.#parts.resumed?.(log, { end: log.end, refused });
      throw new CairnlogError("frozen", `This log has ended at size ${log.end}: nothing behind that is cosigned.`);
    }
    if (oldSize > checkpoint.treeSize) throw malformed("The checkpoint is smaller than the old size.");
    const known = this.#parts.rows.get(log.origin);
    const size = known?.treeSize ?? 0;
    if (oldSize !== size) return { kind: "conflict", size };
    this.#requireConsistent(log, known, checkpoint, proof, refused);
    return this.#cosign(known, checkpoint, note.text, signatures);
  }

  /** @throws CairnlogError `invalid-proof` */
  #requireConsistent(
    log: WitnessedLog,
    known: WitnessRow | undefined,
    { treeSize, rootHash }: Checkpoint,
    proof: readonly Uint8Array[],
    refused: string,
  ): void {
    const claim = {
      fromSize: known?.treeSize ?? 0,
      toSize: treeSize,
      fromRoot: known ? fromHex(known.rootHash) : rfc6962.EMPTY_ROOT,
      toRoot: fromHex(rootHash),
      proof,
    };
    if (rfc6962.verifyConsistency(claim)) return;
    if (known?.treeSize !== treeSize || known.rootHash === rootHash)
      throw new CairnlogError(
        "invalid-proof",
        "The proof does not show that the checkpoint is consistent with the one that was cosigned.",
      );
    this.#parts.forked?.(log, { cosigned: known.note, refused });
    throw new CairnlogError("invalid-proof", "A checkpoint of this size with another root was cosigned.");
  }

  async #cosign(
    known: WitnessRow | undefined,
    checkpoint: Checkpoint,
    text: string,
    signatures: readonly VerifiedSignature[],
  ): Promise<Verdict> {
    const { origin } = checkpoint;
    const time = this.#now();
    // Anybody can send the newest checkpoint again. That costs one flush of the disk a second, not one a request.
    const fresh = this.#fresh.get(origin);
    if (fresh?.text === text && fresh.time === time && fresh.size === known?.treeSize)
      return { kind: "cosigned", line: fresh.line };
    const line = await this.#sign(time, text);
    const lines = [...signatures.map((own) => own.line), line];
    if (!(await this.#parts.rows.replace(known, { ...checkpoint, note: formatNote(text, lines) }))) {
      // Another request came first. What was signed here is forgotten: nobody has seen it.
      return { kind: "conflict", size: this.#parts.rows.get(origin)?.treeSize ?? 0 };
    }
    this.#fresh.set(origin, { size: checkpoint.treeSize, text, time, line });
    return { kind: "cosigned", line };
  }

  /** A cosignature, verified. @throws CairnlogError `signer-unavailable`; HttpError `malformed-request` */
  async #sign(time: number, text: string): Promise<string> {
    const { key, sign } = this.#parts.signer;
    const message = cosignatureMessage(key, time, text);
    if (!message) throw malformed("ML-DSA-44 cannot sign for an origin of more than 255 bytes.");
    const line = signatureLine(key.name, fromHex(key.id), encodeCosignature({ time, signature: await sign(message) }));
    const signatures = parseSignatureLines(line)!;
    if (!(await verifySignatures({ text, signatures }, [key], checkNoteSignature))?.length)
      throw new CairnlogError("signer-unavailable", "The key of the witness cannot sign.");
    return line;
  }
}
