/** The body of `add-checkpoint` (c2sp.org/tlog-witness). All of it comes from an attacker. */
import { isUtf8 } from "node:buffer";
import {
  type Checkpoint,
  decodeBase64,
  parseCheckpointText,
  parseNote,
  parseTreeSize,
  type SignedNote,
} from "../../engine/verify/index.js";
import { HttpError } from "../http/route/problems.js";

/** A request that can be read. Nothing about it has been verified. */
export interface AddCheckpoint {
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
export const malformed = (sentence: string): HttpError => new HttpError("malformed-request", sentence);
