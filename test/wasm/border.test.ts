// Input that every kernel refuses: wrong types, wrong lengths, sizes and versions that do not exist.
import { describe, expect, it } from "vitest";
import { kernel as fastest, type Kernel, kernels } from "#cairnlog/wasm/index.js";

const bytes = (length: number) => new Uint8Array(length);

/** The methods as JavaScript sees them, without types. */
type Untyped = { [Method in keyof Kernel]: (...args: unknown[]) => unknown };

const notBytes: unknown[] = [undefined, null, "00".repeat(32), 32, [], new ArrayBuffer(32), new Uint16Array(16), {}];
const notVersions: [unknown, ErrorConstructor][] = [
  [undefined, TypeError],
  ["1", TypeError],
  [1n, TypeError],
  [0, RangeError],
  [3, RangeError],
  [1.5, RangeError],
  [Number.NaN, RangeError],
];
const notSizes: [unknown, ErrorConstructor][] = [
  [undefined, TypeError],
  ["0", TypeError],
  [0n, TypeError],
  [-1, RangeError],
  [0.5, RangeError],
  [Number.NaN, RangeError],
  [Number.POSITIVE_INFINITY, RangeError],
  [2 ** 53, RangeError],
];

it("offers SIMD first where it is there, and the scalar kernel always", () => {
  const hasSimd = WebAssembly.validate(
    // (module (func (drop (v128.const i64x2 0 0))))
    Uint8Array.of(
      0,
      97,
      115,
      109,
      1,
      0,
      0,
      0,
      1,
      4,
      1,
      96,
      0,
      0,
      3,
      2,
      1,
      0,
      10,
      23,
      1,
      21,
      0,
      253,
      12,
      ...bytes(16),
      26,
      11,
    ),
  );
  expect(kernels.map(({ name }) => name)).toEqual(hasSimd ? ["simd", "scalar"] : ["scalar"]);
  expect(fastest).toBe(kernels[0]);
});

describe.each(kernels.map((kernel) => [kernel.name, kernel as unknown as Untyped] as const))(
  "border, %s",
  (_, kernel) => {
    it.each(notBytes)("refuses values that are not bytes: %s", (value) => {
      const calls = [
        () => kernel.sha256(value),
        () => (kernel.createSha256() as { update(data: unknown): void }).update(value),
        () => kernel.leaf(value, 1),
        () => kernel.node(value, bytes(32), 1),
        () => kernel.node(bytes(32), value, 1),
        () => kernel.leaves(value, 1),
        () => kernel.parents(value, 1),
        () => kernel.subtree(value, 1),
        () => kernel.extend(0, value, bytes(32), 1, true),
        () => kernel.extend(0, bytes(0), value, 1, true),
      ];
      for (const call of calls) expect(call).toThrow(TypeError);
    });

    it.each([0, 31, 33, 64])("refuses %i bytes for one node", (length) => {
      expect(() => kernel.leaf(bytes(length), 1)).toThrow(RangeError);
      expect(() => kernel.node(bytes(length), bytes(32), 1)).toThrow(RangeError);
      expect(() => kernel.node(bytes(32), bytes(length), 1)).toThrow(RangeError);
    });

    it.each([1, 31, 33, 65])("refuses %i bytes for several nodes", (length) => {
      expect(() => kernel.leaves(bytes(length), 1)).toThrow(RangeError);
      expect(() => kernel.parents(bytes(length), 1)).toThrow(RangeError);
      expect(() => kernel.subtree(bytes(length), 1)).toThrow(RangeError);
      expect(() => kernel.extend(0, bytes(0), bytes(length), 1, true)).toThrow(RangeError);
    });

    it("refuses parents of an odd number of nodes", () => {
      expect(() => kernel.parents(bytes(96), 1)).toThrow(RangeError);
    });

    it.each([0, 3, 5, 6, 7, 12, 255])("refuses a subtree over %i nodes", (count) => {
      expect(() => kernel.subtree(bytes(32 * count), 1)).toThrow(RangeError);
    });

    it.each(notVersions)("refuses version %s", (version, error) => {
      const calls = [
        () => kernel.leaf(bytes(32), version),
        () => kernel.node(bytes(32), bytes(32), version),
        () => kernel.leaves(bytes(32), version),
        () => kernel.parents(bytes(64), version),
        () => kernel.subtree(bytes(64), version),
        () => kernel.extend(0, bytes(0), bytes(32), version, true),
      ];
      for (const call of calls) expect(call).toThrow(error);
    });

    it.each(notSizes)("refuses size %s", (size, error) => {
      expect(() => kernel.extend(size, bytes(0), bytes(32), 1, true)).toThrow(error);
    });

    it("refuses to grow past 2^53 - 1 leaves", () => {
      const peaks = bytes(53 * 32);
      expect(() => kernel.extend(Number.MAX_SAFE_INTEGER, peaks, bytes(32), 1, true)).toThrow(RangeError);
      expect(() => kernel.extend(Number.MAX_SAFE_INTEGER, peaks, bytes(0), 1, true)).not.toThrow();
    });

    it("refuses peaks that do not fit the size", () => {
      expect(() => kernel.extend(0, bytes(32), bytes(32), 1, true)).toThrow(RangeError);
      expect(() => kernel.extend(1, bytes(0), bytes(32), 1, true)).toThrow(RangeError);
      expect(() => kernel.extend(3, bytes(32), bytes(32), 1, true)).toThrow(RangeError);
      expect(() => kernel.extend(4, bytes(64), bytes(32), 1, true)).toThrow(RangeError);
      expect(() => kernel.extend(2 ** 40, bytes(64), bytes(32), 1, true)).toThrow(RangeError);
      expect(() => kernel.extend(3, bytes(64), bytes(32), 1, true)).not.toThrow();
    });

    it("refuses withRoots that is not a boolean", () => {
      expect(() => kernel.extend(0, bytes(0), bytes(32), 1, 1)).toThrow(TypeError);
      expect(() => kernel.extend(0, bytes(0), bytes(32), 1, undefined)).toThrow(TypeError);
    });

    it("works on after a refusal", () => {
      expect(() => kernel.node(bytes(1), bytes(32), 2)).toThrow();
      expect(kernel.node(bytes(32), bytes(32), 2)).toEqual((kernels.at(-1) as Kernel).node(bytes(32), bytes(32), 2));
    });
  },
);
