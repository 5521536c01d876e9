/**
 * Ed25519 public keys as nearly all clients write them, without parsing: 1 µs, as fast as a look-up in a cache, and for any
 * number of signers. `parsePublicKey` takes 80 µs, most of them for the check of the point.
 */

import { hash } from "node:crypto";
import { loadChecked, requireOf } from "../../native/checked.js";
import { checkEd25519Point, ED25519_SPKI_PREFIX } from "../../verify/keys/publickey.js";

/** Loaded when it is first needed: the addon takes 40 ms to load. */
type Sodium = typeof import("sodium-native").default;

const require = requireOf(import.meta.url, "ed25519.js");
let loaded: Sodium | undefined;

/** The bindings to libsodium. The first call opens files. @throws CairnlogError as `loadChecked` does */
export function loadSodium(): Sodium {
  loaded ??= loadChecked("sodium-native", () => require("sodium-native") as Sodium);
  return loaded;
}

const sodium = loadSodium();

export const ED25519_BYTES = 32;
/** 32 bytes in base64. */
const POINT_CHARACTERS = 44;

// The prefix has 12 bytes, so base64 of the point begins with a character of its own.
const BEFORE = `-----BEGIN PUBLIC KEY-----\n${Buffer.from(ED25519_SPKI_PREFIX).toString("base64")}`;
const AFTER = "\n-----END PUBLIC KEY-----";
const PEM_CHARACTERS = BEFORE.length + POINT_CHARACTERS + AFTER.length;

/** A key whose point was not checked. */
interface UncheckedEd25519 {
  readonly algorithm: "ed25519";
  readonly raw: Buffer;
  readonly fingerprint: string;
  readonly pem: string;
}

/** SubjectPublicKeyInfo of the key that is being read. */
const der = Buffer.concat([ED25519_SPKI_PREFIX, Buffer.alloc(ED25519_BYTES)]);

/**
 * The Ed25519 key in `pem` if the text is exactly as OpenSSL and Node write it, without the last line feed; undefined for any
 * other text, which may be a key, too. The text may come from an attacker. The point is not checked.
 */
export function readPlainEd25519(pem: string): UncheckedEd25519 | undefined {
  if (pem.length !== PEM_CHARACTERS || !pem.startsWith(BEFORE) || !pem.endsWith(AFTER)) return undefined;
  const text = pem.slice(BEFORE.length, -AFTER.length);
  // Node skips what is not base64, and reads base64url. Written again, only the canonical spelling is the same.
  const raw = Buffer.from(text, "base64");
  if (raw.length !== ED25519_BYTES || raw.toString("base64") !== text) return undefined;
  raw.copy(der, ED25519_SPKI_PREFIX.length);
  return { algorithm: "ed25519", raw, fingerprint: `sha256:${hash("sha256", der)}`, pem: `${pem}\n` };
}

const doubled = Buffer.alloc(ED25519_BYTES);

/** Same rules as `checkEd25519Point`, in a seventh of its time. @throws CairnlogError `invalid-key` */
export function checkPoint(point: Uint8Array): void {
  // What is refused here, the portable check refuses once more, and says why.
  if (!isLargePoint(point)) checkEd25519Point(point);
}

/**
 * Whether these bytes are the canonical encoding of a point on the curve that is not of small order. False also for bytes in
 * memory that threads share.
 */
function isLargePoint(point: Uint8Array): boolean {
  if (point.length !== ED25519_BYTES || point.buffer instanceof SharedArrayBuffer || !isBelowPrime(point)) return false;
  try {
    sodium.crypto_core_ed25519_add(doubled, point, point);
  } catch {
    // Not on the curve.
    return false;
  }
  // The order of a point divides 8 exactly if that of its double divides 4. The four points of such an order have y = 0, 1
  // or -1, and no other point has: on -x² + y² = 1 + dx²y², y = 0 gives x² = -1, and y² = 1 gives x = 0.
  return !isSmallOrMinusOne(doubled);
}

/** Whether y < p = 2²⁵⁵ − 19. Bit 255 is the sign of x. */
const isBelowPrime = (point: Uint8Array): boolean =>
  point[0]! < 0xed || (point[31]! & 0x7f) !== 0x7f || point.subarray(1, 31).some((byte) => byte !== 0xff);

/** Whether y is 0, 1 or p − 1. */
function isSmallOrMinusOne(point: Uint8Array): boolean {
  const [first, last] = [point[0]!, point[31]! & 0x7f];
  const between = point.subarray(1, 31);
  if (first <= 1 && last === 0) return between.every((byte) => byte === 0);
  return first === 0xec && last === 0x7f && between.every((byte) => byte === 0xff);
}
