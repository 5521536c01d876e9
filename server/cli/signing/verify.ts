/** `cairnlog verify`: checks files and their .attestation.json offline, against a pinned operator key. */
import { readFileSync } from "node:fs";
import { CairnlogError } from "../../../engine/error.js";
import {
  type AttestationBundle,
  type BundleVerdict,
  compositeHash,
  type PublicKey,
  parseIJson,
  verifyBundle,
  verifyEnvelopeBundle,
} from "../../../engine/verify/index.js";
import { readPublicKey } from "../identity/public-key.js";
import { verifyProofFiles } from "../log/proof-file.js";
import { printableJson, printableLine } from "../terminal/printable.js";
import { isSystemError, systemSentence } from "../terminal/system-error.js";
import { readArguments, required, type Subcommand, UsageError, type Values } from "../usage.js";
import { hashFile } from "./file-hash.js";

const OPTIONS = {
  "operator-key": { type: "string" },
  attestation: { type: "string" },
  composite: { type: "boolean", default: false },
  dsse: { type: "boolean", default: false },
  "envelope-key": { type: "string" },
  vkey: { type: "string" },
  policy: { type: "string" },
  "entry-hash": { type: "string" },
  json: { type: "boolean", default: false },
} as const;

export const verify: Subcommand = {
  help: `cairnlog verify FILE... --operator-key OPERATOR.pem [--attestation FILE.attestation.json] [--json]
cairnlog verify FILE... --composite --attestation FILE.attestation.json --operator-key OPERATOR.pem [--json]
cairnlog verify FILE.tlog-proof... (--vkey VKEY | --policy FILE) [--entry-hash HASH] [--json]

Checks each FILE against FILE.attestation.json without any connection: that the file is the one attested,
that the signature holds, that the log entry says so and has the hash it claims, that it is in the tree,
and that the tree head is signed by the operator key you pinned. Says of each whether it holds, and whether
the signer signed the attestation's type and statement or only the log says so.

With --vkey or --policy each FILE is a proof file (cairnlog receipt): checks that its entry has the hash it claims and is in
the tree of its checkpoint, that a log of yours has signed that, and that enough of your witnesses have.

Options:
  --operator-key FILE.pem  the operator's public key, from a source that you trust
  --attestation FILE       the attestation of the one FILE (default: FILE.attestation.json)
  --composite              the FILEs are the parts, in their order, of the one document that was attested
                           (cairnlog composite); where parts have attestations of their own, verify those apart
  --dsse                   each FILE is a DSSE envelope whose payload was attested (cairnlog attest --dsse): checks its own
                           signature, too
  --envelope-key FILE.pem  with --dsse: the key that must have signed the envelope; without it, the key that the attester
                           named counts
  --vkey VKEY              proof files: the verifier key of the log (cairnlog operator vkey), from a source that you trust
  --policy FILE            proof files: the logs and witnesses that you trust, and how many of these (c2sp.org/tlog-policy)
  --entry-hash HASH        the hash of the entry, for one proof file that was made without it
  --json                   one line of JSON for each FILE

Exit codes: 0 everything holds; 1 something does not; 2 the command was not understood.

Example:
  cairnlog verify report.pdf --operator-key operator.pub.pem
  cairnlog verify one.pdf two.pdf --composite --attestation both.json.attestation.json --operator-key operator.pub.pem`,
  options: OPTIONS,
  async run(argv) {
    const { values, positionals: files } = readArguments(argv, OPTIONS, true);
    if (!files.length) throw new UsageError("name at least one FILE");
    const { attestation, composite, json, vkey, policy } = values;
    if (vkey !== undefined || policy !== undefined) return verifyProofs(files, values);
    if (values["entry-hash"] !== undefined) throw new UsageError("--entry-hash goes with --vkey or --policy");
    if (attestation !== undefined && files.length > 1 && !composite)
      throw new UsageError("--attestation goes with one FILE, unless the FILEs are a --composite");
    const compositePath = composite ? required(attestation, "--attestation") : undefined;
    const envelopeKey = values["envelope-key"];
    if (envelopeKey !== undefined && !values.dsse) throw new UsageError("--envelope-key goes with --dsse");
    if (values.dsse && composite) throw new UsageError("an envelope is no part of a --composite");
    const operatorKey = readPublicKey(required(values["operator-key"], "--operator-key"));
    const envelope = values.dsse ? { key: envelopeKey && readPublicKey(envelopeKey) } : undefined;
    if (compositePath !== undefined) {
      const verdict = await verifyParts(files, compositePath, operatorKey);
      console.log(json ? printableJson({ files, ...verdict }) : describe(compositePath, verdict));
      return verdict.valid ? 0 : 1;
    }
    let holds = true;
    for (const file of files) {
      const bundlePath = attestation ?? `${file}.attestation.json`;
      const verdict = await (envelope
        ? verifyEnvelope(file, bundlePath, operatorKey, envelope.key || undefined)
        : verifyFile(file, bundlePath, operatorKey)
      ).catch(unreadable);
      if (!verdict.valid) holds = false;
      console.log(json ? printableJson({ file, ...verdict }) : describe(file, verdict));
    }
    return holds ? 0 : 1;
  },
};

/** Proof files in place of attestations. */
function verifyProofs(files: readonly string[], values: Values<typeof OPTIONS>): number | Promise<number> {
  const { "operator-key": operatorKey, attestation, composite, dsse, vkey, policy, json } = values;
  if (operatorKey !== undefined || attestation !== undefined || composite || dsse)
    throw new UsageError("--vkey and --policy are for proof files, and the other options for attestations");
  const entryHash = values["entry-hash"];
  if (entryHash !== undefined && files.length > 1) throw new UsageError("--entry-hash goes with one FILE");
  return verifyProofFiles(files, { vkey, policy, entryHash, json });
}

async function verifyFile(file: string, bundlePath: string, operatorKey: PublicKey): Promise<BundleVerdict> {
  const fileHash = await hashFile(file);
  return verifyAs(bundlePath, () => fileHash, operatorKey);
}

/** The envelope in a file, against the attestation of its payload. */
async function verifyEnvelope(
  file: string,
  bundlePath: string,
  operatorKey: PublicKey,
  envelopeKey: PublicKey | undefined,
): Promise<BundleVerdict> {
  const [envelope, bundle] = [file, bundlePath].map(readJson);
  const fault = [envelope, bundle].find((read) => read!.fault !== null)?.fault;
  if (fault) return misread(fault);
  return verifyEnvelopeBundle(bundle!.value, envelope!.value, { operatorKey, envelopeKey });
}

/** The JSON in a file, or why it is none. @throws the file system's error */
function readJson(path: string): { readonly value: unknown; readonly fault: string | null } {
  try {
    return { value: parseIJson(readFileSync(path, "utf8")), fault: null };
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    return { value: undefined, fault: `${path}: ${error.message}` };
  }
}

/** The result for a file that cannot be read. The other files are still verified. */
function unreadable(error: Error): BundleVerdict {
  if (!isSystemError(error)) throw error;
  return misread(systemSentence(error));
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
  const { value: bundle, fault } = readJson(bundlePath);
  return fault === null ? verifyBundle(bundle, { fileHash: hashOf(bundle), operatorKey }) : misread(fault);
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
