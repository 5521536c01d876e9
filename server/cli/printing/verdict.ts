/** The result of `cairnlog verify` for people: each check, and then who signed what, when, and in which log. */
import type {
  AttestationBundle,
  BundleCheck,
  BundleVerdict,
  Entry,
  EntryVerdict,
  PublicKey,
} from "../../../engine/verify/index.js";
import { printableLine } from "../terminal/printable.js";
import { coloured, facts } from "../terminal/table.js";

const WORDS = {
  valid: ["green", "verified"],
  withheld: ["yellow", "withheld"],
  invalid: ["red", "NOT verified"],
} as const;

/** The first line about a file. */
export function headline(file: string, verdict: EntryVerdict): string {
  const [colour, word] = WORDS[verdict];
  return `${printableLine(file)}: ${coloured(colour, word)}`;
}

/** The exit code if nothing is wrong, but something is withheld. */
export const WITHHELD_EXIT_CODE = 3;

/** The exit code of verdicts: something that does not hold outweighs what is withheld. */
export const exitCode = ({ wrong, withheld }: { readonly wrong: number; readonly withheld: number }): number =>
  wrong ? 1 : withheld ? WITHHELD_EXIT_CODE : 0;

/** The line about a receipt that does not hold here, and does not count, because another one holds. */
export const passedOver = (file: string, { checks }: BundleVerdict): string =>
  `${printableLine(file)}: passed over: ${printableLine(firstWrong(checks))}`;

const firstWrong = (checks: readonly BundleCheck[]): string => checks.find(({ ok }) => !ok)?.detail ?? "";

/** A log: the key that signs its heads, its address if that is known, and words for it. */
export interface Trusted {
  readonly key: PublicKey;
  readonly url: string | null;
  readonly log: string;
}

/** What an attestation says that holds, for people and for programs. */
interface Summary {
  readonly text: string;
  /** Who signed, by what name the caller knows them, and whether they signed the type. */
  readonly brief: string;
  readonly json: Readonly<Record<keyof typeof NO_SUMMARY, unknown>>;
}

/** The members of a line of JSON about an attestation that does not hold. */
export const NO_SUMMARY = {
  who: null,
  as: null,
  when: null,
  where: null,
  witnessed_by: null,
  key_status: null,
  private_title: null,
};

/** What was looked at beside the attestation itself. */
interface Beside {
  readonly log: Trusted;
  /** Names of the witnesses; null if no proof file was given. */
  readonly witnesses: readonly string[] | null;
  /** Whether the caller said who may have signed. */
  readonly isNamed: boolean;
  readonly isOnline: boolean;
}

/** @param summary of a verdict that holds */
export function bundleReport(file: string, { verdict, checks }: BundleVerdict, summary: Summary | null): string {
  // The maker of the bundle chose some of the words.
  const lines = checks.map(({ name, ok, detail }) => {
    const mark = ok ? coloured("green", "ok    ") : name === "withheld" ? "--    " : coloured("red", "WRONG ");
    return `  ${mark} ${name}: ${printableLine(detail)}`;
  });
  return [headline(file, verdict), ...lines, ...(summary ? [summary.text] : [])].join("\n");
}

/** One line: who signed, or the first thing that is wrong. */
export function briefText(file: string, { verdict, checks }: BundleVerdict, summary: Summary | null): string {
  return `${headline(file, verdict)}: ${printableLine(summary?.brief ?? firstWrong(checks))}`;
}

/** The last line about a directory. */
export function countText(
  count: number,
  { wrong, withheld }: { readonly wrong: number; readonly withheld: number },
  isNamed: boolean,
  isOnline: boolean,
): string {
  const files = `${count} ${count === 1 ? "file" : "files"}`;
  const less = [wrong && `${wrong} NOT verified`, withheld && `${withheld} withheld`].filter(Boolean).join(", ");
  const verdict = less ? `${less} of ${files}.` : `${files} verified.`;
  return [verdict, ...unasked(isNamed, isOnline)].join(" ");
}

/** What was not looked at, in sentences. */
const unasked = (isNamed: boolean, isOnline: boolean): readonly string[] => [
  ...(isNamed ? [] : ["Whose key it is that signed was not looked at: name who must have signed by --signer."]),
  ...(isOnline ? [] : ["Whether the key was revoked was not looked at: --online asks."]),
];

/** Names as a part of a sentence. */
export const namesOf = (witnesses: readonly string[]): string => witnesses.join(", ") || "nobody";

/** What an attestation that holds says. */
export function summaryOf(
  { attestation, entry, proof, private_title }: AttestationBundle,
  { signed, checks }: BundleVerdict,
  { log, witnesses, isNamed, isOnline }: Beside,
): Summary {
  const { intent_statement: statement, type, signer_key_fingerprint: fingerprint, signature_algorithm } = attestation;
  const whose = (isSigned: boolean | undefined) => (isSigned ? "signed" : "the log's word, not signed");
  const detailOf = (name: BundleCheck["name"]) => checks.find((check) => check.name === name)?.detail ?? null;
  const lines = factsBelow([
    ["title", private_title ? `${private_title.title} (private: the log has its salted hash)` : null],
    ["signed by", `${fingerprint} (${signature_algorithm})`],
    ["as", `${type} (${whose(signed?.attestation_type)})`],
    ["statement", statement ? `${statement} (${whose(signed?.intent_statement)})` : null],
    ["when", `${entry.timestamp}, by the log's clock`],
    ["in", log.log],
    ["at", `entry number ${entry.id}; leaf ${proof.leaf_index} of the tree, counted from 0`],
    [
      "witnessed by",
      witnesses
        ? namesOf(witnesses)
        : "nobody in this file (cairnlog receipt FILE writes a proof with the signatures of witnesses)",
    ],
  ]);
  const json = {
    who: { fingerprint, algorithm: signature_algorithm, is_named: isNamed },
    as: { type, is_signed: signed?.attestation_type ?? false, statement: statement ?? null },
    when: entry.timestamp,
    where: { url: log.url, operator_key: log.key.fingerprint, log_entry_id: entry.id, leaf_index: proof.leaf_index },
    witnessed_by: witnesses,
    key_status: detailOf("key"),
    private_title: private_title?.title ?? null,
  };
  const brief = `${detailOf("signer") ?? `Signed by ${fingerprint}.`} As ${type}, ${entry.timestamp}.`;
  return { text: [lines, ...unasked(isNamed, isOnline).map((line) => `  ${line}`)].join("\n"), brief, json };
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
    headline(file, "valid"),
    factsBelow([
      ["event", entry ? entry.event_type : "not in this file, which has the entry's hash alone"],
      ["document", stated(title)],
      // Whether the signature holds, an attestation file shows. Here it is what the log recorded.
      ["signed by", signer === undefined ? null : `${stated(signer)}, as the log recorded`],
      ["as", stated(type)],
      [
        "when",
        entry && `${entry.timestamp}, ${entry.chain_version === 2 ? "by the log's clock" : "which no hash covers"}`,
      ],
      ["in", `${origin}, a tree of ${treeSize} leaves`],
      ["at", `${entry ? `entry number ${entry.id}; ` : ""}leaf ${leafIndex} of the tree, counted from 0`],
      ["witnessed by", witnesses.length ? witnesses.join(", ") : "nobody"],
    ]),
  ].join("\n");
}

const factsBelow = (named: Parameters<typeof facts>[0]): string => facts(named).replace(/^/gm, "  ");
