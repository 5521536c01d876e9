/// <reference lib="es2024.string" />
/**
 * Input from outside, checked member by member. Every value here may come from an attacker. The first faults are
 * collected, so that one answer names them; then the check ends.
 */
import { CairnlogError, type ErrorDetail } from "../../base/error.js";
import { fits, isObject, type JsonObject } from "../../verify/json/shape.js";

/**
 * Number of faults at which a check ends. A hostile manifest could have thousands, and finding all of them would take
 * seconds.
 */
const MAX_DETAILS = 8;
/** No accepted key signs with more than 1024 bytes, which are 1368 characters. Limits the work on hostile text. */
const MAX_SIGNATURE_CHARACTERS = 2048;

/** The faults of one input. */
export class Faults {
  readonly #details: ErrorDetail[] = [];

  /**
   * Adds a fault at `path`, a JSON Pointer (RFC 6901) into the input.
   * @throws CairnlogError `invalid-input` as `check` does, if it is the eighth
   */
  add(path: string, message: string): void {
    if (this.#details.push({ path, message }) === MAX_DETAILS) this.check();
  }

  /** @throws CairnlogError `invalid-input` with the faults as details, if there is one */
  check(): void {
    const first = this.#details[0];
    if (first)
      throw new CairnlogError("invalid-input", `${first.path}: ${first.message}`, { details: [...this.#details] });
  }
}

/** An error with one fault. */
export function invalidInput(path: string, message: string): CairnlogError {
  return new CairnlogError("invalid-input", message, { details: [{ path, message }] });
}

/** The members of a request. @throws CairnlogError `invalid-input` for anything but an object */
export function members(input: unknown): JsonObject {
  if (!isObject(input)) throw invalidInput("", "The input must be an object.");
  return input;
}

/**
 * Returns `value` if it is a text of `min` to `max` characters that UTF-8 can encode; otherwise adds a fault and
 * returns undefined.
 */
export function boundedText(
  value: unknown,
  path: string,
  { min, max }: { readonly min: number; readonly max: number },
  faults: Faults,
): string | undefined {
  if (typeof value !== "string") faults.add(path, "It must be a string.");
  else if ((min > 0 && fits(value, min - 1)) || !fits(value, max))
    faults.add(path, `It must have ${min ? `${min} to` : "at most"} ${max} characters.`);
  else if (!value.isWellFormed()) faults.add(path, "It holds half of a surrogate pair, which UTF-8 cannot carry.");
  else return value;
  return undefined;
}

/**
 * The bytes of a signature in strict base64, which allows only one spelling; undefined for anything else. It accepts
 * exactly the texts that the portable `decodeBase64` accepts, in a tenth of the time.
 */
export function decodeSignature(value: unknown): Buffer | undefined {
  if (typeof value !== "string" || value.length > MAX_SIGNATURE_CHARACTERS) return undefined;
  const bytes = Buffer.from(value, "base64");
  return bytes.toString("base64") === value ? bytes : undefined;
}
