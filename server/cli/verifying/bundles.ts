/** Reads attestation files, and checks them against the files that they are beside. */
import { CairnlogError } from "../../../engine/base/error.js";
import {
  type AttestationBundle,
  type BundleTrust,
  type BundleVerdict,
  compositeHash,
  type PublicKey,
  parseIJson,
  verdictOf,
  verifyBundle,
  verifyEnvelopeBundle,
} from "../../../engine/verify/index.js";
import { fileFault, hashFile } from "../files/file-hash.js";
import { readText } from "../files/files.js";

/** A verdict, with the bundle that it is about. */
export interface Verified extends BundleVerdict {
  readonly bundle?: unknown;
}

/** Whom the caller trusts. */
export type Trust = Pick<BundleTrust, "operatorKey" | "signers">;

export async function verifyFile(file: string, bundlePath: string, trust: Trust): Promise<Verified> {
  const fileHash = await hashFile(file);
  return verifyAs(bundlePath, () => fileHash, trust);
}

/** The envelope in a file, against the attestation of its payload. */
export async function verifyEnvelope(
  file: string,
  bundlePath: string,
  trust: Trust,
  envelopeKey: PublicKey | undefined,
): Promise<Verified> {
  const [envelope, bundle] = [file, bundlePath].map(readJson);
  const fault = [envelope, bundle].find((read) => read!.fault !== null)?.fault;
  if (fault) return misread(fault);
  const verdict = await verifyEnvelopeBundle(bundle!.value, envelope!.value, { ...trust, envelopeKey });
  return { ...verdict, bundle: bundle!.value };
}

/** The JSON in a file, or why it is none. @throws the file system's error */
function readJson(path: string): { readonly value: unknown; readonly fault: string | null } {
  try {
    return { value: parseIJson(readText(path)), fault: null };
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    return { value: undefined, fault: `${path}: ${error.message}` };
  }
}

/** The result for a file that cannot be read, or is written meanwhile. The other files are still verified. */
export const unreadableFile = (error: unknown): Verified => misread(fileFault(error));

export async function verifyParts(files: readonly string[], bundlePath: string, trust: Trust): Promise<Verified> {
  const hashes: string[] = [];
  for (const file of files) hashes.push(`sha256:${await hashFile(file)}`);
  // The title comes from the bundle, but the hash covers it. A wrong title does not give the signed hash.
  const hashUnder = (bundle: unknown) => {
    const title: unknown = (bundle as Partial<AttestationBundle> | null)?.manifest?.document?.title;
    return compositeHash(typeof title === "string" ? title : "", hashes);
  };
  const { checks, bundle, ...verdict } = await verifyAs(bundlePath, hashUnder, trust);
  const detail = (ok: boolean) =>
    ok
      ? "The files are the parts of the document, in their order."
      : "The files are not the parts that were attested, or not in their order.";
  return {
    ...verdict,
    bundle,
    checks: checks.map((check) => (check.name === "file" ? { ...check, detail: detail(check.ok) } : check)),
  };
}

/** @param hashOf returns the hash of the local files; it may depend on the content of the bundle */
async function verifyAs(bundlePath: string, hashOf: (bundle: unknown) => string, trust: Trust): Promise<Verified> {
  const { value: bundle, fault } = readJson(bundlePath);
  if (fault !== null) return misread(fault);
  return { ...(await verifyBundle(bundle, { fileHash: hashOf(bundle), ...trust })), bundle };
}

const misread = (detail: string): BundleVerdict => verdictOf([{ name: "format", ok: false, detail }]);
