/**
 * The part of an entry's anchoring proof (`ots_proof`) that can be checked offline: whether it is a proof for this
 * entry, and what it commits to. No hash of the log covers the proof; only Bitcoin can confirm it.
 */
import { CairnlogError } from "../../base/error.js";
import { decodeBase64, toHex } from "../bytes/encoding.js";
import { MAX_OTS_BYTES, type OtsCommitment, type OtsFile, otsCommitments, parseOtsFile } from "./ots.js";

/** Number of base64 characters for three bytes. */
const BASE64_GROUP = 4;
/** Maximum number of commitments of one kind that are listed; a proof may have thousands. */
const MAX_LISTED = 8;

/** The result for a proof: its commitments or, unless `ok`, its faults. */
export interface AnchorVerdict {
  readonly ok: boolean;
  /** Sentences. */
  readonly detail: string;
}

/**
 * Checks that `proof`, which may come from anybody, is a detached `.ots` file in base64 over exactly `entryHash` (hex).
 * Does not check whether a named block has the given Merkle root, because that needs the block. Never throws.
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
