/**
 * E-mail addresses: whether a text is one (RFC 5321 §4.1.2; RFC 6531 §3.3 for letters beyond ASCII). Quoted local parts
 * and address literals are refused: no provider uses them, and quotes would let line breaks and commas into headers.
 */

import { MAX_EMAIL_OCTETS } from "../../verify/keys/contract.js";

const MAX_LOCAL_OCTETS = 64;
/** Labels of letters, digits and inner hyphens; a label may be 63 octets long (RFC 1035 §2.3.4). */
const LABEL = /^(?!-)[A-Za-z0-9\u{80}-\u{10ffff}-]{1,63}(?<!-)$/u;
const ATOM = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+$/u;
/**
 * Characters beyond ASCII that no name may contain: controls, spaces, halves of surrogate pairs, invisible formatting.
 */
const UNFIT = /[\p{C}\p{Z}]/u;

/** Whether `value`, which may come from an attacker, is an e-mail address of at most 254 octets in UTF-8. */
export function isEmail(value: unknown): value is string {
  if (typeof value !== "string" || value.length > MAX_EMAIL_OCTETS || UNFIT.test(value)) return false;
  const at = value.lastIndexOf("@");
  const local = value.slice(0, Math.max(at, 0));
  const labels = value.slice(at + 1).split(".");
  return (
    octets(value) <= MAX_EMAIL_OCTETS &&
    octets(local) <= MAX_LOCAL_OCTETS &&
    local.split(".").every((atom) => ATOM.test(atom)) &&
    labels.every((label) => LABEL.test(label) && octets(label) <= 63)
  );
}

const octets = (text: string): number => Buffer.byteLength(text, "utf8");
