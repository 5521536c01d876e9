/**
 * How much is in a body, told from its bytes before anything is made of it. A megabyte of brackets, commas or names takes
 * two hundred times as long to read as a megabyte of text.
 */
import { CairnlogError } from "../../engine/error.js";
import { HttpError } from "./problems.js";

/**
 * Members and items of one body. To read so many takes 20 ms. A composite of 1000 parts has fewer, though each brings a
 * manifest with an attestation.
 */
export const MAX_VALUES = 20_000;
/** Levels of arrays and objects, far beyond what `parseIJson` takes: what is deeper is slow even to be refused there. */
const MAX_LEVELS = 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const OPEN_OBJECT = 0x7b;
const CLOSE_ARRAY = 0x5d;
const CLOSE_OBJECT = 0x7d;

/**
 * Counts the values in what should be a JSON text.
 * @throws HttpError `malformed-json` when brackets do not match; CairnlogError `not-i-json` when they nest too deep, and
 *   `invalid-input` when there are more than `MAX_VALUES`
 */
export function checkExtent(bytes: Uint8Array): void {
  const { length } = bytes;
  let values = 0;
  let level = 0;
  let deepest = 0;
  for (let at = 0; at < length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) at = stringEnd(bytes, at);
    else if (byte === COMMA) values++;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      values++;
      if (++level > deepest) deepest = level;
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) level--;
  }
  if (level) throw new HttpError("malformed-json", "Malformed JSON: a bracket or a brace has no counterpart.");
  if (deepest > MAX_LEVELS) refuse("not-i-json", "Arrays and objects are nested too deep.");
  if (values > MAX_VALUES) refuse("invalid-input", `A body can hold at most ${MAX_VALUES} members and items.`);
}

function refuse(code: "not-i-json" | "invalid-input", message: string): never {
  throw new CairnlogError(code, message, { details: [{ path: "", message }] });
}

/** Where the string ends that begins at `start`; the end of the text if it does not. */
function stringEnd(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  for (; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++;
  return at;
}
