/** Every damage of every proof between all pairs of sizes up to 300; `merkle.test.ts` does this for small trees. */
import { describe, it } from "vitest";
import { LIMIT, Prover, refuseConsistencyTampering, refuseInclusionTampering, VERSIONS } from "./plain-tree.js";

describe.each(VERSIONS)("tree version %i", (version) => {
  const prover = new Prover(version);

  it("refuses every damage to the inclusion proof of every leaf of every size", { timeout: 600_000 }, () => {
    for (let n = 1; n < LIMIT; n++) for (let i = 0; i < n; i++) refuseInclusionTampering(prover, i, n);
  });

  it("refuses every damage to the consistency proof of every two sizes", { timeout: 600_000 }, () => {
    for (let n = 1; n < LIMIT; n++) for (let m = 1; m <= n; m++) refuseConsistencyTampering(prover, m, n);
  });
});
