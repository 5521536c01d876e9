// Leaves and nodes of every kernel in both tree versions, compared with node:crypto over the ASCII hex of the contract.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { kernels } from "#cairnlog/wasm/index.js";
import { digests, leafHash, levelAbove, nodeHash, split, unaligned, VERSIONS } from "./reference.js";

const cases = kernels.flatMap((kernel) => VERSIONS.map((version) => [kernel.name, version, kernel] as const));
const node = fc.uint8Array({ minLength: 32, maxLength: 32 });

describe.each(cases)("%s, version %i", (_name, version, kernel) => {
  it("hashes one leaf", () => {
    fc.assert(
      fc.property(node, (digest) => {
        expect(Buffer.from(kernel.leaf(unaligned(digest), version))).toEqual(leafHash(digest, version));
      }),
    );
  });

  it("hashes one node", () => {
    fc.assert(
      fc.property(node, node, (left, right) => {
        const found = kernel.node(unaligned(left), right, version);
        expect(Buffer.from(found)).toEqual(nodeHash(left, right, version));
      }),
    );
  });

  it("hashes every last hex digit, in every lane", () => {
    // Only the last digit determines the last block of version 2.
    const operands = Array.from({ length: 64 }, (_, i) => {
      const operand = digests(i, 2);
      operand[31] = (operand[31]! & 0xf0) | ((i + (i >> 4)) & 15);
      operand[63] = (operand[63]! & 0xf0) | ((i * 5 + (i >> 4)) & 15);
      return operand;
    });
    const leaves = operands.map((operand) => operand.subarray(0, 32));
    expect(split(kernel.leaves(Buffer.concat(leaves), version))).toEqual(leaves.map((leaf) => leafHash(leaf, version)));
    const found = split(kernel.parents(Buffer.concat(operands), version));
    expect(found).toEqual(operands.map((pair) => nodeHash(pair.subarray(0, 32), pair.subarray(32), version)));
  });

  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 63, 257, 2047, 2048, 2049, 4095, 4096, 4097, 9001])(
    "hashes %i in one call",
    (count) => {
      const input = digests(count, 2 * count);
      const operands = split(input);
      const leaves = input.subarray(0, 32 * count);
      const foundLeaves = Buffer.from(kernel.leaves(unaligned(leaves), version));
      expect(foundLeaves.equals(Buffer.concat(operands.slice(0, count).map((leaf) => leafHash(leaf, version))))).toBe(
        true,
      );
      const foundNodes = Buffer.from(kernel.parents(unaligned(input), version));
      expect(foundNodes.equals(Buffer.concat(levelAbove(operands, version)))).toBe(true);
    },
  );

  it.each([0, 1, 2, 3, 5, 8, 12, 13])("makes every level above 2^%i nodes", (height) => {
    const input = digests(7, 2 ** height);
    const levels: Buffer[] = [];
    for (let level = split(input); level.length > 1; ) {
      level = levelAbove(level, version);
      levels.push(...level);
    }
    const found = Buffer.from(kernel.subtree(unaligned(input), version));
    expect(found.equals(Buffer.concat(levels))).toBe(true);
    expect(found.length).toBe(32 * (2 ** height - 1));
  });

  it("returns copies and leaves its input alone", () => {
    const input = digests(0, 8);
    const before = Buffer.from(input);
    const first = kernel.parents(input, version);
    const copy = first.slice();
    const one = kernel.leaf(input.subarray(0, 32), version);
    const oneCopy = one.slice();
    kernel.parents(digests(100, 8), version);
    kernel.leaf(digests(50, 1), version);
    expect(first).toEqual(copy);
    expect(one).toEqual(oneCopy);
    expect(input.equals(before)).toBe(true);
    expect(first.buffer.byteLength).toBe(first.length);
  });
});
