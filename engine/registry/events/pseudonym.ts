/**
 * Pseudonyms: the display names of keys. They are not unique, and public. The holder of the key chooses its pseudonym.
 */
import { fits } from "../../verify/json/shape.js";
import { PSEUDONYM } from "../../verify/keys/limits.js";
import type { Faults } from "../shared/input.js";

/** Normalisation composes at most four characters into one, with two code units each. Longer text is not normalised. */
const RAW_LENGTH_PER_CHARACTER = 2 * 4;
const UNPRINTABLE = /[\p{Cc}\p{Surrogate}]/u;
/** Number of characters of the fingerprint that name a key without a pseudonym. */
const DEFAULT_CHARACTERS = 12;

/**
 * `value` in NFC if it is a pseudonym: 1–200 characters in that form, without control characters or halves of surrogate
 * pairs. Otherwise adds a fault and returns undefined.
 */
export function readPseudonym(value: unknown, path: string, faults: Faults): string | undefined {
  return readName(value, path, PSEUDONYM.max, faults);
}

/**
 * `value` in NFC if it is a name of 1 to `limit` characters, by the rules of pseudonyms. Otherwise adds a fault and
 * returns undefined.
 */
export function readName(value: unknown, path: string, limit: number, faults: Faults): string | undefined {
  if (typeof value !== "string") {
    faults.add(path, "It must be a string.");
    return undefined;
  }
  const name = value.length <= RAW_LENGTH_PER_CHARACTER * limit ? value.normalize("NFC") : value;
  if (name === "" || !fits(name, limit)) faults.add(path, `It must have 1 to ${limit} characters.`);
  else if (UNPRINTABLE.test(name)) faults.add(path, "It must not hold control characters or lone surrogates.");
  else return name;
  return undefined;
}

/** The pseudonym of a key without a chosen one. */
export function defaultPseudonym(fingerprint: string): string {
  return fingerprint.slice("sha256:".length, "sha256:".length + DEFAULT_CHARACTERS);
}

/** The form in which pseudonyms are compared: search is a substring match that ignores case. */
export function foldPseudonym(pseudonym: string): string {
  return pseudonym.normalize("NFC").toLowerCase();
}
