/**
 * `--signer`: whom the caller expects to have signed. A fingerprint, a public key in PEM, or a list (`allowed-signers.ts`).
 */
import { CairnlogError } from "../../../engine/base/error.js";
import { canonicalFingerprint } from "../../../engine/registry/events/keys.js";
import type { AllowedSigner } from "../../../engine/verify/index.js";
import { readAllowedSigners } from "../../opening/allowed-signers.js";
import { readText } from "./files.js";
import { readPublicKey } from "./public-key.js";

/** Those whom the options name; undefined without options. @throws CairnlogError with the file and the line; file system */
export function readSigners(named: readonly string[]): readonly AllowedSigner[] | undefined {
  return named.length ? named.flatMap(readSigner) : undefined;
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
