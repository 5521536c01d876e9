/** The part of an entry's anchoring proof that can be checked offline. */
import { describe, expect, test } from "vitest";
import { checkOtsProof } from "#cairnlog/engine/verify/ots/ots.js";
import { append, attestation, bitcoin, detached, HEADER, hash, hex, pending } from "./otsbytes.js";

const DIGEST = hash("sha256", Buffer.from("an entry"));
const ENTRY_HASH = DIGEST.toString("hex");
const check = (file: Uint8Array, entryHash = ENTRY_HASH) =>
  checkOtsProof(Buffer.from(file).toString("base64"), entryHash);
const PROMISE = hex("00", pending("https://calendar.example"));

describe("a proof", () => {
  test("that is pending proves nothing yet, and says who promised", () => {
    const { ok, detail } = check(detached(DIGEST, PROMISE));
    expect(ok).toBe(true);
    expect(detail).toBe(
      "The anchoring proof is for the entry's hash. It names no Bitcoin block, so it proves nothing yet. " +
        "Promised by calendars: https://calendar.example.",
    );
  });

  test("that names a block says which Merkle root it must have, as explorers show it, and that this was not checked", () => {
    const { ok, detail } = check(detached(DIGEST, hex("ff", PROMISE, "08 00", bitcoin(800_000))));
    const root = hash("sha256", DIGEST).reverse().toString("hex");
    expect(ok).toBe(true);
    expect(detail).toContain(`Bitcoin block 800000, if its Merkle root is ${root}`);
    expect(detail).toContain("cannot be checked offline");
  });

  test("of unknown kind, or of thousands, is told in a few words", () => {
    expect(check(detached(DIGEST, hex("00", attestation("0102030405060708", hex("00"))))).detail).toContain(
      "Attestations of unknown kinds: 0102030405060708.",
    );
    const heights = Array.from({ length: 3000 }, (_, height) => hex("ff00", bitcoin(height)));
    const { ok, detail } = check(detached(DIGEST, hex(...heights, PROMISE)));
    expect(ok).toBe(true);
    expect(detail).toContain("and 2992 more");
    expect(detail.length).toBeLessThan(2000);
  });
});

describe("a list of what a proof holds", () => {
  const calendars = (count: number) =>
    hex(
      ...Array.from({ length: count - 1 }, (_, i) => hex("ff00", pending(`https://${i}`))),
      "00",
      pending("https://z"),
    );
  const promised = (count: number) =>
    check(detached(DIGEST, calendars(count))).detail.split("Promised by calendars: ")[1];
  const named = (count: number) => Array.from({ length: count }, (_, i) => `https://${i}`);

  test("has everything, up to eight", () => {
    expect(promised(1)).toBe("https://z.");
    expect(promised(8)).toBe(`${[...named(7), "https://z"].join(", ")}.`);
  });

  test("says of more than eight how many there are", () => {
    expect(promised(9)).toBe(`${named(8).join(", ")}, and 1 more.`);
    expect(promised(10)).toBe(`${named(8).join(", ")}, and 2 more.`);
  });

  test("has each kind in its own sentence, and no sentence of a kind that is not there", () => {
    const block = hex("08 00", bitcoin(7));
    const unknown = hex("00", attestation("0102030405060708", hex("00")));
    const root = hash("sha256", DIGEST).reverse().toString("hex");
    const about = "The anchoring proof is for the entry's hash.";
    const compare = "compare that with the block, for it cannot be checked offline.";
    const shown = `It shows that the entry is older than Bitcoin block 7, if its Merkle root is ${root}: ${compare}`;
    expect(check(detached(DIGEST, block)).detail).toBe(`${about} ${shown}`);
    expect(check(detached(DIGEST, hex("ff", unknown, block))).detail).toBe(
      `${about} ${shown} Attestations of unknown kinds: 0102030405060708.`,
    );
    expect(check(detached(DIGEST, unknown)).detail).toBe(
      `${about} It names no Bitcoin block, so it proves nothing yet. Attestations of unknown kinds: 0102030405060708.`,
    );
  });
});

test.each([
  [65_535, /no OpenTimestamps proof/],
  [65_536, /no OpenTimestamps proof/],
  [65_537, /at most 65536 bytes/],
  [65_539, /strict base64 of a proof's size/],
])("of %d bytes a proof is judged by what it is: %s", (bytes, reason) => {
  expect(check(Buffer.alloc(bytes)).detail).toMatch(reason);
});

describe("what is no proof of this entry", () => {
  const file = detached(DIGEST, PROMISE);

  test.each([
    ["of another digest", check(file, hash("sha256", DIGEST).toString("hex")), /another digest/],
    [
      "of another kind of digest, cut off the entry's",
      check(hex(HEADER, "03", DIGEST.subarray(0, 20), PROMISE), DIGEST.toString("hex", 0, 20)),
      /another digest/,
    ],
    ["of another kind of digest", check(hex(HEADER, "03", DIGEST.subarray(0, 20), PROMISE)), /another digest/],
    ["cut short", check(file.subarray(0, -1)), /too early/],
    ["longer than it is", check(hex(file, "00")), /Bytes follow/],
    ["of something else", check(Buffer.from("%PDF")), /too early/],
    ["with an operation that is none", check(detached(DIGEST, hex("09", PROMISE))), /unknown operation/],
    ["with a message that is too long", check(detached(DIGEST, hex(append(Buffer.alloc(4096)), PROMISE))), /too long/],
    ["in base64 with a line break", checkOtsProof(`${file.toString("base64")}\n`, ENTRY_HASH), /strict base64/],
    ["in base64url", checkOtsProof("AE9w_w==", ENTRY_HASH), /strict base64/],
    ["empty", checkOtsProof("", ENTRY_HASH), /too early/],
    ["one group of base64 too long", checkOtsProof("A".repeat(87_388), ENTRY_HASH), /strict base64/],
    ["of a byte more than a proof may have", checkOtsProof("A".repeat(87_384), ENTRY_HASH), /at most 65536 bytes/],
    ["of megabytes", checkOtsProof("A".repeat(1 << 24), ENTRY_HASH), /strict base64/],
  ])("%s is refused", (_, verdict, reason) => {
    expect(verdict.ok).toBe(false);
    expect(verdict.detail).toMatch(reason);
  });
});
