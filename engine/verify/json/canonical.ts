/// <reference lib="es2024.string" />
/**
 * JSON that is hashed and signed: written in one way only, and read only if every reader gives it the same value.
 *
 * Canonical JSON (RFC 8785) is the only spelling of a value.
 *
 * This implementation exists because every append uses it: it is 2–3 times as fast as the package `canonicalize` for a
 * manifest. A differential test compares its results with that package, including number forms and lone surrogates.
 */
import { CairnlogError, inputError } from "../../base/error.js";
import { isWellFormed } from "../bytes/encoding.js";

/** Maximum depth, which is far below the limit of the stack. The service accepts at most 64 levels. */
const MAX_WRITTEN_DEPTH = 512;

/**
 * RFC 8785 text of a JSON value; its UTF-8 is what is hashed. Like `JSON.stringify`, it omits members that are
 * `undefined` and calls `toJSON`.
 * @throws CairnlogError `not-i-json` for values that JSON cannot represent exactly: lone surrogates, non-finite
 *   numbers, `undefined`, functions, cycles, more than 512 levels.
 */
export function canonicalJson(value: unknown): string {
  return write(value, MAX_WRITTEN_DEPTH);
}

/**
 * RFC 8785 text of a value with at most `levels` levels of arrays and objects.
 * @throws CairnlogError as `canonicalJson` does, and for more levels
 */
export function canonicalJsonWithin(value: unknown, levels: number): string {
  return write(value, levels);
}

/**
 * The value that `canonicalJson` spells, as plain data that nobody else has. What else has no canonical form has none in the
 * copy, either.
 * @throws CairnlogError `not-i-json` for more than 64 levels
 */
export function plainCopy(value: unknown, levels = MAX_DEPTH): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (levels === 0) return refuse("too many levels");
  if (Array.isArray(value)) return value.map((item) => plainCopy(item, levels - 1));
  if ("toJSON" in value && typeof value.toJSON === "function") return plainCopy(value.toJSON(), levels - 1);
  const copy: Record<string, unknown> = { ...value };
  for (const name of Object.keys(copy)) {
    const member = copy[name];
    if (typeof member === "object" && member !== null) copy[name] = plainCopy(member, levels - 1);
  }
  return copy;
}

function write(value: unknown, depth: number): string {
  switch (typeof value) {
    case "string":
      return quote(value);
    case "number":
      // RFC 8785 §3.2.2.3 uses ECMAScript's own spelling of numbers, in which −0 is "0".
      return Number.isFinite(value) ? String(value) : refuse("a number that is not finite");
    case "boolean":
      return value ? "true" : "false";
    case "object":
      if (value === null) return "null";
      if (depth === 0) return refuse("too many levels");
      if (Array.isArray(value)) return writeArray(value, depth - 1);
      if ("toJSON" in value && typeof value.toJSON === "function") return write(value.toJSON(), depth - 1);
      return writeObject(value as Readonly<Record<string, unknown>>, depth - 1);
    default:
      return refuse(`a value of type ${typeof value}`);
  }
}

