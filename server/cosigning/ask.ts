/**
 * One request to a witness (c2sp.org/tlog-witness). The witness is not trusted: every answer is limited in time and size,
 * and a cosignature counts only if it holds. Redirects are not followed.
 */
import { checkNoteSignature } from "../../engine/crypto/keys/signatures.js";
import {
  encodeBase64,
  type NoteKey,
  parseNote,
  parseSignatureLines,
  parseTreeSize,
  verifySignatures,
} from "../../engine/verify/index.js";
import { exchange } from "../outgoing/exchange.js";

/** Cosignatures of 5 kB, as of the largest key types, fit many times. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** The time of a cosignature may be this much ahead of our clock, in seconds. */
const MAX_AHEAD_S = 300;

/** Why a witness gave no cosignature; completes "The witness …". */
export class WitnessError extends Error {}

/** What a witness is asked. */
interface Question {
  /** Address of its submission prefix, without a slash at its end. */
  readonly url: string;
  /** What its cosignatures are verified with. */
  readonly key: NoteKey;
  /** The checkpoint, signed by the log. */
  readonly note: string;
  /** The size from which the proof starts. */
  readonly oldSize: number;
  /** At most 63 hashes of 32 bytes. */
  readonly proof: readonly Uint8Array[];
}

/** What a witness answers. */
type WitnessAnswer =
  /** A cosignature that holds: the line with its line feed, and its time in seconds since 1970. */
  | { readonly kind: "cosigned"; readonly line: string; readonly time: number }
  /** The witness wants a proof from this size on. */
  | { readonly kind: "conflict"; readonly size: number };

/** Asks a witness. @throws WitnessError, also when `signal` is aborted */
export async function askWitness(question: Question, timeoutMs: number, signal: AbortSignal): Promise<WitnessAnswer> {
  const { url, key, note, oldSize, proof } = question;
  const lines = proof.map((hash) => `${encodeBase64(hash)}\n`);
  const body = Buffer.from(`old ${oldSize}\n${lines.join("")}\n${note}`);
  const answer = await exchange(
    { url: new URL(`${url}/add-checkpoint`), headers: { "content-type": "text/plain; charset=utf-8" }, body },
    { timeoutMs, maxBytes: MAX_ANSWER_BYTES, signal },
    (reason, options) => new WitnessError(reason, options),
  );
  if (answer.status === 409) return { kind: "conflict", size: conflictSize(answer.body, oldSize) };
  if (answer.status !== 200) throw new WitnessError(`answered with status ${answer.status}${meaning(answer.status)}`);
  return cosignatureIn(answer.body, note, key);
}

/** The newest cosignature by the key in an answer. Lines of other keys are passed over. */
async function cosignatureIn(body: Buffer, note: string, key: NoteKey): Promise<WitnessAnswer> {
  const lines = parseSignatureLines(body.toString("utf8"));
  if (!lines) throw new WitnessError("answered with something else than signature lines");
  const signatures = await verifySignatures(
    { text: parseNote(note)!.text, signatures: lines },
    [key],
    checkNoteSignature,
  );
  if (!signatures) throw new WitnessError("answered with a cosignature that does not hold");
  const newest = signatures.toSorted((a, b) => b.time! - a.time!)[0];
  if (!newest) throw new WitnessError("did not sign with its key");
  const time = newest.time!;
  // With ML-DSA-44 that says nothing about other checkpoints. A witness must not leave it out.
  if (time === 0) throw new WitnessError("signed without a time");
  if (time > Date.now() / 1000 + MAX_AHEAD_S) throw new WitnessError("signed with a time that has not come yet");
  return { kind: "cosigned", line: newest.line, time };
}

/** @throws WitnessError unless the body is another size than the one that was sent */
function conflictSize(body: Buffer, oldSize: number): number {
  const size = parseTreeSize(body.toString("latin1").replace(/\n$/, ""));
  // Earlier versions of the specification have this status for another root of the same size, too.
  if (size === undefined || size === oldSize)
    throw new WitnessError("answered with a conflict (409), and not with the size from which it would go on");
  return size;
}

/** What a status means that an operator can do something about. */
function meaning(status: number): string {
  if (status === 404) return ": it does not know this log";
  if (status === 403) return ": it knows this log with another key";
  if (status === 422) return ": for it, the checkpoint contradicts what it has cosigned";
  return "";
}
