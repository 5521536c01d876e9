/** Encrypted claims compared with a second implementation in both directions, and all changes by an attacker. */
import { hkdfSync, randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ClaimPayload,
  decryptClaim,
  deriveCommitmentKey,
  deriveLookupKey,
  encryptClaim,
  unwrapBytes,
  verifyClaimCommitment,
} from "#cairnlog/engine/verify/claims/claims.js";
import type { JsonObject } from "#cairnlog/engine/verify/json/shape.js";
import { parsePublicKey } from "#cairnlog/engine/verify/keys/publickey.js";
import { jsonValues, texts } from "../../texts.js";
import { bytes, sha256 } from "../keys/keys.js";
import { base64, decoded, hmacOf, jcs, newRecipient, open, refusal, seal } from "./ecies.js";

const recipient = newRecipient();
const stranger = newRecipient();
const publicKey = parsePublicKey(recipient.publicKey);
const lookupKey = "0123456789abcdef".repeat(4);
const plaintext = { salary: 52000, name: "Zoë 🪨", nested: { b: [1, null, true], a: "\u2028" } };

const encrypt = (value: JsonObject | Uint8Array = plaintext, nameRecipient = false) =>
  encryptClaim(value, { recipient: publicKey, lookupKey, nameRecipient });
const jsonObject = fc
  .dictionary(
    texts().filter((name) => name !== "__proto__"),
    jsonValues(),
  )
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject)
  .filter((value) => !JSON.stringify(value).includes("__proto__"));

