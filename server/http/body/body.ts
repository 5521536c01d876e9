/** Reads the JSON of a body, from its bytes. Nobody has checked anything of it but its size. */
import { isUtf8 } from "node:buffer";
import { CairnlogError } from "../../../engine/base/error.js";
import { parseIJson } from "../../../engine/verify/json/ijson.js";
import { HttpError } from "../route/problems.js";
import { checkExtent } from "./extent.js";

type Values = Readonly<Record<string, unknown>>;

/**
 * A JSON body that is an object. Nothing else is checked.
 * @throws HttpError `malformed-json`, `not-an-object`; CairnlogError `not-i-json`, and `invalid-input` for too many
 *   values
 */
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
