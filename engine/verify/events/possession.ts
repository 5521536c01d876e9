/**
 * Proofs that somebody holds a key: what a service asks for, and what entries show.
 *
 * A challenge is the text that a key signs to prove possession to a service (docs/spec §5.1). The text is bound to one
 * service and, if wanted, to one request. So a log that shows another log's challenge as its own gets no signature, and a
 * proof serves nothing but what its holder meant. Service, clients and explorer compute the same bytes.
 */
import { decodeBase64, encodeBase64, utf8 } from "../bytes/encoding.js";
import { kernel } from "../bytes/kernel.js";
import { canonicalHash } from "./hashed.js";
import { type KindedEvent, kindOf } from "./kinds.js";

/** The purpose of a challenge (docs/spec §5.1). */
export type ChallengePurpose = "login" | "general" | "recovery";

/** Bytes of a nonce that are random; as many that are bound to the terms follow. */
export const CHALLENGE_RANDOM_BYTES = 16;

/** What a challenge is bound to. */
export interface ChallengeTerms {
  /** Of the service, as a browser writes it: `https://log.example`, lower case, without a default port. */
  readonly origin: string;
  readonly purpose: ChallengePurpose;
  /** Of the key that signs. */
  readonly fingerprint: string;
  /** The one request that the proof is good for (`requestAct`); null for any request. */
  readonly act: string | null;
}

const FORM = "service.auth.v1";
/** Base64url of 32 bytes. */
const BYTES_PART = /^[A-Za-z0-9_-]{43}$/;

/** The beginning of a nonce; its 32 bytes in base64url follow. */
export const noncePrefix = (purpose: ChallengePurpose, fingerprint: string): string =>
  `${FORM}:${purpose}:${fingerprint}:`;

/** The half of a nonce's bytes that is bound to its terms. */
function boundBytes({ origin, purpose, fingerprint, act }: ChallengeTerms, random: Uint8Array): Uint8Array {
  const lines = [FORM, origin, purpose, fingerprint, base64url(random), act ?? ""];
  return kernel.sha256(utf8(lines.map((line) => `${line}\n`).join(""))).subarray(0, CHALLENGE_RANDOM_BYTES);
}

/**
 * The nonce of a challenge: the text whose UTF-8 bytes the key signs.
 * @param random `CHALLENGE_RANDOM_BYTES` random bytes
 */
export function challengeNonce(terms: ChallengeTerms, random: Uint8Array): string {
  const bytes = new Uint8Array(2 * CHALLENGE_RANDOM_BYTES);
  bytes.set(random);
  bytes.set(boundBytes(terms, random), CHALLENGE_RANDOM_BYTES);
  return noncePrefix(terms.purpose, terms.fingerprint) + base64url(bytes);
}

/**
 * Whether `nonce`, which a server chose, is a challenge with exactly these terms. It then cannot be a manifest, a message of
 * another protocol, another key's challenge, or one that a service with another origin made.
 */
export function isChallengeNonce(nonce: string, terms: ChallengeTerms): boolean {
  const prefix = noncePrefix(terms.purpose, terms.fingerprint);
  const part = nonce.slice(prefix.length);
  if (!nonce.startsWith(prefix) || !BYTES_PART.test(part)) return false;
  const bytes = decodeBase64(`${part.replaceAll("-", "+").replaceAll("_", "/")}=`);
  return bytes !== undefined && nonce === challengeNonce(terms, bytes.subarray(0, CHALLENGE_RANDOM_BYTES));
}

/** Members at the top of a body that exist only once the challenge does, so its act cannot cover them. */
const AFTER_CHALLENGE: ReadonlySet<string> = new Set([
  "auth",
  "challenge_id",
  "challenge_signature",
  "chain_signature",
]);

/**
 * The act of a request: what names it in a challenge. SHA-256, in hex, of the canonical JSON of method, path and body. The
 * members of the body that cannot exist before the challenge are left out: `auth`, and where the signed challenge is at the
 * top of the body, `challenge_id`, `challenge_signature` and `chain_signature`.
 * @param path from `/api/v1` on
 * @throws CairnlogError `invalid-input` for a body that canonical JSON does not cover
 */
export function requestAct(method: string, path: string, body: Readonly<Record<string, unknown>>): string {
  const named = Object.fromEntries(Object.entries(body).filter(([name]) => !AFTER_CHALLENGE.has(name)));
  return canonicalHash({ body: named, method, path });
}

function base64url(bytes: Uint8Array): string {
  return encodeBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

// Proofs of possession in the log (docs/spec §4.7). They follow from the entries alone.
// Anybody can register any public key, so a registration without a signature says nothing about the holder.

/**
 * Whether an event that creates a key contains a signature by that key. The signature was checked when the event was
 * appended. It is over the values of the request, and the log has its text.
 */
export function showsPossession({ event_type, payload }: KindedEvent): boolean {
  if (event_type === "key_registration") return typeof payload.possession_signature === "string";
  return event_type === "key_succession" && typeof payload.new_key_signature === "string";
}

/**
 * The key that an event proves, because the event required its signature or session; undefined if it required none. For
 * the key that an event creates, see `showsPossession`. Imported history may contain any text here, so the result may
 * not be a fingerprint.
 */
export function actingKey({ event_type, payload }: KindedEvent): string | undefined {
  const actor = kindOf(event_type)?.actor ?? null;
  const fingerprint = actor === null ? undefined : payload[actor];
  return typeof fingerprint === "string" ? fingerprint : undefined;
}
