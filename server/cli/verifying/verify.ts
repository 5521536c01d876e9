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
  verifyEnvelopeBundle,
} from "../../../engine/verify/index.js";
import { rememberedFor } from "../config/config-file.js";
import { READING_OPTIONS } from "../connection.js";
import { readPublicKey } from "../identity/public-key.js";
import { flag, text, type Values } from "../line/options.js";
import { subcommand } from "../line/subcommand.js";
import { verifyProofFiles } from "../log/proof-file.js";
import { namedServer, serverOf } from "../service.js";
import { hashFile } from "../signing/file-hash.js";
import { StateFolder } from "../state.js";
import { printableJson } from "../terminal/printable.js";
import { isSystemError, systemSentence } from "../terminal/system-error.js";
import { required, UsageError } from "../usage.js";
import { bundleText } from "./verdict.js";

const OPTIONS = {
  "operator-key": text(
    "FILE.pem",
    "the operator's public key, from a source that you trust (default: the one that is remembered for the service)",
  ),
  server: READING_OPTIONS.server,
  state: READING_OPTIONS.state,
  attestation: text("FILE", "the attestation of the one FILE (default: FILE.attestation.json)"),
  composite: flag(
    "the FILEs are the parts, in their order, of the one document that was attested (cairnlog composite); where parts have attestations of their own, verify those apart",
  ),
  dsse: flag(
    "each FILE is a DSSE envelope whose payload was attested (cairnlog attest --dsse): checks its own signature, too",
  ),
  "envelope-key": text(
    "FILE.pem",
    "with --dsse: the key that must have signed the envelope; without it, the key that the attester named counts",
  ),
  vkey: text("VKEY", "proof files: the verifier key of the log (cairnlog operator vkey), from a source that you trust"),
  policy: text(
    "FILE",
    "proof files: the logs and witnesses that you trust, and how many of these (c2sp.org/tlog-policy)",
  ),
  "entry-hash": text("HASH", "the hash of the entry, for one proof file that was made without it"),
  json: flag("one line of JSON for each FILE"),
} as const;

export const verify = subcommand({
  forms: [
    "FILE... [--operator-key OPERATOR.pem] [--attestation FILE.attestation.json]",
    "FILE... --composite --attestation FILE.attestation.json [--operator-key OPERATOR.pem]",
    "FILE.tlog-proof... (--vkey VKEY | --policy FILE) [--entry-hash HASH]",
  ],
  about: `Checks each FILE against FILE.attestation.json without any connection: that the file is the one attested,
that the signature holds, that the log entry says so and has the hash it claims, that it is in the tree,
and that the tree head is signed by the operator key you pinned. Says of each whether it holds, and whether
the signer signed the attestation's type and statement or only the log says so. If everything holds, it ends with who signed, as
what, when, and in which log.

With --vkey or --policy each FILE is a proof file (cairnlog receipt): checks that its entry has the hash it claims and is in
the tree of its checkpoint, that a log of yours has signed that, and that enough of your witnesses have.`,
  options: OPTIONS,
  notes: "Exit codes: 0 everything holds; 1 something does not; 2 the command was not understood.",
  examples: `cairnlog verify report.pdf --operator-key operator.pub.pem
cairnlog verify one.pdf two.pdf --composite --attestation both.json.attestation.json --operator-key operator.pub.pem`,
  async run(files, values) {
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
    const trusted = trustedKey(values);
    const envelope = values.dsse ? { key: envelopeKey && readPublicKey(envelopeKey) } : undefined;
    if (compositePath !== undefined) {
      const { bundle, ...verdict } = await verifyParts(files, compositePath, trusted.key);
      console.log(
        json ? printableJson({ files, ...verdict }) : bundleText(compositePath, verdict, bundle, trusted.log),
      );
      return verdict.valid ? 0 : 1;
    }
    let holds = true;
    for (const file of files) {
      const bundlePath = attestation ?? `${file}.attestation.json`;
      const { bundle, ...verdict } = await (envelope
        ? verifyEnvelope(file, bundlePath, trusted.key, envelope.key || undefined)
        : verifyFile(file, bundlePath, trusted.key)
      ).catch(unreadable);
      if (!verdict.valid) holds = false;
      console.log(json ? printableJson({ file, ...verdict }) : bundleText(file, verdict, bundle, trusted.log));
    }
    return holds ? 0 : 1;
  },
});

