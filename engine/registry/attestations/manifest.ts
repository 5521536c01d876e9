/**
 * Manifests as they are submitted and verified: their shape, and the bytes that each attestation in them may have
 * signed. An attacker may choose everything in a manifest.
 */

import { CairnlogError } from "../../base/error.js";
import { utf8 } from "../../verify/bytes/encoding.js";
import { type Attestation, type Coverage, type Manifest, normaliseContentHash } from "../../verify/events/manifest.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { fits, isObject, type JsonObject } from "../../verify/json/shape.js";
import {
  ATTESTATION_ID,
  ATTESTATION_TYPE,
  isKeyAlgorithm,
  KEY_ALGORITHMS,
  MAX_ATTESTATIONS,
  MAX_TAG_CHARACTERS,
  MAX_TAGS,
  PREDICATE_PATHS,
  STATEMENT,
  TITLE,
} from "../../verify/keys/contract.js";
import { requestedTime } from "../../verify/tree/entry.js";
import { isFingerprint } from "../events/keys.js";
import { boundedText, Faults, invalidInput } from "../shared/input.js";

interface ShapedManifest extends Manifest {
  readonly attestations: readonly Attestation[];
}

/** A manifest that has the right shape. */
export interface CheckedManifest {
  readonly manifest: ShapedManifest;
  /** `sha256:` and lower-case hex. */
  readonly contentHash: string;
  readonly title: string;
  readonly tags: readonly string[];
}

/**
 * Checks the shape of `value`. Unknown members are kept, since they are signed.
 * @param path where it stands in the input, for the details of an error
 * @throws CairnlogError `invalid-input` with every fault in `details`
 */
export function readManifest(value: unknown, path: string): CheckedManifest {
  const faults = new Faults();
  if (!isObject(value)) faults.add(path, "It must be an object.");
  faults.check();
  const { document, attestations } = value as Record<string, unknown>;
  if (!isObject(document)) faults.add(`${path}/document`, "It must be an object.");
  faults.check();
  const members = document as Record<string, unknown>;
  const title = boundedText(members.title, `${path}/document/title`, TITLE, faults);
  const contentHash = normaliseContentHash(members.content_hash);
  if (contentHash === undefined)
    faults.add(`${path}/document/content_hash`, "It must be a SHA-256 in hexadecimal, bare or with sha256: before it.");
  const tags = readTags(members.tags, `${path}/document/tags`, faults);
  checkAttestations(attestations, `${path}/attestations`, faults);
  faults.check();
  return { manifest: value as ShapedManifest, contentHash: contentHash!, title: title!, tags };
}

/**
 * Type and statement of a submission. If the document of its manifest names them, they are signed, and the body must
 * not name others.
 * @param input body of the submission
 * @param document of its manifest
 */
export function readTerms(
  input: Readonly<Record<string, unknown>>,
  document: JsonObject,
  faults: Faults,
): { readonly type: unknown; readonly statement: string | null } {
  const type = input.attestation_type ?? undefined;
  const statement = input.intent_statement ?? undefined;
  const path = "/manifest/document";
  const [signedType, signedStatement] = [document.attestation_type, document.intent_statement];
  if (signedType !== undefined && typeof signedType !== "string")
    faults.add(`${path}/attestation_type`, "It must be a string.");
  else if (type !== undefined && signedType !== undefined && type !== signedType)
    faults.add("/attestation_type", "It is another type than the manifest's document names, which is what is signed.");
  if (statement !== undefined && signedStatement !== undefined && statement !== signedStatement)
    faults.add(
      "/intent_statement",
      "It is another statement than the manifest's document names, which is what is signed.",
    );
  const checked = (value: unknown, at: string) =>
    value === undefined || value === null ? null : (boundedText(value, at, STATEMENT, faults) ?? null);
  const fromDocument = checked(signedStatement, `${path}/intent_statement`);
  return {
    type: type ?? (typeof signedType === "string" ? signedType : undefined),
    statement: statement === undefined ? fromDocument : checked(statement, "/intent_statement"),
  };
}

/** The tags that the log takes over: all strings of an array, or none if the value has any other form. */
function readTags(value: unknown, path: string, faults: Faults): readonly string[] {
  if (!Array.isArray(value) || !value.every((tag) => typeof tag === "string")) return [];
  if (value.length > MAX_TAGS) faults.add(path, `There can be at most ${MAX_TAGS} tags.`);
  value.slice(0, MAX_TAGS).forEach((tag: string, i) => {
    if (!fits(tag, MAX_TAG_CHARACTERS))
      faults.add(`${path}/${i}`, `A tag can have at most ${MAX_TAG_CHARACTERS} characters.`);
  });
  return value;
}