/** Printable ASCII without quotation mark and backslash. Most text is of this kind and needs no escapes. */
const PLAIN = /^[ !#-[\]-~]*$/;

function quote(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  return isWellFormed(text) ? JSON.stringify(text) : refuse("half of a surrogate pair");
}

/** Quoted member names, because most names are repeated. Clients choose names, so at most 1,024 short ones are kept. */
const names = new Map<string, string>();
const KEPT_NAMES = 1024;
const MAX_KEPT_CHARACTERS = 64;

/** `name` in quotation marks, with the colon that follows it. */
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
  // §3.2.3 sorts by UTF-16 code units. Most objects are sorted already, and sorting would be the most expensive part.
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

// Reads I-JSON (RFC 7493), which is JSON that every reader gives the same value, so that a signature has one meaning.
// `JSON.parse` checks the grammar and makes the value. One scan over the text then finds what `JSON.parse` accepts
// silently: duplicate members, lone surrogates, numbers that a double cannot hold, deep nesting, `__proto__`.

/** Maximum levels of arrays and objects. Deeper text is refused before any recursive function gets it. */
export const MAX_DEPTH = 64;
/** Any decimal with this many digits survives conversion to a double (DBL_DIG). */
const SAFE_DIGITS = 15;
/** Maximum length of a member name in an error. */
const MAX_SEGMENT = 64;

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const LETTER_U = 0x75;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * The value of an I-JSON text, which may come from an attacker. The time is linear in its length.
 * @throws CairnlogError `invalid-input` when the text is not JSON; `not-i-json`, with the JSON Pointer (RFC 6901) of
 *   the first fault in `details`, when readers could disagree on its value or it nests deeper than 64 levels.
 */
export function parseIJson(text: string): unknown {
  const value = parseJson(text);
  checkIJson(text, value);
  return value;
}

/** The value of a JSON text, which need not be I-JSON. @throws CairnlogError `invalid-input` when the text is not JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw inputError(`Malformed JSON: ${(cause as Error).message}.`, { cause });
  }
}

/**
 * As `parseIJson`, for texts of other makers whose numbers do not matter: they may be rounded.
 * @throws CairnlogError as `parseIJson` does, but for numbers
 */
export function parseJsonOfUniqueNames(text: string): unknown {
  const value = parseJson(text);
  checkIJson(text, value, false);
  return value;
}

/**
 * @param value that `text` means
 * @param numbers whether each number must be exact
 * @throws CairnlogError `not-i-json` as `parseIJson` does
 */
export function checkIJson(text: string, value: unknown, numbers = true): void {
  // A duplicate makes the value have fewer members than the text. Only then are all names stored to find it.
  if (new Scan(text, false, numbers).run() !== countMembers(value)) new Scan(text, true, numbers).run();
}

/** The number of members of all objects in a value that nests at most 64 levels deep. */
function countMembers(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) members += countMembers(item);
    return members;
  }
  for (const name of Object.keys(value)) members += 1 + countMembers((value as Record<string, unknown>)[name]);
  return members;
}

/** One pass over a text that `JSON.parse` accepted, so the grammar is not checked again. */
class Scan {
  readonly #text: string;
  readonly #numbers: boolean;
  readonly #suspectSurrogates: boolean;
  /** For each open container: the index of the current item in an array, −1 in an object. */
  readonly #indexes: number[] = [];
  /** For each open container: the position of the current member's name. */
  readonly #names: number[] = [];
  /** For each open container, if duplicates are searched: the names so far. */
  readonly #seen: Set<string>[] | undefined;
  /** Position of the next backslash. Backslashes occur only inside strings. */
  #backslash: number;
  #members = 0;

  constructor(text: string, findDuplicates: boolean, numbers: boolean) {
    this.#text = text;
    this.#numbers = numbers;
    this.#suspectSurrogates = !isWellFormed(text);
    this.#seen = findDuplicates ? [] : undefined;
    this.#backslash = this.#nextBackslash(0);
  }

