/** Hashes of canonical JSON, and what is put on the log in the place of words. */
import { toHex, utf8 } from "../bytes/encoding.js";
import { kernel } from "../bytes/kernel.js";
import { canonicalJson } from "../json/canonical.js";

/** SHA-256 of the canonical form of a value; bare lower-case hex. @throws CairnlogError `not-i-json`. */
export const canonicalHash = (value: unknown): string => toHex(kernel.sha256(utf8(canonicalJson(value))));

/** A title that is not on the log, and what keeps others from guessing it. */
export interface PrivateTitle {
  readonly title: string;
  /** Random; base64 of 32 bytes if `cairnlog attest` made it. */
  readonly salt: string;
}

/** What stands in a manifest, and on the log, in the place of a private title. */
export function hiddenTitle({ salt, title }: PrivateTitle): string {
  return `sha256:${canonicalHash({ salt, title })}`;
}
