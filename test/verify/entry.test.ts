import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createDigests } from "#cairnlog/engine/crypto/digests.js";
import {
  canonicalTimestamp,
  checkEntry,
  type Entry,
  entryHash,
  entryPreimage,
  requestedTime,
} from "#cairnlog/engine/verify/tree/entry.js";
import { sha256 } from "./keys/keys.js";

const payload = { title: "Grüße €", b: [1, 2.5, true, null], a: { z: "", y: 1e21 } };
// Written by hand, as json.dumps(…, sort_keys=True, separators=(",", ":"), ensure_ascii=False) gives it.
const PAYLOAD_TEXT = '{"a":{"y":1e+21,"z":""},"b":[1,2.5,true,null],"title":"Grüße €"}';
const PREVIOUS = sha256("previous");

function entry(hash: string, rest: Partial<Entry>): Entry {
  const primary = { algorithm: "sha2-256", digest_hex: hash, is_primary: true };
  const previous_hash = PREVIOUS;
  const timestamp = "2025-03-01T12:00:00.250000Z";
  return {
    id: 7,
    timestamp,
    event_type: "key_registration",
    payload,
    previous_hash,
    entry_hash: hash,
    entry_hashes: [primary],
    ...rest,
  };
}

const v1 = entry(sha256(PAYLOAD_TEXT + PREVIOUS), {});
const V2_TEXT = `service.log.entry.v2\0{"payload":${PAYLOAD_TEXT},"previous_hash":"${PREVIOUS}","timestamp":"2025-03-01T12:00:00.250000Z"}`;
const v2 = entry(sha256(V2_TEXT), { chain_version: 2 });
const codes = (candidate: unknown) => checkEntry(candidate as Entry).map((problem) => problem.code);

describe("entry hash", () => {
  it("covers payload and previous hash in version 1", () => {
    expect(Buffer.from(entryPreimage(v1)).toString()).toBe(PAYLOAD_TEXT + PREVIOUS);
    expect(entryHash(v1)).toBe(v1.entry_hash);
    expect(entryHash({ ...v1, chain_version: 1, timestamp: "yesterday" })).toBe(v1.entry_hash);
    expect(entryHash({ ...v1, previous_hash: null })).toBe(sha256(PAYLOAD_TEXT));
    expect(checkEntry(v1)).toEqual([]);
    expect(checkEntry({ ...v1, chain_version: 1, timestamp: "2024-01-01 00:00" })).toEqual([]);
  });

  it("covers the canonical timestamp too in version 2", () => {
    expect(Buffer.from(entryPreimage(v2)).toString()).toBe(V2_TEXT);
    expect(entryHash(v2)).toBe(v2.entry_hash);
    const first = `service.log.entry.v2\0{"payload":${PAYLOAD_TEXT},"previous_hash":null,"timestamp":"2025-03-01T12:00:00.250000Z"}`;
    expect(entryHash({ ...v2, previous_hash: null })).toBe(sha256(first));
    for (const timestamp of [
      "2025-03-01T12:00:00.25Z",
      "2025-03-01T12:00:00.25+00:00",
      "2025-03-01T14:00:00.250+02:00",
    ]) {
      expect(checkEntry({ ...v2, timestamp })).toEqual([]);
    }
    expect(codes({ ...v2, timestamp: "2025-03-01T12:00:00.250001Z" })).toContain("hash-mismatch");
  });

  it("fails when an entry is relabelled", () => {
    expect(codes({ ...v1, chain_version: 2 })).toContain("hash-mismatch");
    expect(codes({ ...v2, chain_version: 1 })).toContain("hash-mismatch");
    const { chain_version: _, ...unlabelled } = v2;
    expect(codes(unlabelled)).toContain("hash-mismatch");
    expect(codes({ ...v2, chain_version: 3 })).toEqual(["malformed-entry"]);
    const preimageOf = (change: object) => () => entryPreimage({ ...v2, ...change });
    for (const [change, message] of [
      [{ chain_version: 3 }, "The chain version is neither 1 nor 2."],
      [{ timestamp: "2025-03-01T12:00:00" }, "The timestamp cannot be normalised."],
    ] as const)
      expect(preimageOf(change)).toThrow(expect.objectContaining({ code: "invalid-input", message }));
  });
});

