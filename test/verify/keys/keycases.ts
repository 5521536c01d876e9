/**
 * Public keys that every reader of keys must accept or refuse in the same way: the service, the engine, the offline
 * verifier. Made with node:crypto, the openssl command and @noble/curves; otherwise DER and PEM are written by hand.
 */
import { execFileSync } from "node:child_process";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519.js";
import { p256 } from "@noble/curves/nist.js";
import {
  bigEndian,
  bytes,
  ED25519_ID,
  integer,
  littleEndian,
  oddNumber,
  P256_ID,
  P256_PRIME,
  pem,
  RSA_ID,
  rsaKey,
  spki,
  tlv,
} from "./keys.js";

export type Named<T> = readonly [name: string, value: T];

/** The prime of Curve25519's field. A coordinate p + y would be another encoding of y. */
const FIELD = 2n ** 255n - 19n;

/** The eight points of order 1, 2, 4 and 8, as RFC 8032 §5.1.2 encodes them. */
export const SMALL_ORDER: readonly string[] = [
  `01${"00".repeat(31)}`,
  `ec${"ff".repeat(30)}7f`,
  "00".repeat(32),
  `${"00".repeat(31)}80`,
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
];
/** Other 32 bytes that a careless decoder takes for one of these points: x = 0 with a sign, and y + p. */
export const SMALL_ORDER_RESPELLED: readonly string[] = [
  `01${"00".repeat(30)}80`,
  `ec${"ff".repeat(31)}`,
  `ed${"ff".repeat(30)}7f`,
  `ed${"ff".repeat(31)}`,
  `ee${"ff".repeat(30)}7f`,
  `ee${"ff".repeat(31)}`,
];

const openssl = (args: readonly string[], input = "") =>
  execFileSync("openssl", args, { input, encoding: "utf8", stdio: ["pipe", "pipe", "ignore"] });
const publicPem = (key: KeyObject): string => key.export({ type: "spki", format: "pem" }) as string;

const edPoint = ed25519.getPublicKey(new Uint8Array(32).fill(1));
const pPoint = p256.Point.fromBytes(p256.getPublicKey(new Uint8Array(32).fill(1)));
const modulus = oddNumber(2048);
const rsa = (n: bigint, e: bigint) => pem(spki(RSA_ID, rsaKey(n, e)));

export const ED25519_PEM = pem(spki(ED25519_ID, edPoint));
export const P256_PEM = pem(spki(P256_ID, pPoint.toBytes(false)));
export const P256_COMPRESSED_PEM = pem(spki(P256_ID, pPoint.toBytes(true)));
export const RSA_PEM = rsa(modulus, 65537n);
const body = ED25519_PEM.split("\n")[1]!;

/** Other texts for the key `ED25519_PEM`. */
export const SPELLINGS: readonly Named<string>[] = [
  ["with CR and LF", ED25519_PEM.replaceAll("\n", "\r\n")],
  ["without the last line feed", ED25519_PEM.trimEnd()],
  ["with white space around", `\n  ${ED25519_PEM}\n\n`],
  ["in more lines", ED25519_PEM.replace(body, `${body.slice(0, 20)}\n${body.slice(20)}`)],
];

/** The label of the algorithm, and a key. */
export const ACCEPTED_KEYS: readonly Named<string>[] = [
  ["ed25519", publicPem(generateKeyPairSync("ed25519").publicKey)],
  ["ed25519", ED25519_PEM],
  ...SPELLINGS.map(([, text]) => ["ed25519", text] as const),
  ["ecdsa-p256", publicPem(generateKeyPairSync("ec", { namedCurve: "prime256v1" }).publicKey)],
  ["ecdsa-p256", P256_PEM],
  ["ecdsa-p256", P256_COMPRESSED_PEM],
  ["rsa-2048", publicPem(generateKeyPairSync("rsa", { modulusLength: 2052 }).publicKey)],
  ...[2048, 2049, 3072, 8192].map((bits) => ["rsa-2048", rsa(oddNumber(bits), 65537n)] as const),
];

const offCurve = Buffer.from(pPoint.toBytes(false));
offCurve[64]! ^= 1;
const hybrid = Buffer.from(pPoint.toBytes(false));
hybrid[0] = 6 + (hybrid[64]! & 1);
const ecWith = (parameters: string) => tlv(0x30, bytes("06072a8648ce3d0201"), bytes(parameters));
const named = (namedCurve: string) => publicPem(generateKeyPairSync("ec", { namedCurve }).publicKey);
const explicit = openssl(["ecparam", "-name", "prime256v1", "-param_enc", "explicit", "-genkey", "-noout"]);
const certificate = openssl([
  ...["req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=x", "-keyout", "/dev/null"],
]);

