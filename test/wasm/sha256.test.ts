// Plain SHA-256 of every kernel: FIPS 180-4 vectors, every short length, and all ways to split a message into updates.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { kernels } from "#cairnlog/wasm/index.js";
import { sha256, unaligned } from "./reference.js";

const bytes = (length: number, seed: number) =>
  Uint8Array.from({ length }, (_, i) => (i * 167 + seed * 31 + (i >> 8)) & 255);
const ascii = (text: string) => new TextEncoder().encode(text);
const hex = (value: Uint8Array) => Buffer.from(value).toString("hex");

// FIPS 180-4's example messages (NIST, "SHA256.pdf" of the examples with intermediate values, and the million-a test).
const FIPS: [string, Uint8Array, string][] = [
  ["empty", ascii(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
  ["one block", ascii("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
  [
    "two blocks",
    ascii("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
  ],
  [
    "896 bits",
    ascii(
      "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
    ),
    "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
  ],
  [
    "a million times a",
    new Uint8Array(1_000_000).fill(0x61),
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
  ],
];

describe.each(kernels.map((kernel) => [kernel.name, kernel] as const))("sha256, %s", (_, kernel) => {
  it.each(FIPS)("gives the published digest: %s", (_name, message, digest) => {
    expect(hex(kernel.sha256(message))).toBe(digest);
    expect(hex(kernel.createSha256().update(message).digest())).toBe(digest);
  });

  it("agrees with node:crypto for every length from 0 to 300, in one call and in two updates", () => {
    for (let length = 0; length <= 300; length++) {
      const message = bytes(length, length);
      const expected = sha256(message);
      expect(kernel.sha256(unaligned(message)), `${length}`).toEqual(new Uint8Array(expected));
      const cut = (length * 7) % (length + 1);
      const hash = kernel
        .createSha256()
        .update(message.subarray(0, cut))
        .update(unaligned(message.subarray(cut)));
      expect(hex(hash.digest()), `${length} cut at ${cut}`).toBe(hex(expected));
    }
  });

  it("agrees for messages around and above the size of one call", () => {
    for (const length of [131_071, 131_072, 131_073, 131_135, 131_136, 262_144, 400_001]) {
      const message = bytes(length, 5);
      const expected = hex(sha256(message));
      expect(hex(kernel.sha256(message)), `${length}`).toBe(expected);
      const hash = kernel.createSha256().update(message.subarray(0, 37)).update(message.subarray(37));
      expect(hex(hash.digest()), `${length} in two`).toBe(expected);
    }
  });

  it("does not depend on how a message is cut", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 12 }), (parts) => {
        const hash = kernel.createSha256();
        for (const part of parts) hash.update(part);
        expect(hex(hash.digest())).toBe(hex(sha256(...parts)));
      }),
      { numRuns: 300 },
    );
  });

  it("does not depend on cuts at and next to block borders", () => {
    const sizes = [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129];
    for (const first of sizes)
      for (const second of sizes)
        for (const third of [0, 1, 63, 64]) {
          const message = bytes(first + second + third, first);
          const hash = kernel.createSha256();
          hash.update(message.subarray(0, first));
          hash.update(message.subarray(first, first + second));
          hash.update(message.subarray(first + second));
          expect(hex(hash.digest()), `${first} + ${second} + ${third}`).toBe(hex(sha256(message)));
        }
  });

  it("keeps several hashes in progress apart, with other calls in between", () => {
    const part = fc.tuple(fc.nat({ max: 4 }), fc.uint8Array({ maxLength: 150 }));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 40 }), (parts) => {
        const hashes = Array.from({ length: 5 }, () => kernel.createSha256());
        for (const [which, data] of parts) {
          hashes[which]!.update(data);
          kernel.sha256(data);
          kernel.leaf(new Uint8Array(32), 2);
        }
        const found = hashes.map((hash) => hex(hash.digest()));
        const expected = hashes.map((_, which) => hex(sha256(...parts.filter(([i]) => i === which).map(([, d]) => d))));
        expect(found).toEqual(expected);
      }),
      { numRuns: 100 },
    );
  });

  it("keeps no reference to the data of an update", () => {
    const data = bytes(40, 1);
    const hash = kernel.createSha256().update(data);
    const expected = hex(sha256(data));
    data.fill(0);
    expect(hex(hash.digest())).toBe(expected);
  });

  it("is finished after digest", () => {
    const hash = kernel.createSha256();
    hash.digest();
    expect(() => hash.digest()).toThrow(Error);
    expect(() => hash.update(new Uint8Array(1))).toThrow(Error);
  });
});
