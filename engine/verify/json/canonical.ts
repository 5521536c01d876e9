/**
 * Canonical JSON (RFC 8785): the one spelling of a value that is hashed and signed.
 *
 * Our own, because it is on the way of every append: 2–3 times as fast as the package `canonicalize` for a manifest. It is
 * held to that package's verdicts by a differential test, number forms and lone surrogates included.
 */
import { CairnlogError } from "../../error.js";

/** Deeper values are refused, long before the stack ends; what the service takes has at most 64 levels. */
const MAX_DEPTH = 512;

/**
 * RFC 8785 text of a JSON value; its UTF-8 is what gets hashed. Members that are `undefined` are left out, and `toJSON`
 * is called, as in `JSON.stringify`.
 * @throws CairnlogError `not-i-json` for what JSON cannot carry faithfully: lone surrogates, non-finite numbers,
 *   `undefined`, functions, cycles, more than 512 levels.
 */
export function canonicalJson(value: unknown): string {
  return write(value, MAX_DEPTH);
}

function write(value: unknown, depth: number): string {
  switch (typeof value) {
    case "string":
      return quote(value);
    case "number":
      // ECMAScript's own spelling is the one that RFC 8785 §3.2.2.3 takes; −0 is "0" in it.
      return Number.isFinite(value) ? String(value) : refuse("a number that is not finite");
    case "boolean":
      return value ? "true" : "false";
    case "object":
      if (value === null) return "null";
      if (depth === 0) return refuse("more than 512 levels");
      if (Array.isArray(value)) return writeArray(value, depth - 1);
      if ("toJSON" in value && typeof value.toJSON === "function") return write(value.toJSON(), depth - 1);
      return writeObject(value as Readonly<Record<string, unknown>>, depth - 1);
    default:
      return refuse(`a value of type ${typeof value}`);
  }
}

/** Printable ASCII without quotation mark and backslash: text that is its own spelling, as most is. */
const PLAIN = /^[ !#-[\]-~]*$/;

function quote(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  return text.isWellFormed() ? JSON.stringify(text) : refuse("half of a surrogate pair");
}

/** Most names come again and again, so they are spelt once. Clients choose names: what is kept ends at 1,024 short ones. */
const names = new Map<string, string>();
const KEPT_NAMES = 1024;
const MAX_KEPT_CHARACTERS = 64;

/** `name` as it stands before a member, with its colon. */
function quoteName(name: string): string {
  const known = names.get(name);
  if (known !== undefined) return known;
  const quoted = `${quote(name)}:`;
  if (names.size < KEPT_NAMES && name.length <= MAX_KEPT_CHARACTERS) names.set(name, quoted);
  return quoted;
}

function writeArray(items: readonly unknown[], depth: number): string {
  let text = "[";
  for (let i = 0; i < items.length; i++) {
    if (i) text += ",";
    text += write(items[i], depth);
  }
  return `${text}]`;
}

function writeObject(members: Readonly<Record<string, unknown>>, depth: number): string {
  const sorted = Object.keys(members);
  // UTF-16 code units, as §3.2.3 sorts. Most objects come sorted, and then sorting is the dearest part.
  for (let i = 1; i < sorted.length; i++)
    if (sorted[i - 1]! > sorted[i]!) {
      sorted.sort();
      break;
    }
  let text = "{";
  for (const name of sorted) {
    const member = members[name];
    if (member === undefined) continue;
    if (text.length > 1) text += ",";
    text += quoteName(name) + write(member, depth);
  }
  return `${text}}`;
}

function refuse(what: string): never {
  throw new CairnlogError("not-i-json", `The value has no canonical JSON form: it holds ${what}.`);
}