  /** The number of members in the text, including duplicates. */
  run(): number {
    const text = this.#text;
    const length = text.length;
    for (let at = 0; at < length; ) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        at = this.#string(at);
      } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
        if (this.#indexes.length === MAX_DEPTH) {
          this.#refuse(`Arrays and objects are nested deeper than ${MAX_DEPTH} levels.`);
        }
        this.#indexes.push(code === OPEN_ARRAY ? 0 : -1);
        this.#names.push(at);
        this.#seen?.push(new Set());
        at++;
      } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
        this.#indexes.pop();
        this.#names.pop();
        this.#seen?.pop();
        at++;
      } else if (code === COMMA) {
        const top = this.#indexes.length - 1;
        if (this.#indexes[top]! >= 0) this.#indexes[top]!++;
        at++;
      } else if (code === MINUS || (code >= 0x30 && code <= 0x39)) {
        at = this.#number(at);
      } else {
        at++;
      }
    }
    return this.#members;
  }

  /**
   * Reads a string, whose opening quote is at `start`. Returns the position after it and the white space that follows.
   */
  #string(start: number): number {
    const text = this.#text;
    let end = text.indexOf('"', start + 1);
    let escaped = false;
    let lone = false;
    while (this.#backslash < end) {
      escaped = true;
      let after = this.#backslash + 2;
      if (text.charCodeAt(after - 1) === LETTER_U) {
        const unit = Number.parseInt(text.slice(after, after + 4), 16);
        after += 4;
        if (unit >= 0xdc00 && unit <= 0xdfff) {
          lone = true;
        } else if (unit >= 0xd800 && unit <= 0xdbff) {
          if (this.#isLowSurrogateEscape(after)) after += 6;
          else lone = true;
        }
      }
      if (end < after) end = text.indexOf('"', after);
      this.#backslash = this.#nextBackslash(after);
    }
    if (this.#suspectSurrogates && !lone) lone = !isWellFormed(text.slice(start, end));
    let at = end + 1;
    while (text.charCodeAt(at) <= 0x20) at++;
    // In well-formed JSON, a string is a member's name exactly if a colon follows it.
    const isName = text.charCodeAt(at) === COLON;
    if (isName) this.#name(start, end, escaped);
    if (lone) {
      this.#refuse(
        `${isName ? "A member's name" : "A string"} holds half of a surrogate pair, which UTF-8 cannot carry.`,
      );
    }
    return at;
  }

  #name(start: number, end: number, escaped: boolean): void {
    const top = this.#names.length - 1;
    this.#names[top] = start;
    this.#members++;
    // JSON.parse makes such a member an own member, but code that copies it could set the prototype.
    if (
      escaped
        ? this.#decodeName(start) === "__proto__"
        : end - start === 10 && this.#text.startsWith("__proto__", start + 1)
    ) {
      this.#refuse("A member may not be named __proto__.");
    }
    if (this.#seen === undefined) return;
    const name = escaped ? this.#decodeName(start) : this.#text.slice(start + 1, end);
    if (this.#seen[top]!.has(name)) this.#refuse("The member appears more than once in its object.");
    this.#seen[top]!.add(name);
  }

  #number(start: number): number {
    const text = this.#text;
    let exponent = false;
    let at = start + 1;
    for (; ; at++) {
      const code = text.charCodeAt(at);
      if (code === 0x65 || code === 0x45) exponent = true;
      else if (!((code >= 0x30 && code <= 0x39) || code === 0x2e || code === MINUS || code === 0x2b)) break;
    }
    if (this.#numbers && (exponent || at - start > SAFE_DIGITS) && !survivesDouble(text.slice(start, at))) {
      this.#refuse("The number is not exactly a double-precision value; send it as a string.");
    }
    return at;
  }

  #isLowSurrogateEscape(at: number): boolean {
    const text = this.#text;
    if (text.charCodeAt(at) !== BACKSLASH || text.charCodeAt(at + 1) !== LETTER_U) return false;
    const unit = Number.parseInt(text.slice(at + 2, at + 6), 16);
    return unit >= 0xdc00 && unit <= 0xdfff;
  }

  #nextBackslash(from: number): number {
    const at = this.#text.indexOf("\\", from);
    return at < 0 ? this.#text.length : at;
  }

  /** The name whose opening quote is at `start`, with escapes resolved. */
  #decodeName(start: number): string {
    let end = start + 1;
    while (this.#text.charCodeAt(end) !== QUOTE) end += this.#text.charCodeAt(end) === BACKSLASH ? 2 : 1;
    return JSON.parse(this.#text.slice(start, end + 1)) as string;
  }

  #refuse(message: string): never {
    const path = this.#indexes.map((index, level) => {
      if (index >= 0) return `/${index}`;
      const name = this.#decodeName(this.#names[level]!).slice(0, MAX_SEGMENT);
      return `/${name
        .replace(/\p{Surrogate}/gu, "\ufffd")
        .replaceAll("~", "~0")
        .replaceAll("/", "~1")}`;
    });
    throw new CairnlogError("not-i-json", message, { details: [{ path: path.join(""), message }] });
  }
}

/** Whether the shortest decimal of the double nearest to `literal` has exactly the value of the literal. */
function survivesDouble(literal: string): boolean {
  const double = Number(literal);
  const shortest = String(double);
  if (shortest === literal) return true;
  return Number.isFinite(double) && normalDecimal(literal) === normalDecimal(shortest);
}

const LITERAL = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** A decimal literal as `<digits>e<exponent>` without leading or trailing zeros. Equal text means equal value. */
function normalDecimal(literal: string): string {
  const [, whole = "", fraction = "", power = "0"] = LITERAL.exec(literal)!;
  const digits = whole + fraction;
  let first = 0;
  while (first < digits.length && digits.charCodeAt(first) === 0x30) first++;
  if (first === digits.length) return "0";
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === 0x30) end--;
  const exponent = Number(power) - fraction.length + (digits.length - end);
  return `${literal.startsWith("-") ? "-" : ""}${digits.slice(first, end)}e${exponent}`;
}
