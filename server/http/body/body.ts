/** Reads the JSON of a body, from its bytes. Nobody has checked anything of it but its size. */
import { isUtf8 } from "node:buffer";
import { CairnlogError } from "../../../engine/base/error.js";
import { countMembers, parseIJson } from "../../../engine/verify/json/ijson.js";
import { HttpError } from "../route/problems.js";
import { type Canonical, NO_CANONICAL } from "../transport/wanted.js";
import { checkExtent } from "./extent.js";
import type { PlainReader } from "./plain.js";

type Values = Readonly<Record<string, unknown>>;

interface Body {
  readonly value: Values;
  readonly canonical: Canonical;
}

/**
 * A JSON body that is an object. Nothing else is checked.
 * @param plain of a route that wants canonical bytes
 * @throws HttpError `malformed-json`, `not-an-object`; CairnlogError `not-i-json`, and `invalid-input` for too many
 *   values
 */
export function readBody(bytes: Buffer, plain: PlainReader | null): Body {
  return (plain && readPlain(bytes, plain)) ?? { value: parseBody(bytes), canonical: NO_CANONICAL };
}

/** Null for a body that is not plain, or with which something is wrong. */
function readPlain(bytes: Buffer, plain: PlainReader): Body | null {
  const looked = plain.look(bytes);
  if (!looked) return null;
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("latin1"));
  } catch {
    return null;
  }
  // A member that is there twice counts once in the value.
  return isObject(value) && countMembers(value) === looked.members ? { value, canonical: looked.canonical } : null;
}

/** The value of a body of any form, as `readBody` reads it. */
export function parseBody(bytes: Buffer): Values {
  if (!isUtf8(bytes)) throw new HttpError("malformed-json", "The body is not UTF-8.");
  if (bytes.length === 0) throw new HttpError("malformed-json", "The body is empty; it must be a JSON object.");
  checkExtent(bytes);
  let body: unknown;
  try {
    body = parseIJson(bytes.toString("utf8"));
  } catch (error) {
    if (error instanceof CairnlogError && error.code === "invalid-input")
      throw new HttpError("malformed-json", error.message);
    throw error;
  }
  if (!isObject(body)) throw new HttpError("not-an-object", "The body must be a JSON object.");
  return body;
}

const isObject = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value);
