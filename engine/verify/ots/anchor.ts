/**
 * The anchoring proof of an entry (`ots_proof`), as far as it can be checked offline: that it is one, for this entry,
 * and what it comes down to. No hash of the log covers it; it stands or falls by Bitcoin alone.
 */
import { CairnlogError } from "../../error.js";
import { decodeBase64, toHex } from "../encoding.js";
import { MAX_OTS_BYTES, type OtsCommitment, type OtsFile, otsCommitments, parseOtsFile } from "./ots.js";

/** Bytes that base64 makes of three. */
const BASE64_GROUP = 4;
/** Commitments of one kind that are spelt out; a proof may hold thousands. */
const MAX_LISTED = 8;

/** What there is to say of a proof: what it commits to, or, unless `ok`, what is wrong with it. */
export interface AnchorVerdict {
  readonly ok: boolean;
  /** Sentences. */
  readonly detail: string;
}

/**
 * Checks that `proof`, which may come from anybody, is a detached `.ots` file in base64 over exactly `entryHash` (hex).
 * Whether a block that it names has the Merkle root it gives is not checked: that takes the block. Never throws.
 */
export function checkOtsProof(proof: string, entryHash: string): AnchorVerdict {
  const bytes = proof.length <= (MAX_OTS_BYTES / 3 + 1) * BASE64_GROUP ? decodeBase64(proof) : undefined;
  if (bytes === undefined) return { ok: false, detail: "The anchoring proof is not strict base64 of a proof's size." };
  let file: OtsFile;
  try {
    file = parseOtsFile(bytes);
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    return { ok: false, detail: error.message };
  }
  if (file.hash !== "sha256" || toHex(file.timestamp.message) !== entryHash)
    return { ok: false, detail: "The anchoring proof is about another digest than the entry's hash." };
  return { ok: true, detail: describe(otsCommitments(file.timestamp)) };
}

function describe(commitments: readonly OtsCommitment[]): string {
  const texts = (pick: (commitment: OtsCommitment) => string[]) => listed([...new Set(commitments.flatMap(pick))]);
  const blocks = texts((each) =>
    each.kind === "bitcoin" ? [`block ${each.height}, if its Merkle root is ${each.merkleRoot}`] : [],
  );
  const calendars = texts((each) => (each.kind === "pending" ? [each.uri] : []));
  const unknown = texts((each) => (each.kind === "unknown" ? [each.tag] : []));
  return [
    "The anchoring proof is for the entry's hash.",
    blocks
      ? `It shows that the entry is older than Bitcoin ${blocks}: compare that with the block, for it cannot be checked offline.`
      : "It names no Bitcoin block, so it proves nothing yet.",
    ...(calendars ? [`Promised by calendars: ${calendars}.`] : []),
    ...(unknown ? [`Attestations of unknown kinds: ${unknown}.`] : []),
  ].join(" ");
}

function listed(texts: readonly string[]): string {
  const more = texts.length - MAX_LISTED;
  return [...texts.slice(0, MAX_LISTED), ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
}
