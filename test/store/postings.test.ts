/** Postings against a plain map, through flushes, merges and restarts in the middle of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FLUSH_ENTRIES, Postings } from "#cairnlog/engine/store/postings.js";
import { POSTING } from "#cairnlog/engine/store/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { hashedTerm, hexPrefixTerm } from "#cairnlog/engine/store/term.js";

/** A small deterministic generator, so that a failure can be repeated. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const unique = (index: number) => hashedTerm(POSTING.sameAttestation, `attestation ${index}`);

test("lists equal a plain map at every stage", { timeout: 120_000 }, async () => {
  const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  const pick = random(7);
  const model = new Map<string, number[]>();
  let store = openStore({ path });
  let postings = new Postings(store.postings);
  const check = () => {
    expect(postings.count).toBe([...model.values()].reduce((sum, indexes) => sum + indexes.length, 0));
    const terms = [...model.keys()];
    for (let i = 0; i < 60; i++) {
      const term = terms[pick(terms.length)]!;
      const expected = model.get(term)!;
      const list = postings.list(term);
      expect(list.length).toBe(expected.length);
      for (let j = 0; j < 5; j++) {
        const rank = pick(expected.length);
        expect(list.at(rank)).toBe(expected[rank]);
        const index = pick(postings.size + 2);
        const below = expected.filter((held) => held < index).length;
        expect(list.seek(index)).toBe(below);
        const count = pick(2000);
        expect(list.window(index, count)).toEqual(expected.slice(below, below + count));
      }
      expect(() => list.at(expected.length)).toThrow(RangeError);
    }
    for (let i = 0; i < 200; i++) expect(postings.list(unique(10_000_000 + i)).length).toBe(0);
    const [low, high] = [hexPrefixTerm(POSTING.digest, "3"), hexPrefixTerm(POSTING.digest, "3f".padEnd(32, "f"))];
    const found = [...postings.range(low, high)].map(({ index }) => index).sort((a, b) => a - b);
    const wanted = [...model].flatMap(([term, indexes]) => (term >= low && term <= high ? indexes : []));
    expect(found).toEqual(wanted.sort((a, b) => a - b));
  };

  for (let round = 0; round < 60; round++) {
    const from = postings.size;
    const to = from + 1 + pick(FLUSH_ENTRIES);
    const batch = new Map<string, number[]>();
    for (let index = from; index < to; index++)
      for (const term of new Set([
        hashedTerm(POSTING.eventType, `type ${pick(3)}`),
        hashedTerm(POSTING.tag, `tag ${pick(2000)}`),
        hexPrefixTerm(
          POSTING.digest,
          pick(2 ** 31)
            .toString(16)
            .padStart(8, "0"),
        ),
        unique(index),
      ])) {
        batch.set(term, [...(batch.get(term) ?? []), index]);
        const held = model.get(term);
        if (held) held.push(index);
        else model.set(term, [index]);
      }
    postings.add(to, batch);
    if (round % 10 === 9) {
      check();
      // A restart at whatever the background work was doing; what no run holds yet is given again.
      await postings.close();
      await store.close();
      store = openStore({ path });
      postings = new Postings(store.postings);
      const rest = new Map<string, number[]>();
      const kept = postings.size;
      for (const [term, indexes] of model) {
        const lost = indexes.filter((index) => index >= kept);
        if (lost.length) rest.set(term, lost);
      }
      postings.add(to, rest);
      check();
    } else if (round % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await postings.settle();
  check();
  expect(postings.runCount).toBeLessThan(16);
  const { size } = postings;
  await postings.close();
  // What a restart has to read again is less than one run, however long the log.
  expect(size - new Postings(store.postings).size).toBeLessThan(FLUSH_ENTRIES);
  await store.close();
  rmSync(path, { recursive: true, force: true });
});
