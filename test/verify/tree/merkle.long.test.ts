/**
 * Every damage of every proof of larger trees; `merkle.test.ts` does this for small ones. The sizes are those around the
 * powers of two, where trees gain a level, and some between them.
 */
import { describe, expect, it } from "vitest";
import { consistencyTampering, inclusionTampering, Prover, VERSIONS } from "./plain-tree.js";

const SIZES = [95, 96, 97, 126, 127, 128, 129, 130, 170, 191, 192, 193, 254, 255, 256, 257, 258, 299, 300];

describe.each(VERSIONS)("tree version %i", (version) => {
  const prover = new Prover(version);

  it("refuses every damage to the inclusion proof of every leaf of every size", () => {
    for (const n of SIZES) expect(inclusionTampering(prover, n)).toEqual([]);
  });

  it("refuses every damage to the consistency proof of every two sizes", () => {
    for (const n of SIZES) expect(consistencyTampering(prover, n)).toEqual([]);
  });
});