/** A key that signs the heads of a log, and words for the log. */
interface Trusted {
  readonly key: PublicKey;
  readonly log: string;
}

/** The operator key of the option, or else the one that is remembered for the service. @throws UsageError without either */
function trustedKey(values: Values<typeof OPTIONS>): Trusted {
  const { "operator-key": file } = values;
  if (file !== undefined) {
    const key = readPublicKey(file);
    return { key, log: `the log of operator key ${key.fingerprint}` };
  }
  const server = namedServer(values.server);
  const set = server && rememberedFor(server).operator_key;
  const pem = set || (server && new StateFolder(serverOf(server), values.state).loadMemory()?.operator_key);
  if (!server)
    throw new UsageError(
      "--operator-key is missing: name it, or name by --server or cairnlog config the service whose operator key is remembered",
    );
  if (!pem)
    throw new UsageError(
      `no operator key of ${server} is remembered yet: name it by --operator-key, or have it pinned by cairnlog log head --server ${server}`,
    );
  const key = parsePublicKey(pem);
  const how = set ? "set by cairnlog config" : "pinned when it was first seen";
  return { key, log: `the log at ${server}, operator key ${key.fingerprint} (${how})` };
}

/** A verdict, with the bundle that it is about. */
interface Verified extends BundleVerdict {
  readonly bundle?: unknown;
}

/** Proof files in place of attestations. */
function verifyProofs(files: readonly string[], values: Values<typeof OPTIONS>): number | Promise<number> {
  const { "operator-key": operatorKey, attestation, composite, dsse, vkey, policy, json } = values;
  if (operatorKey !== undefined || attestation !== undefined || composite || dsse)
    throw new UsageError("--vkey and --policy are for proof files, and the other options for attestations");
  const entryHash = values["entry-hash"];
  if (entryHash !== undefined && files.length > 1) throw new UsageError("--entry-hash goes with one FILE");
  return verifyProofFiles(files, { vkey, policy, entryHash, json });
}

async function verifyFile(file: string, bundlePath: string, operatorKey: PublicKey): Promise<Verified> {
  const fileHash = await hashFile(file);
  return verifyAs(bundlePath, () => fileHash, operatorKey);
}

/** The envelope in a file, against the attestation of its payload. */
async function verifyEnvelope(
  file: string,
  bundlePath: string,
  operatorKey: PublicKey,
  envelopeKey: PublicKey | undefined,
): Promise<Verified> {
  const [envelope, bundle] = [file, bundlePath].map(readJson);
  const fault = [envelope, bundle].find((read) => read!.fault !== null)?.fault;
  if (fault) return misread(fault);
  const verdict = await verifyEnvelopeBundle(bundle!.value, envelope!.value, { operatorKey, envelopeKey });
  return { ...verdict, bundle: bundle!.value };
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
function unreadable(error: Error): Verified {
  if (!isSystemError(error)) throw error;
  return misread(systemSentence(error));
}

async function verifyParts(files: readonly string[], bundlePath: string, operatorKey: PublicKey): Promise<Verified> {
  const hashes: string[] = [];
  for (const file of files) hashes.push(`sha256:${await hashFile(file)}`);
  // The title comes from the bundle, but the hash covers it. A wrong title does not give the signed hash.
  const hashUnder = (bundle: unknown) => {
    const title: unknown = (bundle as Partial<AttestationBundle> | null)?.manifest?.document?.title;
    return compositeHash(typeof title === "string" ? title : "", hashes);
  };
  const { valid, checks, signed, bundle } = await verifyAs(bundlePath, hashUnder, operatorKey);
  const detail = (ok: boolean) =>
    ok
      ? "The files are the parts of the document, in their order."
      : "The files are not the parts that were attested, or not in their order.";
  return {
    bundle,
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
): Promise<Verified> {
  const { value: bundle, fault } = readJson(bundlePath);
  if (fault !== null) return misread(fault);
  return { ...(await verifyBundle(bundle, { fileHash: hashOf(bundle), operatorKey })), bundle };
}

const misread = (detail: string): BundleVerdict => ({
  valid: false,
  checks: [{ name: "format", ok: false, detail }],
  signed: null,
});
