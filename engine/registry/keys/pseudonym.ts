/** Pseudonyms: the display names of keys. Not unique, public, chosen by whoever holds the key. */
import { fits } from "../../verify/json/shape.js";
import type { Faults } from "../input.js";

const MAX_CHARACTERS = 200;
/** Composition joins at most four characters into one, of two code units each; longer text is not even normalised. */
const RAW_LENGTH_PER_CHARACTER = 2 * 4;
const UNPRINTABLE = /[\p{Cc}\p{Surrogate}]/u;
/** Characters of the fingerprint that name a key which nobody named. */
const DEFAULT_CHARACTERS = 12;

/**
 * `value` in NFC when it is a pseudonym: 1–200 characters in that form, without control characters or halves of
 * surrogate pairs; otherwise a fault and undefined.
 */
export function readPseudonym(value: unknown, path: string, faults: Faults): string | undefined {
  return readName(value, path, MAX_CHARACTERS, faults);
}

/** The same for any other name that people give: 1 to `limit` characters. */
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

/** The pseudonym of a key whose holder gave none. */
export function defaultPseudonym(fingerprint: string): string {
  return fingerprint.slice("sha256:".length, "sha256:".length + DEFAULT_CHARACTERS);
}

/** The form in which pseudonyms are compared: search is a substring match without regard to case. */
export function foldPseudonym(pseudonym: string): string {
  return pseudonym.normalize("NFC").toLowerCase();
}
