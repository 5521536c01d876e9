/**
 * Proof files (c2sp.org/tlog-proof): everything that shows offline that a log has an entry, and that witnesses have seen
 * the log with it. A text: a header, extra data, the index, the inclusion proof, an empty line, the checkpoint.
 */
import { type CairnlogError, inputError } from "../../base/error.js";
import { decodeBase64, encodeBase64, fromHex } from "../bytes/encoding.js";
import type { NoteKey } from "../note/key.js";
import { parseTreeSize } from "../note/note.js";
import type { SignatureCheck } from "../note/verify.js";
import { type Policy, type PolicyVerdict, verifyByPolicy } from "./policy.js";
import { verifyInclusion } from "./rfc6962.js";

/** The content of a proof file. */
export interface TlogProof {
  /** Number of the entry in the log, from 0. */
  readonly index: number;
  /** What the application added; null without it. Nothing signs it. */
  readonly extra: Uint8Array | null;
  /** Hashes of 32 bytes, from the leaf's sibling upwards. */
  readonly hashes: readonly Uint8Array[];
  /** The checkpoint, a note with its signatures. */
  readonly checkpoint: string;
}

/** What a proof was found to be. */
export type TlogProofVerdict =
  | ({ readonly isValid: true } & PolicyVerdict)
  /** `reason` is a sentence. */
  | { readonly isValid: false; readonly reason: string };

const HEADER = "c2sp.org/tlog-proof@v1";
const MAX_CHARACTERS = 2 * (1 << 20);
/** A tree of 2^63 leaves has no longer proof. */
const MAX_HASHES = 63;
const HASH_BYTES = 32;

/** The text of a proof file. The members are taken to be well formed: they are our own or have been parsed. */
export function formatTlogProof({ index, extra, hashes, checkpoint }: TlogProof): string {
  const lines = [
    HEADER,
    ...(extra ? [`extra ${encodeBase64(extra)}`] : []),
    `index ${index}`,
    ...hashes.map((hash) => encodeBase64(hash)),
  ];
  return `${lines.join("\n")}\n\n${checkpoint}`;
}

/**
 * Reads a proof file. The text may come from an attacker; nothing is verified here.
 * @throws CairnlogError `invalid-input`
 */
export function parseTlogProof(text: string): TlogProof {
  if (typeof text !== "string" || text.length > MAX_CHARACTERS) throw invalid("It is too long.");
  const end = text.indexOf("\n\n");
  if (end < 0) throw invalid("An empty line must separate the proof from the checkpoint.");
  // As many lines as the longest proof has, and one more.
  const lines = text.slice(0, end).split("\n", MAX_HASHES + 4);
  if (lines.shift() !== HEADER) throw invalid(`Its first line must be ${HEADER}.`);
  const extra = lines[0]?.startsWith("extra ") ? decodeBase64(lines.shift()!.slice("extra ".length)) : null;
  if (extra === undefined) throw invalid("Its extra data must be base64.");
  const line = lines.shift();
  const index = line?.startsWith("index ") ? parseTreeSize(line.slice("index ".length)) : undefined;
  if (index === undefined) throw invalid("It must name the index of an entry.");
  if (lines.length > MAX_HASHES) throw invalid(`It has more than ${MAX_HASHES} hashes.`);
  const hashes = lines.map((one) => {
    const hash = decodeBase64(one);
    if (hash?.length !== HASH_BYTES) throw invalid("Each hash must be 32 bytes in base64.");
    return hash;
  });
  return { index, extra, hashes, checkpoint: text.slice(end + 2) };
}

/**
 * Whether a proof shows that the leaf is in a log of the policy, with a quorum of its witnesses.
 * @param leafHash 32 bytes: `rfc6962.leafHash` of the leaf's data, which the caller computes from the entry itself
 * @param logs the keys of logs, if others are known than those of the policy
 */
export async function verifyTlogProof(
  { index, hashes, checkpoint: note }: TlogProof,
  leafHash: Uint8Array,
  policy: Policy,
  logs?: readonly NoteKey[],
  check?: SignatureCheck,
): Promise<TlogProofVerdict> {
  const verdict = await verifyByPolicy(note, policy, logs, check);
  if (!verdict)
    return refused("The checkpoint is not validly signed by a log of the policy, or a cosignature does not hold.");
  const { treeSize, rootHash } = verdict.checkpoint;
  if (!verifyInclusion({ leafHash, leafIndex: index, treeSize, proof: hashes, rootHash: fromHex(rootHash) }))
    return refused(`The proof does not show that the entry is number ${index} of the ${treeSize} in the checkpoint.`);
  if (!verdict.hasQuorum) return refused("The witnesses that cosigned the checkpoint are not a quorum of the policy.");
  return { isValid: true, ...verdict };
}

const refused = (reason: string): TlogProofVerdict => ({ isValid: false, reason });

const invalid = (why: string): CairnlogError => inputError(`This is not a proof file. ${why}`);
