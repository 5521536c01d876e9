/** Proof files (c2sp.org/tlog-proof) in `cairnlog verify`: checked offline, by verifier keys or by a policy. */
import {
  CairnlogError,
  checkEntry,
  type Entry,
  type Policy,
  parseIJson,
  parsePolicy,
  parseTlogProof,
  parseVkey,
  rfc6962,
  type TlogProof,
  verifyTlogProof,
} from "../../../engine/verify/index.js";
import { readText } from "../files/files.js";
import { printableJson, printableLine } from "../terminal/printable.js";
import { headline, proofText } from "./verdict.js";

/** What was found out about a proof file. */
export interface ProofVerdict {
  readonly valid: boolean;
  /** Why not; null if it is valid. */
  readonly reason: string | null;
  /** The entry, if the file has it; null otherwise, or if it is not valid. */
  readonly entry: Entry | null;
  readonly leaf_index: number | null;
  readonly origin: string | null;
  readonly tree_size: number | null;
  /** Names in the policy of the witnesses that cosigned. */
  readonly witnesses: readonly string[];
}

/** The options: which keys are trusted, and in which form to answer. */
export interface ProofOptions {
  readonly vkey: string | undefined;
  /** Path of a policy file. */
  readonly policy: string | undefined;
  readonly entryHash: string | undefined;
  readonly json: boolean;
}

/** Prints a verdict on each proof file. @returns the exit code. @throws CairnlogError as `trustedBy` does */
export async function verifyProofFiles(
  files: readonly string[],
  { vkey, policy, entryHash, json }: ProofOptions,
): Promise<number> {
  const trusted = trustedBy(vkey, policy);
  let holds = true;
  for (const file of files) {
    const verdict = await verifyProofFile(file, trusted, entryHash);
    if (printProof(file, verdict, json)) holds = false;
  }
  return holds ? 0 : 1;
}

/** Prints the verdict on one proof. @returns the exit code */
export function printProof(file: string, verdict: ProofVerdict, json: boolean): number {
  console.log(json ? printableJson({ file, ...verdict }) : describe(file, verdict));
  return verdict.valid ? 0 : 1;
}

function describe(file: string, verdict: ProofVerdict): string {
  const { valid, reason, entry, leaf_index, origin, tree_size, witnesses } = verdict;
  // Whoever made the file and the log chose some of the words.
  if (!valid) return `${headline(file, false)}\n  ${printableLine(reason ?? "")}`;
  return proofText(file, { entry, leafIndex: leaf_index!, origin: origin!, treeSize: tree_size!, witnesses });
}

/** Reads which keys are trusted: those of a policy, or that of one log without witnesses. @throws CairnlogError `invalid-key`, `invalid-input` */
export function trustedBy(vkey: string | undefined, policyFile: string | undefined): Policy {
  const policy: Policy =
    policyFile === undefined
      ? { logs: [], witnesses: [], groups: [], quorum: null }
      : parsePolicy(readText(policyFile));
  return vkey === undefined ? policy : { ...policy, logs: [...policy.logs, { key: parseVkey(vkey), url: null }] };
}

/** Whether a proof file shows that a log of the policy has an entry. @param entryHash of the entry, if the file lacks it */
export async function verifyProofFile(file: string, policy: Policy, entryHash?: string): Promise<ProofVerdict> {
  try {
    const proof = parseTlogProof(readText(file));
    const entry = entryIn(proof);
    const hash = entry?.entry_hash ?? entryHash;
    if (hash === undefined) return refused("The file does not have the entry: give its hash (--entry-hash).");
    if (entryHash !== undefined && entryHash !== hash) return refused("The entry in the file has another hash.");
    const verdict = await verifyTlogProof(proof, rfc6962.leafHash(new TextEncoder().encode(hash)), policy);
    if (!verdict.isValid) return refused(verdict.reason);
    const { origin, treeSize } = verdict.checkpoint;
    const witnesses = verdict.cosigned.map(({ witness }) => witness.name);
    return { valid: true, reason: null, entry, leaf_index: proof.index, origin, tree_size: treeSize, witnesses };
  } catch (error) {
    const isExpected = error instanceof CairnlogError || (error instanceof Error && "syscall" in error);
    if (!isExpected) throw error;
    return refused((error as Error).message);
  }
}

/** The entry in the extra data, whose hashes hold; null without extra data. @throws CairnlogError `invalid-input` */
function entryIn({ extra }: TlogProof): Entry | null {
  if (!extra) return null;
  const entry = parseIJson(new TextDecoder().decode(extra));
  // A digest of an algorithm that is not known here says nothing.
  const problem = checkEntry(entry as Entry).find(({ code }) => code !== "unknown-digest");
  if (problem) throw new CairnlogError("invalid-input", `The entry in the file does not hold: ${problem.message}`);
  return entry as Entry;
}

const refused = (reason: string): ProofVerdict => ({
  ...{ valid: false, reason, entry: null, leaf_index: null, origin: null, tree_size: null, witnesses: [] },
});
