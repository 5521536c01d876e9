// Nodes of RFC 6962 by every kernel, compared with node:crypto over the bytes of RFC 6962, 2.1.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { kernels } from "#cairnlog/wasm/index.js";
import { digests, sha256, split, unaligned } from "./reference.js";

const above = (level: readonly Buffer[]): Buffer[] =>
  Array.from({ length: Math.floor(level.length / 2) }, (_, i) =>
    sha256(Uint8Array.of(1), level[2 * i]!, level[2 * i + 1]!),
  );

describe.each(kernels.map((kernel) => [kernel.name, kernel] as const))("%s", (_name, kernel) => {
  it("makes the tree of 8 leaves of Certificate Transparency's tests", () => {
    const leaves = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
    const hashes = leaves.map((leaf) => sha256(Uint8Array.of(0), Buffer.from(leaf, "hex")));
    const root = Buffer.from(kernel.rfc6962Subtree(Buffer.concat(hashes)).slice(-32));
    expect(root.toString("hex")).toBe("5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
  });

  it("hashes any two nodes", () => {
    const node = fc.uint8Array({ minLength: 32, maxLength: 32 });
    fc.assert(
      fc.property(node, node, (left, right) => {
        const found = Buffer.from(kernel.rfc6962Parents(unaligned(Buffer.concat([left, right]))));
        expect(found.equals(sha256(Uint8Array.of(1), left, right))).toBe(true);
      }),
    );
  });

  it("hashes every last byte, in every lane", () => {
    // Only the last byte determines the last block.
    const operands = Array.from({ length: 2048 }, (_, i) => {
      const operand = digests(i, 2);
      operand[63] = (i + (i >> 8)) & 255;
      return operand;
    });
    const found = Buffer.from(kernel.rfc6962Parents(Buffer.concat(operands)));
    expect(found.equals(Buffer.concat(above(operands.flatMap(split))))).toBe(true);
  });

  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 63, 257, 2047, 2048, 2049, 4097])("hashes %i in one call", (count) => {
    const input = digests(count, 2 * count);
    const before = Buffer.from(input);
    const found = Buffer.from(kernel.rfc6962Parents(unaligned(input)));
    expect(found.equals(Buffer.concat(above(split(input))))).toBe(true);
    expect(input.equals(before)).toBe(true);
  });

  it.each([0, 1, 2, 3, 5, 8, 13])("makes every level above 2^%i nodes", (height) => {
    const input = digests(7, 2 ** height);
    const levels: Buffer[] = [];
    for (let level = split(input); level.length > 1; ) {
      level = above(level);
      levels.push(...level);
    }
    expect(Buffer.from(kernel.rfc6962Subtree(unaligned(input))).equals(Buffer.concat(levels))).toBe(true);
  });

  it("refuses what is not pairs of nodes", () => {
    const untyped = kernel as unknown as Record<"rfc6962Parents" | "rfc6962Subtree", (nodes: unknown) => Uint8Array>;
    for (const length of [1, 32, 63, 65, 96])
      expect(() => untyped.rfc6962Parents(new Uint8Array(length))).toThrow(RangeError);
    for (const length of [0, 31, 96, 160])
      expect(() => untyped.rfc6962Subtree(new Uint8Array(length))).toThrow(RangeError);
    for (const value of [undefined, null, "x", [1], new ArrayBuffer(64)]) {
      expect(() => untyped.rfc6962Parents(value)).toThrow(TypeError);
      expect(() => untyped.rfc6962Subtree(value)).toThrow(TypeError);
    }
  });
});
