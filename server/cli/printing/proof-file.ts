/** Proof files (c2sp.org/tlog-proof) in `cairnlog verify`: checked offline, by verifier keys or by a policy. */

import { isCut } from "../../../engine/verify/events/withheld.js";
import {
  CairnlogError,
  checkServiceEntry,
  type Entry,
  type EntryVerdict,
  type Policy,
  parseIJson,
  parsePolicy,
  parseTlogProof,
  parseVkey,
  rfc6962,
  type TlogProof,
  verifyTlogProof,
  withholdingFault,
} from "../../../engine/verify/index.js";
import { isObject } from "../../../engine/verify/json/shape.js";
import { readText } from "../files/files.js";
import { printableJson, printableLine } from "../terminal/printable.js";
import { exitCode, headline, proofText } from "./verdict.js";

/** What was found out about a proof file. */
interface ProofVerdict {
  readonly valid: boolean;
  /** `withheld` if everything holds but that the entry is there without its payload, and another one in the file withholds it. */
  readonly verdict: EntryVerdict;
  /** The entry by which the payload is withheld; null unless it is. */
  readonly withheld_by: number | null;
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
interface ProofOptions {
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
  const found = { valid: 0, withheld: 0, invalid: 0 };
  for (const file of files) {
    const verdict = await verifyProofFile(file, trusted, entryHash);
    printProof(file, verdict, json);
    found[verdict.verdict]++;
  }
  return exitCode({ wrong: found.invalid, withheld: found.withheld });
}

/** Prints the verdict on one proof. @returns the exit code */
export function printProof(file: string, verdict: ProofVerdict, json: boolean): number {
  console.log(json ? printableJson({ file, ...verdict }) : describe(file, verdict));
  return exitCode({ wrong: Number(verdict.verdict === "invalid"), withheld: Number(verdict.verdict === "withheld") });
}

function describe(file: string, verdict: ProofVerdict): string {
  const { valid, reason, entry, leaf_index, origin, tree_size, witnesses } = verdict;
  // Whoever made the file and the log chose some of the words.
  if (!valid) return `${headline(file, verdict.verdict)}\n  ${printableLine(reason ?? "")}`;
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
    return await verifyProof(readText(file), policy, entryHash);
  } catch (error) {
    const isExpected = error instanceof CairnlogError || (error instanceof Error && "syscall" in error);
    if (!isExpected) throw error;
    return refused((error as Error).message);
  }
}

/** @throws CairnlogError `invalid-input` for what is no proof file, or has an entry that does not hold */
async function verifyProof(text: string, policy: Policy, entryHash?: string): Promise<ProofVerdict> {
  const proof = parseTlogProof(text);
  const { entry, withholding } = entryIn(proof);
  const hash = entry?.entry_hash ?? entryHash;
  if (hash === undefined) return refused("The file does not have the entry: give its hash (--entry-hash).");
  if (entryHash !== undefined && entryHash !== hash) return refused("The entry in the file has another hash.");
  const verdict = await verifyTlogProof(proof, rfc6962.leafHash(new TextEncoder().encode(hash)), policy);
  if (!verdict.isValid) return refused(verdict.reason);
  const { origin, treeSize } = verdict.checkpoint;
  const witnesses = verdict.cosigned.map(({ witness }) => witness.name);
  const place = { entry, leaf_index: proof.index, origin, tree_size: treeSize, witnesses };
  if (!entry || !isCut(entry)) return { valid: true, verdict: "valid", withheld_by: null, reason: null, ...place };
  const by = withholding === undefined ? undefined : await verifyProof(withholding, policy);
  if (by && !by.valid) return refused(`The proof of the entry that withholds the payload does not hold: ${by.reason}`);
  if (by && by.origin !== origin) return refused("The entry that withholds the payload is in another log.");
  const fault = withholdingFault(entry, by?.entry ?? undefined);
  if (fault !== undefined) return refused(fault);
  const { id, payload } = by!.entry!;
  const reason = `The operator withholds this, as entry ${id} says: ${payload!.reason}`;
  return { valid: false, verdict: "withheld", withheld_by: id, reason, ...place };
}

/** The entry in the extra data, whose hashes hold, and the proof file of the one that withholds its payload. */
interface Extra {
  /** Null without extra data. */
  readonly entry: Entry | null;
  readonly withholding?: string | undefined;
}

/** @throws CairnlogError `invalid-input` */
function entryIn({ extra, index }: TlogProof): Extra {
  if (!extra) return { entry: null };
  const value = parseIJson(new TextDecoder().decode(extra));
  const { withholding, ...entry } = (isObject(value) ? value : {}) as unknown as Entry & { withholding?: unknown };
  // A digest of an algorithm that is not known here says nothing; of a payload that is not shown, the withholding entry decides.
  const problem = checkServiceEntry(entry).find(({ code }) => code !== "unknown-digest" && code !== "withheld");
  if (problem) throw new CairnlogError("invalid-input", `The entry in the file does not hold: ${problem.message}`);
  if (entry.id <= index)
    throw new CairnlogError("invalid-input", "The entry in the file has a lower id than its place in the tree allows.");
  return { entry, withholding: typeof withholding === "string" ? withholding : undefined };
}

const refused = (reason: string): ProofVerdict => ({
  ...{
    valid: false,
    verdict: "invalid" as const,
    withheld_by: null,
    reason,
    entry: null,
    leaf_index: null,
    origin: null,
    tree_size: null,
    witnesses: [],
  },
});
