/** Receipts that were kept before, which make another submission unnecessary. */
import { readFileSync } from "node:fs";
import type { PrivateTitle } from "../../../engine/verify/events/hashed.js";
import { type AttestationBundle, type Entry, parsePublicKey, verifyBundle } from "../../../engine/verify/index.js";
import type { AttestationReceipt, AttestOptions, Client, Subject } from "../../client/index.js";
import { manifestToSign } from "../../client/signing/attestations.js";
import { onDisk } from "../files/disk-names.js";

/**
 * The receipt of exactly this attestation by the client's key, if it holds under the operator key that the client knows. One
 * that only holds under an older operator key is none: attesting again renews it.
 * @param paths receipts of the document
 * @throws the file system's error; ClientError if the operator key is not known yet, and the service does not answer
 */
export async function findReceipt(
  client: Client,
  paths: readonly string[],
  subject: Subject,
  options: AttestOptions,
): Promise<{ readonly path: string; readonly bundle: AttestationBundle } | null> {
  const manifest = manifestToSign(subject, options);
  const { type = "authorship", intent = null } = options;
  for (const path of paths) {
    const bundle = parsed(textOf(path)) as AttestationBundle | null;
    const isAsked =
      JSON.stringify(bundle?.manifest) === JSON.stringify(manifest) &&
      bundle?.attestation?.type === type &&
      (bundle.attestation.intent_statement ?? null) === intent &&
      isOfKey(bundle, client.fingerprint);
    if (!isAsked) continue;
    const trust = { fileHash: manifest.document.content_hash, operatorKey: await client.log.operatorKey() };
    if ((await verifyBundle(bundle, trust)).valid) return { path, bundle };
  }
  return null;
}

/**
 * The private title of the same document in a receipt, whose salt is used again: another one would make another attestation.
 * @param paths receipts of the document
 * @throws the file system's error
 */
export function keptTitle(
  paths: readonly string[],
  { title, content_hash }: { readonly title: string; readonly content_hash: string },
): PrivateTitle | undefined {
  for (const path of paths) {
    const { private_title: kept, manifest } = (parsed(textOf(path)) ?? {}) as Partial<AttestationBundle>;
    const isOfDocument = manifest?.document?.content_hash === content_hash && kept?.title === title;
    if (isOfDocument && typeof kept.salt === "string") return { title, salt: kept.salt };
  }
  return undefined;
}

/** @throws the file system's error, with the path, which a failed read does not have */
function textOf(path: string): string {
  try {
    return readFileSync(onDisk(path), "utf8");
  } catch (error) {
    throw Object.assign(error as Error, { path });
  }
}

function isOfKey({ public_key }: AttestationBundle, fingerprint: string | undefined): boolean {
  try {
    return parsePublicKey(public_key).fingerprint === fingerprint;
  } catch {
    return false;
  }
}

/** The content of a file that may be one of ours; null for another one. Nothing of it is believed. */
export function parsed(
  text: string,
): { readonly entry?: Partial<Entry>; readonly answer?: Partial<AttestationReceipt> } | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
