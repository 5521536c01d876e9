/** Payloads of claims that are accepted, and others, which are refused without other effects. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CairnlogError } from "#cairnlog/engine/base/error.js";
import {
  decryptClaim,
  deriveCommitmentKey,
  encryptClaim,
  MAX_CIPHERTEXT_BYTES,
  readClaimPayload,
  verifyClaimCommitment,
} from "#cairnlog/engine/verify/claims/claims.js";
import type { JsonObject } from "#cairnlog/engine/verify/json/shape.js";
import { parsePublicKey } from "#cairnlog/engine/verify/keys/publickey.js";
import { texts } from "../../texts.js";
import { bytes } from "../keys/keys.js";
import { base64, decoded, newRecipient, refusal } from "./ecies.js";

const recipient = newRecipient();
const publicKey = parsePublicKey(recipient.publicKey);
const lookupKey = "0123456789abcdef".repeat(4);
const plaintext = { salary: 52000 };
const encrypt = (value: JsonObject = plaintext) => encryptClaim(value, { recipient: publicKey, lookupKey });

describe("an ephemeral key that is no point of the curve", () => {
  const { payload } = encrypt();
  const point = decoded(payload.ephemeral_public_key);
  const [x, y] = [point.subarray(1, 33), point.subarray(33)];
  const offCurve = Buffer.from(point);
  offCurve[64]! ^= 1;
  const compressed = Buffer.concat([Buffer.from([2 + (y[31]! & 1)]), x]);
  // p ≡ 0: the same residue under another spelling.
  const p = bytes("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff");
  const points: [string, Buffer][] = [
    ["off the curve", offCurve],
    [
      "of another curve",
      Buffer.concat([
        Buffer.from([4]),
        bytes(
          "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8",
        ),
      ]),
    ],
    ["the identity", Buffer.from([0])],
    ["the identity in 65 bytes", Buffer.alloc(65)],
    ["(0, 0)", Buffer.concat([Buffer.from([4]), Buffer.alloc(64)])],
    ["a coordinate beyond the field", Buffer.concat([Buffer.from([4]), p, y])],
    ["compressed", compressed],
    ["hybrid", Buffer.concat([Buffer.from([6 + (y[31]! & 1)]), x, y])],
    ["without its prefix", point.subarray(1)],
    ["with a byte too many", Buffer.concat([point, Buffer.alloc(1)])],
    ["nothing", Buffer.alloc(0)],
  ];

  it.each(points)("%s", (_, bad) => {
    const changed = { ...payload, ephemeral_public_key: base64(bad) };
    expect(refusal(() => readClaimPayload(changed))).toBe("invalid-input");
    expect(refusal(() => decryptClaim(changed, recipient.scalar))).toBe("invalid-input");
    expect(refusal(() => deriveCommitmentKey(changed, recipient.scalar))).toBe("invalid-input");
  });
});

describe("caps", () => {
  const { payload } = encrypt();
  const paths = (changes: Record<string, unknown>) => {
    try {
      readClaimPayload({ ...payload, ...changes });
    } catch (error) {
      return (error as CairnlogError).details!.map(({ path }) => path);
    }
    return [];
  };
  const room = MAX_CIPHERTEXT_BYTES - 16 - '{"text":""}'.length;

  it("the ciphertext may have 262144 bytes: the plaintext 262128, counted in bytes and not in characters", () => {
    expect(MAX_CIPHERTEXT_BYTES).toBe(262_144);
    for (const [character, size] of [
      ["a", 1],
      ["é", 2],
      ["🪨", 4],
    ] as const) {
      const text = character.repeat(Math.floor(room / size)) + "a".repeat(room % size);
      const full = encrypt({ text });
      expect(decoded(full.payload.ciphertext)).toHaveLength(262_144);
      expect(decryptClaim(full.payload, recipient.scalar).plaintext).toEqual({ text });
      expect(refusal(() => encrypt({ text: `${text}a` }))).toBe("payload-too-large");
    }
  });

  it("a ciphertext of 17 to 262144 bytes is taken", () => {
    for (const length of [17, 18, 19, 262_142, 262_143, 262_144])
      expect(paths({ ciphertext: base64(Buffer.alloc(length)) })).toEqual([]);
    for (const length of [0, 1, 16, 262_145, 262_146, 262_147, 700_000])
      expect(paths({ ciphertext: base64(Buffer.alloc(length)) })).toEqual(["/ciphertext"]);
  });

  it("a lookup key of 32 to 128 characters is taken, a commitment of 64", () => {
    for (const length of [32, 33, 64, 127, 128]) expect(paths({ lookup_key: "a".repeat(length) })).toEqual([]);
    for (const lookup_key of [
      "",
      "a".repeat(31),
      "a".repeat(129),
      "A".repeat(32),
      "g".repeat(32),
      `${"a".repeat(32)}\n`,
      7,
      null,
    ])
      expect(paths({ lookup_key })).toEqual(["/lookup_key"]);
    for (const commitment of ["a".repeat(63), "a".repeat(65), "A".repeat(64), "é".repeat(64), null, undefined])
      expect(paths({ commitment })).toEqual(["/commitment"]);
  });

  it("base64 has one spelling", () => {
    const { nonce } = payload;
    for (const spelling of [
      ` ${nonce}`,
      `${nonce}\n`,
      `${nonce}=`,
      nonce.slice(1),
      `${nonce}AAAA`,
      "",
      nonce.replace(/.$/, "_"),
    ])
      expect(paths({ nonce: spelling })).toEqual(["/nonce"]);
    expect(paths({ ciphertext: `${"A".repeat(26)}B=` })).toEqual(["/ciphertext"]);
    expect(paths({ ciphertext: base64(Buffer.alloc(20)).replace(/=+$/, "") })).toEqual(["/ciphertext"]);
  });

  it("everything wrong is named at once, and commitment_alg before all else", () => {
    expect(paths({ nonce: 1, ciphertext: {}, commitment: [], lookup_key: "", ephemeral_public_key: null })).toEqual([
      "/ephemeral_public_key",
      "/nonce",
      "/ciphertext",
      "/commitment",
      "/lookup_key",
    ]);
    expect(paths({ recipient_fingerprint: null })).toEqual(["/recipient_fingerprint"]);
    for (const commitment_alg of ["sha256", undefined, null, "", "HMAC-SHA256-ECDH-V1", ["hmac-sha256-ecdh-v1"]]) {
      expect(paths({ commitment_alg, nonce: 1 })).toEqual(["/commitment_alg"]);
      expect(refusal(() => readClaimPayload({ ...payload, commitment_alg }))).toBe("unsupported-commitment");
    }
    expect(refusal(() => readClaimPayload({}))).toBe("unsupported-commitment");
  });

  it("members that are not a claim's are left out", () => {
    expect(readClaimPayload({ ...payload, posted_by: "me", tags: ["x"] }).payload).toEqual(payload);
  });
});

describe("whatever is put in place of a payload", () => {
  const { payload, commitmentKey } = encrypt();
  const anything = fc.anything({ key: texts(), withNullPrototype: true, withBigInt: true, withTypedArray: true });

  it("ends in a CairnlogError", () => {
    // The code of a CairnlogError; anything else is thrown.
    const tryAll = (value: unknown) => {
      for (const work of [
        () => readClaimPayload(value),
        () => decryptClaim(value, recipient.scalar),
        () => deriveCommitmentKey(value, recipient.scalar),
        () => verifyClaimCommitment(value, plaintext, commitmentKey),
      ])
        expect(refusal(work)).toMatch(/^[a-z-]+$/);
    };
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.keys(payload), "recipient_fingerprint"),
        fc.oneof(anything, texts(), fc.base64String()),
        (member, value) => {
          tryAll(value);
          tryAll({ ...payload, [member]: value });
        },
      ),
      { numRuns: 400 },
    );
  });

  it("a payload that is taken is taken again, the same", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 17, maxLength: 64 }),
        fc.uint8Array({ minLength: 12, maxLength: 12 }),
        (ct, n) => {
          const claim = readClaimPayload({ ...payload, ciphertext: base64(ct), nonce: base64(n) });
          expect(base64(claim.ciphertext)).toBe(claim.payload.ciphertext);
          expect(readClaimPayload(claim.payload)).toEqual(claim);
        },
      ),
      { numRuns: 100 },
    );
  });
});
