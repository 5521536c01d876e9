/**
 * Predicates: the URL that says what an attestation states, and that is the event type of its entry. Those under the
 * predicate base belong to the operator, but for the four canonical ones (`spec.md`, Authentication 9).
 */
import { CairnlogError } from "../../error.js";
import { PREDICATE_PATHS } from "../../verify/contract.js";
import { invalidInput } from "../input.js";

export const MAX_PREDICATE_CHARACTERS = 512;
/** RFC 3986 §2: what a URL is spelt with. White space, backslashes and the rest are what browsers forgive. */
const URL_TEXT = /^https:\/\/[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+$/;
const PATH = "/attestation_type";

/**
 * The event type of an attestation of this type: the canonical predicate of a short type, or the URL as it was sent.
 * @param attestationType from the submitter, who would like to pass as the operator
 * @param base without a trailing slash
 * @throws CairnlogError `invalid-input` unless it is one of the four short types or an absolute `https:` URL of at most
 *   512 characters; `forbidden` for any spelling of a URL under `base`, other than exactly the canonical four, unless
 *   the operator key signs
 */
export function resolvePredicate(attestationType: unknown, base: string, isOperator: boolean): string {
  const wrong = () =>
    invalidInput(
      PATH,
      `The attestation type must be one of ${[...PREDICATE_PATHS.keys()].join(", ")}, or an absolute https: URL of at most ${MAX_PREDICATE_CHARACTERS} characters.`,
    );
  if (typeof attestationType !== "string" || attestationType.length > MAX_PREDICATE_CHARACTERS) throw wrong();
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
  // Looked at before the spelling is: a respelt reserved predicate is refused for what it is.
  if (!isOperator && isReserved(attestationType, url, base))
    throw new CairnlogError("forbidden", `Predicates under ${base}/ are reserved to the operator key.`);
  if (!URL_TEXT.test(attestationType)) throw wrong();
  return attestationType;
}

function isReserved(text: string, url: URL, base: string): boolean {
  const own = new URL(base);
  // Readers who compare text would take `{base}/../x` for the operator's, wherever it leads.
  if (text.toLowerCase().startsWith(`${base.toLowerCase()}/`)) return true;
  if (host(url) !== host(own)) return false;
  const prefixes = new Set([...readings(own.pathname)].map((path) => (path.endsWith("/") ? path : `${path}/`)));
  for (const path of readings(url.pathname)) for (const prefix of prefixes) if (path.startsWith(prefix)) return true;
  return false;
}

/** The parser has folded the host's case, its encodings and the default port; a trailing dot names the same host. */
const host = (url: URL): string => `${url.hostname.replace(/\.+$/, "")}:${url.port}`;

/**
 * Every path that a server could take `path` for: as it is, and after each further decoding of its percent-encodings,
 * since each may be followed by a look-up of its own. Each decoding shortens the text, so this ends.
 */
function* readings(path: string): Iterable<string> {
  for (let text = path; ; ) {
    yield resolve(text);
    const decoded = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (decoded === text) return;
    text = decoded;
  }
}

/** Backslashes as slashes, doubled ones as one, dot segments resolved, letters in one case. */
function resolve(path: string): string {
  const segments = path.toLowerCase().split(/[\\/]+/);
  const resolved: string[] = [];
  for (const segment of segments)
    if (segment === "..") resolved.pop();
    else if (segment !== "" && segment !== ".") resolved.push(segment);
  const isFolder = ["", ".", ".."].includes(segments.at(-1)!);
  return `/${resolved.join("/")}${isFolder && resolved.length ? "/" : ""}`;
}
