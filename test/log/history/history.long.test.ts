/** Random histories of appends and restarts, compared with the plain definition of the tree; every proof is checked. */
import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { verifyConsistency, verifyInclusion } from "#cairnlog/engine/verify/tree/merkle.js";
import { openTestLog } from "../harness.js";

type Version = 1 | 2;
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const leaf = (digest: string, version: Version) => sha256(version === 2 ? `\0${digest}` : digest);
const node = (left: string, right: string, version: Version) =>
  sha256(version === 2 ? `\x01${left}${right}` : left + right);

/** docs/spec §3.2: nodes are paired, the last one with itself, until one is left. */
function definedRoot(digests: readonly string[], version: Version): string {
  let row = digests.map((digest) => leaf(digest, version));
  while (row.length > 1) {
    const parents: string[] = [];
    for (let i = 0; i < row.length; i += 2) parents.push(node(row[i]!, row[i + 1] ?? row[i]!, version));
    row = parents;
  }
  return row[0]!;
}

test("roots, heads and proofs match the definition, for any batches and restarts", async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ append: fc.integer({ min: 1, max: 120 }) }) },
    { weight: 1, arbitrary: fc.constant("restart" as const) },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 2, maxLength: 8 }),
      fc.infiniteStream(fc.nat()),
      async (steps, numbers) => {
        let { log, path } = await openTestLog();
        const roots: string[] = [];
        for (const action of steps) {
          if (action === "restart") {
            await log.close();
            ({ log, path } = await openTestLog({ path }));
            continue;
          }
          const receipts = await Promise.all(
            Array.from({ length: action.append }, (_, n) => log.append({ event_type: "note", payload: { n } })),
          );
          roots.push(...receipts.map((receipt) => receipt.sth.root_hash));
        }
        const digests = [...log.entries()].map((entry) => entry.entry_hash);
        expect(roots).toHaveLength(digests.length);
        const pick = (below: number) => numbers.next().value! % below;
        const served = new Map<string, string>();
        for (let i = 0; i < 12 && digests.length; i++) {
          const to = 1 + pick(digests.length);
          const from = 1 + pick(to);
          expect(roots[to - 1]).toBe(definedRoot(digests.slice(0, to), 2));
          for (const treeVersion of [1, 2] as const) {
            const index = pick(to);
            const proof = log.inclusionProof(index, { treeSize: to, treeVersion });
            expect(proof.root_hash).toBe(definedRoot(digests.slice(0, to), treeVersion));
            expect(proof.leaf_hash).toBe(leaf(digests[index]!, treeVersion));
            expect(proof.sth).toEqual(log.treeHead(to));
            const { json: bytes, tag } = log.inclusionProofJson(index, { treeSize: to, treeVersion });
            const json = `${bytes}`;
            expect(json).toBe(JSON.stringify(proof));
            expect(served.get(tag) ?? json).toBe(json);
            served.set(tag, json);
            expect(log.inclusionProofJson(index, { treeSize: to, treeVersion })).toEqual({ json: bytes, tag });
            const { root_hash: rootHash, audit_path: auditPath } = proof;
            expect(
              verifyInclusion({
                leaf: digests[index]!,
                leafIndex: index,
                treeSize: to,
                auditPath,
                rootHash,
                treeVersion,
              }),
            ).toBe(true);
            const {
              from_root: fromRoot,
              to_root: toRoot,
              peaks,
              extension,
            } = log.consistencyProof(from, to, treeVersion);
            expect(fromRoot).toBe(definedRoot(digests.slice(0, from), treeVersion));
            expect(toRoot).toBe(rootHash);
            expect(
              verifyConsistency({ fromSize: from, toSize: to, fromRoot, toRoot, peaks, extension, treeVersion }),
            ).toBe(true);
          }
        }
        expect(log.stateDifferences()).toEqual([]);
        await log.close();
      },
    ),
    { numRuns: 15 },
  );
});

test("across the first tile of level 8, restart included, the log verifies", async () => {
  const { log, path } = await openTestLog();
  const append = (count: number, to = log) =>
    to.append(Array.from({ length: count }, (_, n) => ({ event_type: "note", payload: { n } })));
  await append(65_500);
  await append(100);
  await log.close();
  const { log: again } = await openTestLog({ path });
  await append(300, again);
  expect(await again.verify()).toMatchObject({ valid: true, entry_count: 65_900 });
  const digests = [...again.entries()].map((entry) => entry.entry_hash);
  for (const version of [1, 2] as const)
    expect(again.consistencyProof(65_000, 65_900, version).to_root).toBe(definedRoot(digests, version));
});
