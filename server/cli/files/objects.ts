/** JSON objects that commands take from files. */
import { isUtf8 } from "node:buffer";
import { CairnlogError } from "../../../engine/base/error.js";
import { parseIJson } from "../../../engine/verify/index.js";
import { isObject, type JsonObject } from "../../../engine/verify/json/shape.js";
import { withoutMark } from "./byte-order-mark.js";
import { readBytes } from "./files.js";

/**
 * The object in a file; `-` is standard input.
 * @throws CairnlogError `not-i-json`; `invalid-input` for what is no object
 */
export function readObject(file: string): JsonObject {
  const text = readBytes(file);
  const value = isUtf8(text) ? parseIJson(withoutMark(text.toString("utf8"))) : undefined;
  if (isObject(value)) return value;
  const name = file === "-" ? "Standard input" : file;
  throw new CairnlogError("invalid-input", `${name} must hold a JSON object in UTF-8.`);
}
