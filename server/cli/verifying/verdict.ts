/** The result of `cairnlog verify` for people: each check, and then who signed what, when, and in which log. */
import type { AttestationBundle, BundleVerdict, Entry } from "../../../engine/verify/index.js";
import { printableLine } from "../terminal/printable.js";
import { coloured, facts } from "../terminal/table.js";

/** The first line about a file. */
export const headline = (file: string, isValid: boolean): string =>
  `${printableLine(file)}: ${isValid ? coloured("green", "verified") : coloured("red", "NOT verified")}`;

/**
 * @param bundle what was verified, as it was read; of any form if the verdict is that it is not valid
 * @param log names the log: whose operator key it is, and how that is known
 */
export function bundleText(file: string, verdict: BundleVerdict, bundle: unknown, log: string): string {
  // The maker of the bundle chose some of the words.
  const lines = verdict.checks.map(({ name, ok, detail }) => {
    const mark = ok ? coloured("green", "ok    ") : coloured("red", "WRONG ");
    return `  ${mark} ${name}: ${printableLine(detail)}`;
  });
  const summary = verdict.valid ? [summaryOf(bundle as AttestationBundle, verdict, log)] : [];
  return [headline(file, verdict.valid), ...lines, ...summary].join("\n");
}

function summaryOf({ attestation, entry, proof }: AttestationBundle, { signed }: BundleVerdict, log: string): string {
  const { intent_statement: statement, type, signer_key_fingerprint: signer, signature_algorithm } = attestation;
  const whose = (isSigned: boolean | undefined) => (isSigned ? "signed" : "the log's word, not signed");
  return factsBelow([
    ["signed by", `${signer} (${signature_algorithm})`],
    ["as", `${type} (${whose(signed?.attestation_type)})`],
    ["statement", statement ? `${statement} (${whose(signed?.intent_statement)})` : null],
    ["when", `${entry.timestamp}, by the log's clock`],
    ["in", log],
    ["at", `entry number ${entry.id}; leaf ${proof.leaf_index} of the tree, counted from 0`],
    ["witnessed by", "nobody in this file (cairnlog receipt writes a proof with the signatures of witnesses)"],
  ]);
}

/** What a proof file that was verified says of its entry, its log and its witnesses. */
export function proofText(
  file: string,
  proof: {
    readonly entry: Entry | null;
    readonly leafIndex: number;
    readonly origin: string;
    readonly treeSize: number;
    readonly witnesses: readonly string[];
  },
): string {
  const { entry, leafIndex, origin, treeSize, witnesses } = proof;
  const { signer_key_fingerprint: signer, attestation_type: type, document_title: title } = entry?.payload ?? {};
  const stated = (value: unknown) => (typeof value === "string" ? value : null);
  return [
    headline(file, true),
    factsBelow([
      ["event", entry ? entry.event_type : "not in this file, which has the entry's hash alone"],
      ["document", stated(title)],
      // Whether the signature holds, an attestation file shows. Here it is what the log recorded.
      ["signed by", signer === undefined ? null : `${stated(signer)}, as the log recorded`],
      ["as", stated(type)],
      ["when", entry ? `${entry.timestamp}, by the log's clock` : null],
      ["in", `${origin}, a tree of ${treeSize} leaves`],
      ["at", `${entry ? `entry number ${entry.id}; ` : ""}leaf ${leafIndex} of the tree, counted from 0`],
      ["witnessed by", witnesses.length ? witnesses.join(", ") : "nobody"],
    ]),
  ].join("\n");
}

const factsBelow = (named: Parameters<typeof facts>[0]): string => facts(named).replace(/^/gm, "  ");
