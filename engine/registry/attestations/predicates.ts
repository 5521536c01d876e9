/**
 * Predicates: URLs that say what an attestation states, and that are the event types of their entries. Predicates under
 * the predicate base belong to the operator, except the four canonical ones (docs/spec §7.5).
 */
import { CairnlogError } from "../../base/error.js";
import { PREDICATE_PATHS } from "../../verify/keys/contract.js";
import { ATTESTATION_TYPE } from "../../verify/keys/limits.js";
import { invalidInput } from "../shared/input.js";

/**
 * RFC 3986 §2: the characters of a URL. Browsers also tolerate white space, backslashes and others; these are refused.
 */
const URL_TEXT = /^https:\/\/[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+$/;
const PATH = "/attestation_type";

/**
 * The event type of an attestation of this type: the canonical predicate of a short type, or the URL as it was sent.
 * @param attestationType from the submitter, who may try to pass as the operator
 * @param base without a trailing slash
 * @throws CairnlogError `invalid-input` unless it is one of the four short types or an absolute `https:` URL of at most
 *   512 characters; `forbidden` for any spelling of a URL under `base`, other than exactly the canonical four, unless
 *   the operator key signs
 */
export function resolvePredicate(attestationType: unknown, base: string, isOperator: boolean): string {
  const wrong = () =>
    invalidInput(
      PATH,
      `The attestation type must be one of ${[...PREDICATE_PATHS.keys()].join(", ")}, or an absolute https: URL of at most ${ATTESTATION_TYPE.max} characters.`,
    );
  if (typeof attestationType !== "string" || attestationType.length > ATTESTATION_TYPE.max) throw wrong();
  const path = PREDICATE_PATHS.get(attestationType);
  if (path !== undefined) return base + path;
  for (const canonical of PREDICATE_PATHS.values()) if (attestationType === base + canonical) return attestationType;

  let url: URL;
  try {
    url = new URL(attestationType);
  } catch {
    throw wrong();
  }
  if (url.protocol !== "https:") throw wrong();
  // Checked before the spelling, so that a respelt reserved predicate gets the error for reserved predicates.
  if (!isOperator && isReserved(attestationType, url, base))
    throw new CairnlogError("forbidden", `Predicates under ${base}/ are reserved to the operator key.`);
  if (!URL_TEXT.test(attestationType)) throw wrong();
  return attestationType;
}

function isReserved(text: string, url: URL, base: string): boolean {
  const own = new URL(base);
  // Readers who compare text would take `{base}/../x` for a predicate of the operator, whatever it resolves to.
  if (text.toLowerCase().startsWith(`${base.toLowerCase()}/`)) return true;
  if (host(url) !== host(own)) return false;
  const prefixes = new Set([...readings(own.pathname)].map((path) => (path.endsWith("/") ? path : `${path}/`)));
  for (const path of readings(url.pathname)) for (const prefix of prefixes) if (path.startsWith(prefix)) return true;
  return false;
}

/**
 * The URL parser has normalised the host's case, its encodings and the default port. A trailing dot names the same
 * host.
 */
const host = (url: URL): string => `${url.hostname.replace(/\.+$/, "")}:${url.port}`;

/**
 * Every path that a server could read in `path`: the path itself, and the result of each further percent-decoding,
 * since a server may look up a file after any of them. Each decoding shortens the text, so this ends.
 */
function* readings(path: string): Iterable<string> {
  for (let text = path; ; ) {
    yield resolve(text);
    const decoded = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (decoded === text) return;
    text = decoded;
  }
}

/** Backslashes become slashes, repeated slashes become one, dot segments are resolved, letters become lower case. */
function resolve(path: string): string {
  const segments = path.toLowerCase().split(/[\\/]+/);
  const resolved: string[] = [];
  for (const segment of segments)
    if (segment === "..") resolved.pop();
    else if (segment !== "" && segment !== ".") resolved.push(segment);
  const isFolder = ["", ".", ".."].includes(segments.at(-1)!);
  return `/${resolved.join("/")}${isFolder && resolved.length ? "/" : ""}`;
}
