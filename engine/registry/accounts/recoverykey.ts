/**
 * Recovery keys: 200 random bits, written so that people can copy them from paper: eight groups of five characters of
 * Crockford's base32, which has no I, L, O and U.
 */
import { randomBytes } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const BITS_PER_CHARACTER = 5;
const CHARACTERS = 40;
const BYTES = (CHARACTERS * BITS_PER_CHARACTER) / 8;
/** A text with a hyphen around every character is still shorter. Limits the work on hostile text. */
const MAX_LENGTH = 256;
const CANONICAL = /^[0-9A-HJKMNP-TV-Z]{40}$/;

/** A new recovery key in the form that is shown once. */
export function generateRecoveryKey(): string {
  let value = BigInt(`0x${randomBytes(BYTES).toString("hex")}`);
  let text = "";
  for (let i = 0; i < CHARACTERS; i++) {
    text = ALPHABET[Number(value & 31n)] + text;
    value >>= BigInt(BITS_PER_CHARACTER);
  }
  return text.match(/.{5}/g)!.join("-");
}

/**
 * The only form in which a recovery key is hashed and compared: upper case, without hyphens. The letters O, I and L,
 * which people read for digits, become those digits. The text may come from an attacker.
 * @returns undefined for a text that cannot be a recovery key
 */
export function canonicalRecoveryKey(text: string): string | undefined {
  // ASCII is checked first, because the upper case of some other letters is an ASCII letter.
  if (text.length > MAX_LENGTH || !/^[0-9A-Za-z-]*$/.test(text)) return undefined;
  const key = text.replaceAll("-", "").toUpperCase().replaceAll("O", "0").replace(/[IL]/g, "1");
  return CANONICAL.test(key) ? key : undefined;
}
