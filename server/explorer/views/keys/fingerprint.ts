/** The fingerprint of a public key that a service shows. */
import { parsePublicKey } from "../../../../engine/verify/index.js";

/** Undefined if this is not a public key. */
export function fingerprintOf(pem: string): string | undefined {
  try {
    return parsePublicKey(pem).fingerprint;
  } catch {
    return undefined;
  }
}