describe("against node:crypto", () => {
  it("what we encrypt, it decrypts to the same canonical text, with the same commitment key", () => {
    fc.assert(
      fc.property(jsonObject, fc.boolean(), (value, named) => {
        const { payload, commitmentKey } = encrypt(value, named);
        const opened = open(payload, recipient);
        expect(opened.text).toBe(jcs(value));
        expect(opened.commitmentKey).toBe(commitmentKey);
        expect(payload.recipient_fingerprint).toBe(named ? recipient.fingerprint : undefined);
      }),
      { numRuns: 60 },
    );
  });

  it("what it encrypts, we decrypt", () => {
    fc.assert(
      fc.property(jsonObject, fc.boolean(), (value, named) => {
        const options = named ? { recipientFingerprint: recipient.fingerprint } : {};
        const { payload, commitmentKey } = seal(value, recipient.point, options);
        const opened = decryptClaim(payload, recipient.scalar);
        expect(jcs(opened.plaintext)).toBe(jcs(value));
        expect(opened.commitmentKey).toBe(commitmentKey);
        expect(deriveCommitmentKey(payload, recipient.scalar)).toBe(commitmentKey);
        expect(verifyClaimCommitment(payload, value, commitmentKey)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it("lookup keys are HKDF of the secret, told apart by their context", () => {
    const secret = randomBytes(32);
    const expected = Buffer.from(hkdfSync("sha256", secret, "", "service.claim.v1 lookup\0payroll é", 32));
    expect(deriveLookupKey(secret, "payroll é")).toBe(expected.toString("hex"));
    expect(deriveLookupKey(secret, "")).not.toBe(deriveLookupKey(secret, "\0"));
    expect(deriveLookupKey(randomBytes(16), "")).toMatch(/^[0-9a-f]{64}$/);
    expect(refusal(() => deriveLookupKey(randomBytes(15), ""))).toBe("invalid-input");
    expect(refusal(() => deriveLookupKey(secret, "\ud800"))).toBe("invalid-input");
  });

  // Made once by the second implementation. A change of the construction would make claims in the log unreadable.
  it("a claim of this format stays readable", () => {
    const scalar = bytes("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721");
    const payload = {
      commitment_alg: "hmac-sha256-ecdh-v1",
      ephemeral_public_key: VECTOR.ephemeral_public_key,
      commitment: VECTOR.commitment,
      lookup_key: "ab".repeat(16),
      nonce: "AAECAwQFBgcICQoL",
      ciphertext: VECTOR.ciphertext,
    };
    expect(decryptClaim(payload, scalar)).toEqual({
      plaintext: { claim: "é", n: 1 },
      commitmentKey: VECTOR.commitment_key,
    });
  });
});

const VECTOR = {
  ephemeral_public_key: "BB4YUy/UdUwC8wQdnHXOszuD/9gax85P6ILMscmLxYlupGwxHE4v9A3ZajZT5uRURdMt/khuztdcepDGoYiBwKM=",
  commitment: "57d64930ede57fc2cf1c252912914bfe184343e5b28bb311be3fd0308ee606c2",
  ciphertext: "s13IZKPuidGhDSJzts2BjDEwepHLqw7pzS50NzZl44khbrwL",
  commitment_key: "d38dd5c7afe3b13e41640b3b4ea7bcc9722367d3ce1bcf92dbdc90f0762fe0cd",
};

it("equal plaintexts give unrelated payloads", () => {
  const [a, b] = [encrypt(), encrypt()];
  for (const member of ["ephemeral_public_key", "nonce", "ciphertext", "commitment"] as const)
    expect(a.payload[member]).not.toBe(b.payload[member]);
  expect(a.commitmentKey).not.toBe(b.commitmentKey);
});

describe("a claim that was changed", () => {
  const { payload } = encrypt();
  const other = encrypt({ salary: 1 }).payload;
  const decrypt = (changes: Partial<Record<keyof ClaimPayload, unknown>>) =>
    refusal(() => decryptClaim({ ...payload, ...changes }, recipient.scalar));

  it("was readable before", () => expect(decrypt({})).toBe("accepted"));

  it.each(["ephemeral_public_key", "nonce", "ciphertext", "commitment"] as const)(
    "%s of another claim is refused",
    (member) => {
      expect(decrypt({ [member]: other[member] })).toBe("decryption-failed");
    },
  );

  it("cannot be filed under another lookup key, nor given or robbed of a recipient", () => {
    expect(decrypt({ lookup_key: "f".repeat(64) })).toBe("decryption-failed");
    expect(decrypt({ recipient_fingerprint: recipient.fingerprint })).toBe("decryption-failed");
    const { recipient_fingerprint: _, ...unnamed } = encrypt(plaintext, true).payload;
    expect(refusal(() => decryptClaim(unnamed, recipient.scalar))).toBe("decryption-failed");
  });

  it("cannot be committed to again, not even by its recipient, who knows the commitment key", () => {
    const key = deriveCommitmentKey(payload, recipient.scalar);
    expect(decrypt({ commitment: hmacOf(bytes(key), { salary: 1 }) })).toBe("decryption-failed");
  });

  it("is refused with any bit of its ciphertext, tag or nonce flipped", () => {
    const sealed = decoded(payload.ciphertext);
    for (let at = 0; at < sealed.length; at++) {
      const flipped = Buffer.from(sealed);
      flipped[at]! ^= 1 << (at % 8);
      expect(decrypt({ ciphertext: base64(flipped) })).toBe("decryption-failed");
    }
    const nonce = decoded(payload.nonce);
    nonce[11]! ^= 1;
    expect(decrypt({ nonce: base64(nonce) })).toBe("decryption-failed");
  });

  it("is refused with a truncated tag, whatever is left of it", () => {
    const sealed = decoded(payload.ciphertext);
    for (let left = 0; left < 16; left++)
      expect(decrypt({ ciphertext: base64(sealed.subarray(0, sealed.length - 16 + left)) })).toBe("decryption-failed");
    for (const length of [0, 1, 12, 15, 16])
      expect(decrypt({ ciphertext: base64(sealed.subarray(-length || sealed.length)) })).toBe("invalid-input");
  });

  it("is refused by everybody else's key, and by keys that are none", () => {
    const read = (key: Uint8Array) => refusal(() => decryptClaim(payload, key));
    expect(read(stranger.scalar)).toBe("decryption-failed");
    for (const key of [new Uint8Array(32), new Uint8Array(32).fill(255), new Uint8Array(31), new Uint8Array(0)])
      expect(read(key)).toBe("invalid-key");
  });
});

describe("a sender who cheats is found out", () => {
  const read = (options: Parameters<typeof seal>[2]) =>
    refusal(() => decryptClaim(seal(plaintext, recipient.point, options).payload, recipient.scalar));

  it.each([
    ["a commitment to something else", { commitment: "00".repeat(32) }],
    ["text that is not JSON", { text: Buffer.from("{") }],
    ["bytes that are not UTF-8", { text: Buffer.from([0x7b, 0xff, 0x7d]) }],
    ["a byte order mark", { text: Buffer.from(`\ufeff${jcs(plaintext)}`) }],
    ["a member twice", { text: Buffer.from('{"a":1,"a":2}') }],
    ["an array", { text: Buffer.from("[1]") }],
    ["null", { text: Buffer.from("null") }],
    ["other text than was committed to", { text: Buffer.from('{"salary":1}') }],
  ])("%s", (_, options) => expect(read(options)).toBe("decryption-failed"));

  it("but may space and order the members as he likes: the commitment is to their canonical form", () => {
    expect(read({ text: Buffer.from(JSON.stringify(plaintext, null, 2)) })).toBe("accepted");
  });
});

describe("what can be encrypted", () => {
  it("bytes, wrapped", () => {
    for (const data of [new Uint8Array(0), Buffer.from([0, 255, 128]), randomBytes(1000)]) {
      const { payload, commitmentKey } = encrypt(data);
      expect(open(payload, recipient).plaintext).toEqual({ data: base64(data) });
      expect(base64(unwrapBytes(decryptClaim(payload, recipient.scalar).plaintext)!)).toBe(base64(data));
      expect(verifyClaimCommitment(payload, data, commitmentKey)).toBe(true);
    }
    for (const value of [{}, { data: "?" }, { data: 1 }, { data: "", more: 1 }])
      expect(unwrapBytes(value)).toBeUndefined();
  });

  it("nothing that its recipient could not read back", () => {
    const deep = JSON.parse(`${'{"a":'.repeat(65)}1${"}".repeat(65)}`) as JsonObject;
    for (const value of [{ a: "\ud800" }, { a: Number.NaN }, deep, JSON.parse('{"__proto__":1}') as JsonObject])
      expect(refusal(() => encrypt(value))).toBe("not-i-json");
    expect(refusal(() => encrypt({ a: () => 1 } as never))).toBe("not-i-json");
    for (const value of [[], "text", 1, null]) expect(refusal(() => encrypt(value as never))).toBe("invalid-input");
  });

  it("to nobody without a P-256 key, and under no malformed lookup key", () => {
    const ed25519 = parsePublicKey(
      "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n",
    );
    expect(refusal(() => encryptClaim(plaintext, { recipient: ed25519, lookupKey }))).toBe("invalid-key");
    expect(refusal(() => encryptClaim(plaintext, { recipient: publicKey, lookupKey: "ab" }))).toBe("invalid-input");
  });
});

describe("checking a commitment offline", () => {
  const { payload, commitmentKey } = encrypt();
  const check = (value: JsonObject, key?: string | null, claim: unknown = payload) =>
    verifyClaimCommitment(claim, value, key);

  it("takes the plaintext in any order of members, and no other plaintext or key", () => {
    const { name, ...rest } = plaintext;
    expect(check({ ...rest, name }, commitmentKey)).toBe(true);
    expect(check(plaintext, commitmentKey.toUpperCase())).toBe(true);
    expect(check({ ...plaintext, salary: 52001 }, commitmentKey)).toBe(false);
    expect(check({}, commitmentKey)).toBe(false);
    expect(check(plaintext, encrypt().commitmentKey)).toBe(false);
    expect(check(plaintext, commitmentKey, encrypt().payload)).toBe(false);
  });

  it("names what is missing or malformed", () => {
    expect(refusal(() => check(plaintext))).toBe("commitment-key-missing");
    expect(refusal(() => check(plaintext, null))).toBe("commitment-key-missing");
    for (const key of ["", "ab", `${commitmentKey}0`, `0x${commitmentKey.slice(2)}`, "g".repeat(64)])
      expect(refusal(() => check(plaintext, key))).toBe("invalid-input");
    expect(refusal(() => check({ a: "\ud800" }, commitmentKey))).toBe("not-i-json");
    for (const claim of [null, [], "x", { ...payload, commitment: "x" }, {}])
      expect(refusal(() => check(plaintext, commitmentKey, claim))).toBe("invalid-input");
    expect(refusal(() => check(plaintext, commitmentKey, { ...payload, commitment_alg: "md5" }))).toBe(
      "unsupported-commitment",
    );
  });

  it("a pre-upgrade entry needs no key: its commitment is the SHA-256 of the canonical plaintext", () => {
    const old = { ciphertext: "AAAA", commitment: sha256(jcs(plaintext)) };
    for (const claim of [old, { ...old, commitment_alg: "sha256" }]) {
      expect(check(plaintext, undefined, claim)).toBe(true);
      expect(check(plaintext, commitmentKey, claim)).toBe(true);
      expect(check({ ...plaintext, salary: 1 }, undefined, claim)).toBe(false);
      expect(refusal(() => decryptClaim(claim, recipient.scalar))).toBe("unsupported-commitment");
    }
    const bytesClaim = { commitment: sha256(jcs({ data: base64(Buffer.from("old")) })) };
    expect(verifyClaimCommitment(bytesClaim, Buffer.from("old"))).toBe(true);
  });

  it("a keyed claim relabelled as a pre-upgrade one does not verify", () => {
    const { commitment_alg: _, ...relabelled } = payload;
    expect(check(plaintext, commitmentKey, relabelled)).toBe(false);
  });
});

it("the package exports it", async () => {
  const name = "cairnlog/verify/claims";
  const exported = (await import(name)) as Record<string, unknown>;
  expect(exported.encryptClaim).toBe(encryptClaim);
});
