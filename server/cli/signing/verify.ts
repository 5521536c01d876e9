/** `cairnlog verify`: checks files and their .attestation.json offline, against a pinned operator key. */
import { readFileSync } from "node:fs";
import { CairnlogError } from "../../../engine/error.js";
import {
  type AttestationBundle,
  type BundleVerdict,
  compositeHash,
  type PublicKey,
  parseIJson,
  parsePublicKey,
  verifyBundle,
} from "../../../engine/verify/index.js";
import { printableJson, printableLine } from "../terminal/printable.js";
import { readArguments, required, type Subcommand, UsageError } from "../usage.js";
import { hashFile } from "./file-hash.js";

const OPTIONS = {
  "operator-key": { type: "string" },
  attestation: { type: "string" },
  composite: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
} as const;

export const verify: Subcommand = {
  help: `cairnlog verify FILE... --operator-key OPERATOR.pem [--attestation FILE.attestation.json] [--json]
cairnlog verify FILE... --composite --attestation FILE.attestation.json --operator-key OPERATOR.pem [--json]

Checks each FILE against FILE.attestation.json without any connection: that the file is the one attested,
that the signature holds, that the log entry says so and has the hash it claims, that it is in the tree,
and that the tree head is signed by the operator key you pinned. Says of each whether it holds, and whether
the signer signed the attestation's type and statement or only the log says so.

Options:
  --operator-key FILE.pem  the operator's public key, from a source that you trust
  --attestation FILE       the attestation of the one FILE (default: FILE.attestation.json)
  --composite              the FILEs are the parts, in their order, of the one document that was attested
                           (cairnlog composite); where parts have attestations of their own, verify those apart
  --json                   one line of JSON for each attestation

Exit codes: 0 everything holds; 1 something does not; 2 the command was not understood.

Example:
  cairnlog verify report.pdf --operator-key operator.pub.pem
  cairnlog verify one.pdf two.pdf --composite --attestation both.json.attestation.json --operator-key operator.pub.pem`,
  options: OPTIONS,
  async run(argv) {
    const { values, positionals: files } = readArguments(argv, OPTIONS, true);
    if (!files.length) throw new UsageError("name at least one FILE");
    const { attestation, composite, json } = values;
    if (attestation !== undefined && files.length > 1 && !composite)
      throw new UsageError("--attestation goes with one FILE, unless the FILEs are a --composite");
    const compositePath = composite ? required(attestation, "--attestation") : undefined;
    const operatorKey = parsePublicKey(readFileSync(required(values["operator-key"], "--operator-key"), "utf8"));
    if (compositePath !== undefined) {
      const verdict = await verifyParts(files, compositePath, operatorKey);
      console.log(json ? printableJson({ files, ...verdict }) : describe(compositePath, verdict));
      return verdict.valid ? 0 : 1;
    }
    let holds = true;
    for (const file of files) {
      const bundlePath = attestation ?? `${file}.attestation.json`;
      const verdict = await verifyFile(file, bundlePath, operatorKey).catch(unreadable);
      if (!verdict.valid) holds = false;
      console.log(json ? printableJson({ file, ...verdict }) : describe(file, verdict));
    }
    return holds ? 0 : 1;
  },
};

async function verifyFile(file: string, bundlePath: string, operatorKey: PublicKey): Promise<BundleVerdict> {
  const fileHash = await hashFile(file);
  return verifyAs(bundlePath, () => fileHash, operatorKey);
}

/** The result for a file that cannot be read. The other files are still verified. */
function unreadable(error: Error): BundleVerdict {
  if (!("syscall" in error)) throw error;
  return misread(error.message);
}

async function verifyParts(
  files: readonly string[],
  bundlePath: string,
  operatorKey: PublicKey,
): Promise<BundleVerdict> {
  const hashes: string[] = [];
  for (const file of files) hashes.push(`sha256:${await hashFile(file)}`);
  // The title comes from the bundle, but the hash covers it. A wrong title does not give the signed hash.
  const hashUnder = (bundle: unknown) => {
    const title: unknown = (bundle as Partial<AttestationBundle> | null)?.manifest?.document?.title;
    return compositeHash(typeof title === "string" ? title : "", hashes);
  };
  const { valid, checks, signed } = await verifyAs(bundlePath, hashUnder, operatorKey);
  const detail = (ok: boolean) =>
    ok
      ? "The files are the parts of the document, in their order."
      : "The files are not the parts that were attested, or not in their order.";
  return {
    valid,
    signed,
    checks: checks.map((check) => (check.name === "file" ? { ...check, detail: detail(check.ok) } : check)),
  };
}

/** @param hashOf returns the hash of the local files; it may depend on the content of the bundle */
async function verifyAs(
  bundlePath: string,
  hashOf: (bundle: unknown) => string,
  operatorKey: PublicKey,
): Promise<BundleVerdict> {
  let bundle: unknown;
  try {
    bundle = parseIJson(readFileSync(bundlePath, "utf8"));
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    return misread(`${bundlePath}: ${error.message}`);
  }
  return verifyBundle(bundle, { fileHash: hashOf(bundle), operatorKey });
}

const misread = (detail: string): BundleVerdict => ({
  valid: false,
  checks: [{ name: "format", ok: false, detail }],
  signed: null,
});

function describe(file: string, { valid, checks }: BundleVerdict): string {
  // The maker of the bundle chose some of the words.
  const lines = checks.map(({ name, ok, detail }) => `  ${ok ? "ok    " : "WRONG "} ${name}: ${printableLine(detail)}`);
  return [`${file}: ${valid ? "verified" : "NOT verified"}`, ...lines].join("\n");
}