describe("checkEntry", () => {
  it("recomputes every digest, with the same result as the server's and node's", async () => {
    const preimage = entryPreimage(v2);
    const names = ["sha2-512", "sha3-256", "blake3"] as const;
    const further = (await createDigests(names))(preimage);
    expect(further.map((digest) => digest.algorithm)).toEqual(names);
    expect(further[0]!.digest_hex).toBe(createHash("sha512").update(preimage).digest("hex"));
    expect(further[1]!.digest_hex).toBe(createHash("sha3-256").update(preimage).digest("hex"));
    const entry_hashes = [...v2.entry_hashes, ...further.map((digest) => ({ ...digest, is_primary: false }))];
    expect(checkEntry({ ...v2, entry_hashes })).toEqual([]);
    for (let i = 0; i < entry_hashes.length; i++) {
      const digest_hex = sha256("other");
      expect(codes({ ...v2, entry_hashes: entry_hashes.with(i, { ...entry_hashes[i]!, digest_hex }) })).toContain(
        "digest-mismatch",
      );
      expect(
        codes({ ...v2, entry_hashes: entry_hashes.with(i, { ...entry_hashes[i]!, is_primary: i !== 0 }) }),
      ).toContain("primary-digest");
    }
    expect(codes({ ...v2, entry_hashes: [...entry_hashes, entry_hashes[1]] })).toEqual(["digest-mismatch"]);
  });

  it("refuses digests that it cannot check, and an entry without a primary one", () => {
    for (const algorithm of ["md5", "constructor", "__proto__", "sha256", ""]) {
      const unknown = { algorithm, digest_hex: sha256(""), is_primary: false };
      expect(codes({ ...v2, entry_hashes: [...v2.entry_hashes, unknown] })).toEqual(["unknown-digest"]);
    }
    expect(codes({ ...v2, entry_hashes: [] })).toEqual(["primary-digest"]);
    expect(codes({ ...v2, entry_hash: sha256("other") })).toEqual(["hash-mismatch", "primary-digest"]);
  });

  it("hashes with what it is given, and asks only that for SHA-256", () => {
    const zeros = "0".repeat(64);
    const entry_hashes = [{ algorithm: "sha2-256", digest_hex: zeros, is_primary: true }];
    const zeroed = { ...v2, entry_hash: zeros, entry_hashes };
    expect(checkEntry(zeroed, () => new Uint8Array(32))).toEqual([]);
    expect(checkEntry(v2, () => new Uint8Array(32)).map(({ code }) => code)).toEqual([
      "hash-mismatch",
      "digest-mismatch",
    ]);
  });

  it("takes no digest for the primary one but the SHA-256", () => {
    const entry_hashes = [{ ...v2.entry_hashes[0]!, algorithm: "sha3-256" }];
    expect(codes({ ...v2, entry_hashes })).toEqual(["digest-mismatch", "primary-digest"]);
  });

  it("ignores members that no entry has", () => {
    expect(checkEntry({ ...v2, unknown: 1 } as Entry)).toEqual([]);
  });

  const of = "64 lower-case hexadecimal characters";
  it.each<[string, unknown, string]>([
    ["id", 0, "an integer of at least 1"],
    ["id", 1.5, "an integer of at least 1"],
    ["timestamp", 5, "a string"],
    ["event_type", null, "a string"],
    ["payload", [], "an object"],
    ["previous_hash", "", of],
    ["entry_hash", 7, of],
    ["entry_hashes", {}, "an array"],
    ["chain_version", null, "1 or 2"],
    ["chain_version", 3, "1 or 2"],
    ["ots_proof", 1, "a string"],
  ])("says that %s must not be %j", (member, value, wanted) => {
    const message = `/${member} must be ${wanted}.`;
    expect(checkEntry({ ...v1, [member]: value } as Entry)).toEqual([{ code: "malformed-entry", message }]);
    if (member === "chain_version" || member === "ots_proof") return;
    const { [member as "id"]: _, ...others } = v1;
    expect(checkEntry(others as Entry)[0]!.message).toBe(`/${member} is missing.`);
  });

  it.each(["algorithm", "digest_hex", "is_primary"])(
    "says that %s of a digest is missing or no such value",
    (member) => {
      const { [member as "algorithm"]: _, ...others } = v2.entry_hashes[0]!;
      const messageOf = (digest: object) => checkEntry({ ...v2, entry_hashes: [digest] } as Entry)[0]!.message;
      expect(messageOf(others)).toBe(`/entry_hashes/0/${member} is missing.`);
      const wanted = member === "is_primary" ? "true or false" : "a string";
      expect(messageOf({ ...v2.entry_hashes[0], [member]: 1 })).toBe(`/entry_hashes/0/${member} must be ${wanted}.`);
    },
  );

  it("finds a change of anything that is hashed", () => {
    expect(codes({ ...v1, payload: { ...payload, title: "x" } })).toContain("hash-mismatch");
    expect(codes({ ...v2, payload: { ...payload, extra: null } })).toContain("hash-mismatch");
    expect(codes({ ...v2, previous_hash: sha256("x") })).toContain("hash-mismatch");
    expect(codes({ ...v2, previous_hash: null })).toContain("hash-mismatch");
  });

  it("answers for any JSON value", () => {
    for (const value of [
      null,
      1,
      "entry",
      [],
      {},
      { ...v2, payload: [] },
      { ...v2, entry_hashes: {} },
      { ...v2, entry_hashes: [null] },
      { ...v2, id: 0 },
      { ...v2, previous_hash: PREVIOUS.toUpperCase() },
      { ...v2, timestamp: "2025-03-01T12:00:00" },
      { ...v2, payload: { s: "\ud83d" } },
    ]) {
      expect(codes(value)).toEqual(["malformed-entry"]);
    }
    expect(checkEntry({ ...v2, entry_hashes: [{ algorithm: 1 }] } as unknown as Entry)[0]!.message).toBe(
      "/entry_hashes/0/algorithm must be a string.",
    );
  });
});