/** Encodings with y from p to 2^255 − 1, for each such y that has a point. */
const respelledPoints: readonly Named<string>[] = Array.from({ length: 19 }, (_, y) => BigInt(y)).flatMap((y) => {
  try {
    ed25519.Point.fromBytes(littleEndian(y));
  } catch {
    return [];
  }
  return [0n, 2n ** 255n].map((sign) => [
    `Ed25519 y = p + ${y}${sign ? ", x odd" : ""}`,
    pem(spki(ED25519_ID, littleEndian(FIELD + y + sign))),
  ]) satisfies Named<string>[];
});

/** A key whose base64 is spelled otherwise in base64url: refused for its spelling, and for nothing else. */
function withBothAlphabets(): string {
  const text = publicPem(generateKeyPairSync("ed25519").publicKey);
  return /[+/]/.test(text) ? text : withBothAlphabets();
}

export const REFUSED_KEYS: readonly Named<string>[] = [
  ["nothing", ""],
  ["no PEM", body],
  ["P-384", named("secp384r1")],
  ["secp256k1", named("secp256k1")],
  ["X25519", publicPem(generateKeyPairSync("x25519").publicKey)],
  ["Ed448", publicPem(generateKeyPairSync("ed448").publicKey)],
  ["RSA-PSS", publicPem(generateKeyPairSync("rsa-pss", { modulusLength: 2048 }).publicKey)],
  ["certificate", certificate],
  ["PKCS #1 block", pem(rsaKey(modulus, 65537n), "RSA PUBLIC KEY")],
  ["PKCS #1 under the SPKI label", pem(rsaKey(modulus, 65537n))],
  ["two blocks", ED25519_PEM + P256_PEM],
  ["text before", `key:\n${ED25519_PEM}`],
  ["text after", `${ED25519_PEM}x`],
  ["a zero-width space before", `\u200b${ED25519_PEM}`],
  ["PEM headers", ED25519_PEM.replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\n\n")],
  ["other end label", ED25519_PEM.replace("END PUBLIC", "END RSA PUBLIC")],
  ["label in lower case", ED25519_PEM.replaceAll("PUBLIC KEY", "public key")],
  ["four dashes", ED25519_PEM.replaceAll("-----", "----")],
  ["all in one line", ED25519_PEM.replaceAll("\n", "")],
  ["empty line", ED25519_PEM.replace(body, `${body}\n`)],
  ["base64 without padding", P256_PEM.replaceAll("=", "")],
  ["base64url of a key", withBothAlphabets().replaceAll("+", "-").replaceAll("/", "_")],
  ["superfluous padding", ED25519_PEM.replace(body, `${body}====`)],
  ["unused base64 bits set", P256_PEM.replace(/.==/, (end) => `${String.fromCharCode(end.charCodeAt(0) + 1)}==`)],
  ["NUL inside", ED25519_PEM.replace(body, `${body.slice(0, 10)}\0${body.slice(11)}`)],
  ["too long", `${" ".repeat(5000)}${ED25519_PEM}`],
  ["bytes behind the DER", pem(Buffer.concat([spki(ED25519_ID, edPoint), Buffer.from([0])]))],
  ["bytes behind the bit string", pem(tlv(0x30, ED25519_ID, tlv(0x03, Buffer.from([0]), edPoint), tlv(0x05)))],
  ["bit string with unused bits", pem(tlv(0x30, ED25519_ID, tlv(0x03, Buffer.from([1]), edPoint)))],
  ["empty bit string", pem(tlv(0x30, ED25519_ID, tlv(0x03)))],
  ["long-form DER length", pem(Buffer.concat([bytes("30812a"), spki(ED25519_ID, edPoint).subarray(2)]))],
  ["indefinite DER length", pem(Buffer.concat([bytes("3080"), spki(ED25519_ID, edPoint).subarray(2), bytes("0000")]))],
  ["truncated DER", pem(spki(ED25519_ID, edPoint).subarray(0, -1))],
  ["wrong OID, Ed25519 bytes under Ed448", pem(spki(tlv(0x30, bytes("06032b6571")), edPoint))],
  ["wrong OID, Ed25519 bytes under X25519", pem(spki(tlv(0x30, bytes("06032b656e")), edPoint))],
  ["OID in more bytes than it needs", pem(spki(tlv(0x30, bytes("06042b80656f")), edPoint))],
  ["Ed25519 with NULL parameters", pem(spki(tlv(0x30, bytes("06032b65700500")), edPoint))],
  ["Ed25519 of 31 bytes", pem(spki(ED25519_ID, edPoint.subarray(1)))],
  ["Ed25519 of 33 bytes", pem(spki(ED25519_ID, Buffer.concat([edPoint, edPoint.subarray(0, 1)])))],
  ["Ed25519 off the curve", pem(spki(ED25519_ID, bytes(`02${"00".repeat(31)}`)))],
  ...respelledPoints,
  ...SMALL_ORDER.map((hex) => [`Ed25519 of small order ${hex}`, pem(spki(ED25519_ID, bytes(hex)))] as const),
  ...SMALL_ORDER_RESPELLED.map(
    (hex) => [`Ed25519 of small order, respelled ${hex}`, pem(spki(ED25519_ID, bytes(hex)))] as const,
  ),
  ["explicit curve parameters", openssl(["pkey", "-pubout"], explicit)],
  ["P-256 off the curve", pem(spki(P256_ID, offCurve))],
  ["P-256 (0, 0)", pem(spki(P256_ID, bytes(`04${"00".repeat(64)}`)))],
  ["P-256 infinity", pem(spki(P256_ID, bytes("00")))],
  ["P-256 infinity in 65 bytes", pem(spki(P256_ID, bytes("00".repeat(65))))],
  ["P-256 hybrid form", pem(spki(P256_ID, hybrid))],
  ["P-256 without form", pem(spki(P256_ID, pPoint.toBytes(false).subarray(1)))],
  ["P-256 compressed, x on no point", pem(spki(P256_ID, bytes(`02${"00".repeat(31)}01`)))],
  ["P-256 x ≥ p", pem(spki(P256_ID, Buffer.concat([Buffer.from([2]), bigEndian(P256_PRIME + 5n)])))],
  ["P-256 parameters missing", pem(spki(tlv(0x30, bytes("06072a8648ce3d0201")), pPoint.toBytes(false)))],
  ["P-256 parameters NULL", pem(spki(ecWith("0500"), pPoint.toBytes(false)))],
  ["P-256 for ECDH only", pem(spki(tlv(0x30, bytes("06052b8104010c06082a8648ce3d030107")), pPoint.toBytes(false)))],
  ["P-256 bytes under secp256k1", pem(spki(ecWith("06052b8104000a"), pPoint.toBytes(false)))],
  ["RSA 512", rsa(oddNumber(512), 65537n)],
  ["RSA 1024", rsa(oddNumber(1024), 65537n)],
  ["RSA 2047", rsa(oddNumber(2047), 65537n)],
  ["RSA 8193", rsa(oddNumber(8193), 65537n)],
  ["RSA 16384", rsa(oddNumber(16_384), 65537n)],
  ["RSA even", rsa(modulus + 1n, 65537n)],
  ["RSA e = 0", rsa(modulus, 0n)],
  ["RSA e = 1", rsa(modulus, 1n)],
  ["RSA e = 2", rsa(modulus, 2n)],
  ["RSA e = 3", rsa(modulus, 3n)],
  ["RSA e = 65536", rsa(modulus, 65536n)],
  ["RSA e = 65539", rsa(modulus, 65539n)],
  ["RSA e of 65 bits", rsa(modulus, 2n ** 64n + 1n)],
  ["RSA e as long as the modulus", rsa(modulus, modulus - 2n)],
  ["RSA zero modulus", rsa(0n, 65537n)],
  ["RSA without NULL parameters", pem(spki(tlv(0x30, bytes("06092a864886f70d010101")), rsaKey(modulus, 65537n)))],
  ["RSA negative modulus", pem(spki(RSA_ID, tlv(0x30, tlv(0x02, integer(modulus).subarray(5)), integer(65537n))))],
  [
    "RSA padded modulus",
    pem(spki(RSA_ID, tlv(0x30, tlv(0x02, bytes("00"), integer(modulus).subarray(4)), integer(65537n)))),
  ],
  ["RSA padded exponent", pem(spki(RSA_ID, tlv(0x30, integer(modulus), bytes("020400010001"))))],
  ["RSA negative exponent", pem(spki(RSA_ID, tlv(0x30, integer(modulus), bytes("0201ff"))))],
  ["RSA empty exponent", pem(spki(RSA_ID, tlv(0x30, integer(modulus), bytes("0200"))))],
  ["RSA third integer", pem(spki(RSA_ID, tlv(0x30, integer(modulus), integer(65537n), integer(1n))))],
  ["RSA bytes behind the pair", pem(spki(RSA_ID, Buffer.concat([rsaKey(modulus, 65537n), Buffer.from([0])])))],
];
