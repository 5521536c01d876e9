/**
 * `--signer`: whom the caller expects to have signed. A fingerprint, a public key in PEM, or a list (`allowed-signers.ts`).
 */
import { CairnlogError } from "../../../engine/base/error.js";
import { canonicalFingerprint } from "../../../engine/registry/events/keys.js";
import { type AllowedSigner, canonicalTimestamp, type Entry, maySignAt } from "../../../engine/verify/index.js";
import { readAllowedSigners } from "../../opening/allowed-signers.js";
import { readText } from "./files.js";
import { readPublicKey } from "./public-key.js";

/** Those whom the options name; undefined without options. @throws CairnlogError with the file and the line; file system */
export function readSigners(named: readonly string[]): readonly AllowedSigner[] | undefined {
  return named.length ? named.flatMap(readSigner) : undefined;
}

/**
 * Why none of those who may have signed has signed an entry; null if one has, or if anybody may. A time that no hash covers, as in
 * entries of version 1, is in no period: whoever passes the entry on chooses it, and how any time is spelled.
 */
export function signerFault(
  { chain_version, payload, timestamp }: Entry,
  allowed: readonly AllowedSigner[] | undefined,
): string | null {
  const found = allowed?.filter(({ fingerprint }) => fingerprint === payload?.signer_key_fingerprint);
  if (!found) return null;
  if (!found.length) return "The signer is none of those that you named.";
  const at = chain_version === 2 ? canonicalTimestamp(timestamp) : undefined;
  const isAllowed = (one: AllowedSigner) =>
    at === undefined ? !one.validAfter && !one.validBefore : maySignAt(one, at);
  return found.some(isAllowed) ? null : "The signer was not allowed to sign at the entry's time.";
}

function readSigner(named: string): readonly AllowedSigner[] {
  const fingerprint = canonicalFingerprint(named);
  if (fingerprint !== undefined) return [{ fingerprint }];
  const text = readText(named);
  if (text.includes("-----BEGIN")) return [{ fingerprint: readPublicKey(named).fingerprint }];
  const signers = readAllowedSigners(text, named);
  if (!signers.length) throw new CairnlogError("invalid-input", `${named} names no signer of documents.`);
  return signers;
}