describe("canonicalTimestamp", () => {
  it.each([
    ["2025-01-01T00:00:00+00:00", "2025-01-01T00:00:00.000000Z"],
    ["2025-01-01T00:00:00Z", "2025-01-01T00:00:00.000000Z"],
    ["2025-01-01T00:00:00.1-00:00", "2025-01-01T00:00:00.100000Z"],
    ["2025-01-01T00:00:00.123456+05:30", "2024-12-31T18:30:00.123456Z"],
    ["2024-02-28T23:59:59.999999-23:59", "2024-02-29T23:58:59.999999Z"],
    ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"],
    ["9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"],
  ])("normalises %s", (spelling, canonical) => {
    expect(canonicalTimestamp(spelling)).toBe(canonical);
    expect(canonicalTimestamp(canonical)).toBe(canonical);
  });

  it.each([
    "",
    "2025-01-01",
    "2025-01-01T00:00:00",
    "2025-01-01 00:00:00Z",
    "2025-01-01t00:00:00z",
    "2025-01-01T00:00Z",
    "2025-02-30T00:00:00Z",
    "2025-13-01T00:00:00Z",
    "2025-00-01T00:00:00Z",
    "2025-01-01T24:00:00Z",
    "2025-01-01T00:00:60Z",
    "2025-01-01T00:00:00.1234567Z",
    "2025-01-01T00:00:00.Z",
    "2025-01-01T00:00:00,5Z",
    "2025-01-01T00:00:00+0000",
    "2025-01-01T00:00:00+24:00",
    "2025-01-01T00:00:00Z\n",
    " 2025-01-01T00:00:00Z",
    " 2025-01-01T00:00:00.000000Z",
    "2025-01-01T00:00:00.000000Z\n",
    "2025-01-01T00:00:00.000000Z ",
    "2025-01-01T00:00:00.0000000Z",
    ["2025-01-01T00:00:00.000000Z"],
    ["2025-01-01T00:00:00Z"],
    "+02025-01-01T00:00:00Z",
    "0000-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59-00:01",
    null,
    0,
  ])("refuses %j", (spelling) => expect(canonicalTimestamp(spelling)).toBeUndefined());
});

describe("requestedTime", () => {
  it.each([
    ["2025-03-01t12:00:00z", "2025-03-01T12:00:00.000000Z"],
    ["2025-03-01T12:00:00.123456789Z", "2025-03-01T12:00:00.123456Z"],
    ["2025-03-01T12:00:00.999999999+02:00", "2025-03-01T10:00:00.999999Z"],
    ["2025-03-01t12:00:00.1234567z", "2025-03-01T12:00:00.123456Z"],
    ["2025-03-01T12:00:00.5-00:30", "2025-03-01T12:30:00.500000Z"],
  ])("reads %j", (spelling, canonical) => expect(requestedTime(spelling)).toBe(canonical));

  it.each([
    "2025-03-01T12:00:00.1234567890Z",
    "2025-02-30t12:00:00z",
    "2025-03-01 12:00:00Z",
    "2025-03-01T12:00:00.123456789",
    7,
    null,
  ])("refuses %j", (spelling) => expect(requestedTime(spelling)).toBeUndefined());

  it("is for requests only: what an entry hashes has six decimals and capital letters", () => {
    for (const timestamp of ["2025-03-01t12:00:00z", "2025-03-01T12:00:00.123456789Z"])
      expect(canonicalTimestamp(timestamp)).toBeUndefined();
  });
});