function checkAttestations(value: unknown, path: string, faults: Faults): void {
  if (!Array.isArray(value)) {
    faults.add(path, "It must be an array; it may be empty.");
    return;
  }
  if (value.length > MAX_ATTESTATIONS) {
    faults.add(path, `A manifest can carry at most ${MAX_ATTESTATIONS} attestations.`);
    return;
  }
  const ids = new Set<unknown>();
  value.forEach((attestation: unknown, i) => {
    checkAttestation(attestation, `${path}/${i}`, faults);
    const id = isObject(attestation) ? attestation.id : undefined;
    // The same attestation must not count twice.
    if (id !== undefined && ids.has(id)) faults.add(`${path}/${i}/id`, "Another attestation has the same id.");
    ids.add(id);
  });
}

/** Does not check whether the values are true: a wrong signature makes the attestation invalid, not the manifest. */
function checkAttestation(value: unknown, path: string, faults: Faults): void {
  if (!isObject(value)) {
    faults.add(path, "It must be an object.");
    return;
  }
  const id = boundedText(value.id, `${path}/id`, ATTESTATION_ID, faults);
  // Ids of documents and keys look like this. The attestation graph must not mistake an attestation for one of them.
  if (id?.startsWith("sha256:")) faults.add(`${path}/id`, "It must not look like a fingerprint or a hash.");
  boundedText(value.type, `${path}/type`, ATTESTATION_TYPE, faults);
  const scope = value.scope;
  if (!isObject(scope) || normaliseContentHash(scope.content_hash) === undefined)
    faults.add(`${path}/scope/content_hash`, "It must be a SHA-256 in hexadecimal, bare or with sha256: before it.");
  if (!isFingerprint(value.signer_key_fingerprint))
    faults.add(`${path}/signer_key_fingerprint`, "It must be sha256: and 64 lower-case hexadecimal characters.");
  if (!isKeyAlgorithm(value.signature_algorithm))
    faults.add(`${path}/signature_algorithm`, `It must be one of ${KEY_ALGORITHMS.join(", ")}.`);
  if (typeof value.signature !== "string") faults.add(`${path}/signature`, "It must be a string.");
  if (requestedTime(value.timestamp) === undefined)
    faults.add(`${path}/timestamp`, "It must be an ISO 8601 date and time with an offset.");
  const { intent_statement = null } = value;
  if (intent_statement !== null) boundedText(intent_statement, `${path}/intent_statement`, STATEMENT, faults);
}

/** Bytes that an attestation may have signed, and their coverage. */
interface Payload {
  readonly covers: Coverage;
  readonly bytes: Uint8Array;
}

/**
 * The payloads of every attestation in a manifest. `attestationPayloads` gives the same payloads for one attestation.
 * Here each part of the manifest is canonicalised only once; otherwise a megabyte with many attestations would cost
 * seconds.
 */
export class ManifestPayloads {
  readonly #alone: Payload;
  readonly #head: string;
  readonly #tail: string;
  readonly #attestations: readonly string[];

  /** @throws CairnlogError `not-i-json` */
  constructor(manifest: Manifest) {
    const bare = canonicalJson({ ...manifest, attestations: [] });
    // RFC 8785 sorts members by UTF-16 units, as `<` does. The members before `attestations` therefore begin the text.
    const before = canonicalJson(
      Object.fromEntries(Object.entries(manifest).filter(([name]) => name < "attestations")),
    );
    this.#head = `${before.slice(0, -1)}${before === "{}" ? "" : ","}"attestations":[`;
    this.#tail = bare.slice(this.#head.length);
    this.#alone = { covers: "document", bytes: utf8(bare) };
    this.#attestations = manifest.attestations.map(canonicalJson);
  }

  /** The payloads that attestation number `position` may have signed, the one with the larger coverage first. */
  *of(position: number): Iterable<Payload> {
    if (position > 0) {
      const prior = this.#attestations.slice(0, position).join(",");
      yield { covers: "document-and-prior", bytes: utf8(this.#head + prior + this.#tail) };
    }
    yield this.#alone;
  }

  /** Bytes of the whole manifest. */
  get size(): number {
    return this.#attestations.reduce((sum, { length }) => sum + length, this.#alone.bytes.length);
  }
}

// Predicates: URLs that say what an attestation states, and that are the event types of their entries. Predicates under
// the predicate base belong to the operator, except the four canonical ones (docs/spec §7.5).

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
