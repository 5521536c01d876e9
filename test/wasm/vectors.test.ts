// The published roots of the log's tree, computed by every kernel in every way.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { kernels } from "#cairnlog/wasm/index.js";
import { digests, VERSIONS } from "./reference.js";

interface Vectors {
  readonly versions: Record<string, { leaf0: string; leaf_hash0: string; roots: Record<string, string> }>;
}

const vectors: Vectors = JSON.parse(readFileSync(new URL("../vectors/merkle.json", import.meta.url), "utf8"));
const cases = kernels.flatMap((kernel) => VERSIONS.map((version) => [kernel.name, version, kernel] as const));
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe.each(cases)("vectors, %s, version %i", (_name, version, kernel) => {
  const { leaf0, leaf_hash0, roots } = vectors.versions[version]!;
  const sizes = Object.keys(roots).map(Number);
  const empty = new Uint8Array(0);

  it("hashes the first leaf", () => {
    expect(hex(kernel.leaf(Buffer.from(leaf0, "hex"), version))).toBe(leaf_hash0);
  });

  it("gives the root of every size, all at once", () => {
    expect(sizes.length).toBeGreaterThan(10);
    const all = kernel.extend(0, empty, digests(0, 130), version, true).roots;
    for (const size of sizes) expect(hex(all.subarray(32 * size - 32, 32 * size)), `${size}`).toBe(roots[size]);
  });

  it("gives the root of every size, one leaf at a time", () => {
    let peaks: Uint8Array = empty;
    for (let size = 0; size < 130; size++) {
      const extension = kernel.extend(size, peaks, digests(size, 1), version, true);
      peaks = extension.peaks;
      if (size + 1 in roots) expect(hex(extension.roots), `${size + 1}`).toBe(roots[size + 1]);
    }
  });
});
