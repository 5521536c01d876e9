/** Runs of the index: all of one is read, or it is refused; and what is withheld leaves it, unless it is damaged. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { runPath } from "#cairnlog/server/client/static/layout.js";
import { leavesIn, readFence, recordsOf as recordsAbout, writeFence } from "#cairnlog/server/client/static/run.js";
import { objectsOf, readRun } from "#cairnlog/server/publishing/runs.js";
import { takeBack } from "#cairnlog/server/publishing/withheld.js";
import { MemoryTarget } from "./memory.js";

const RUN = { from: 0, to: 256 };
const [PART, FENCE] = [runPath(RUN, 0), runPath(RUN, "fence")];
const RECORD = 40;
const PART_RECORDS = 65_536;
const LEAF = 7;

/** Records of a run, in order; each of another leaf, but for some numbers. */
function recordsOf(count: number, ofLeaf: readonly number[] = []): Buffer {
  const records = Buffer.alloc(count * RECORD);
  for (let i = 0; i < count; i++) {
    records.writeUInt32BE(i, i * RECORD);
    records.writeBigUInt64BE(BigInt(ofLeaf.includes(i) ? LEAF : LEAF + 1 + i), (i + 1) * RECORD - 8);
  }
  return records;
}

const targetOf = (records: Buffer): MemoryTarget => {
  const target = new MemoryTarget();
  for (const [path, bytes] of objectsOf(RUN, records)) target.objects.set(path, Buffer.from(bytes));
  return target;
};

/** Changes that no publisher makes. */
const DAMAGES: readonly (readonly [what: string, change: (objects: Map<string, Buffer>) => void])[] = [
  ["has no fence", (objects) => objects.delete(FENCE)],
  ["has what is no fence", (objects) => objects.set(FENCE, objects.get(FENCE)!.subarray(1))],
  ["has no part", (objects) => objects.delete(PART)],
  ["has lost two records", (objects) => objects.set(PART, objects.get(PART)!.subarray(0, -2 * RECORD))],
  ["has lost some bytes", (objects) => objects.set(PART, objects.get(PART)!.subarray(0, -13))],
];

test.each(DAMAGES)("a run that %s is not read as one that has less", async (_, change) => {
  const target = targetOf(recordsOf(5));
  change(target.objects);
  await expect(readRun(target, RUN)).rejects.toMatchObject({
    code: "corrupt-log",
    message: expect.stringContaining(`has not the whole of ${FENCE}`),
  });
});

test.each([0, 1, 64, PART_RECORDS, PART_RECORDS + 1])("a run of %i records is read as it was made", async (count) => {
  const records = recordsOf(count);
  const target = targetOf(records);
  expect(Buffer.compare(await readRun(target, RUN), records)).toBe(0);
  if (count <= 64) return;
  target.objects.delete(runPath(RUN, Math.floor((count - 1) / PART_RECORDS)));
  await expect(readRun(target, RUN)).rejects.toMatchObject({ code: "corrupt-log" });
});

test("blocks that are not in order are no fence", () => {
  const fence = writeFence(recordsOf(200));
  expect(readFence(fence)).toMatchObject({ count: 200, block: 64, starts: { length: 4 } });
  const [head, first, second] = [0, 8, 16].map((from) => fence.subarray(from, from + 8));
  const rest = fence.subarray(24);
  expect(readFence(Buffer.concat([head!, second!, first!, rest]))).toBeUndefined();
  // Many records may begin alike.
  expect(readFence(Buffer.concat([head!, first!, first!, rest]))).toMatchObject({ count: 200 });
});

test("of a hash every record is found, however many have it or begin as it does, by the fence and the blocks it names", () => {
  const BLOCK = 64;
  const hashOf = (beginning: number, end: number) =>
    `${beginning.toString(16).padStart(16, "0")}${end.toString(16).padStart(48, "0")}`;
  // Hashes of few beginnings and ends, each with up to some blocks of records.
  const some = fc.tuple(fc.nat(3), fc.nat(2), fc.integer({ min: 1, max: 3 * BLOCK }));
  fc.assert(
    fc.property(fc.array(some, { maxLength: 8 }), fc.nat(3), fc.nat(2), (made, beginning, end) => {
      const hashes = made.flatMap(([beginning, end, count]) => Array(count).fill(hashOf(beginning, end)));
      const records = Buffer.concat(
        hashes
          .map((hash, leaf) => Buffer.from(`${hash}${leaf.toString(16).padStart(16, "0")}`, "hex"))
          .sort(Buffer.compare),
      );
      const term = hashOf(beginning, end);
      const { from, to } = recordsAbout(readFence(writeFence(records))!, term);
      const expected = hashes.flatMap((hash, leaf) => (hash === term ? [leaf] : []));
      expect(leavesIn(records.subarray(from * RECORD, to * RECORD), term)).toEqual(expected);
      // No more is asked for than begins as it does, and the rest of the first and the last block.
      const alike = hashes.filter((hash) => hash.startsWith(term.slice(0, 16)));
      expect(to - from).toBeLessThanOrEqual(alike.length + 2 * BLOCK);
    }),
  );
});

const hex = "0".repeat(64);
const payload = { event_type: "payload_withheld", entry_id: LEAF + 1, entry_hash: hex, payload_hash: hex };
const by = { id: 300, event_type: "payload_withheld", payload: { ...payload, reason: "An order.", basis: null } };
const take = (target: MemoryTarget) =>
  takeBack(target, { by: by as unknown as Entry, leafIndex: LEAF }, (path) => new Error(path));

test.each([
  [3, [1]],
  [1, [0]],
  [5, []],
  [PART_RECORDS + 1, [0]],
])(
  "of %i records those of a withheld entry are gone, behind whichever effect one was killed: %j",
  async (count, of) => {
    const all = recordsOf(count, of);
    const left = Buffer.concat(
      Array.from({ length: count }, (_, i) => i)
        .flatMap((i) => (of.includes(i) ? [] : [i]))
        .map((i) => all.subarray(i * RECORD, (i + 1) * RECORD)),
    );
    const expected = targetOf(left).objects;
    for (let killed = 1, isOver = false; !isOver; killed++) {
      const target = targetOf(all);
      isOver = true;
      target.behind = (effect) => {
        if (effect !== killed) return;
        isOver = false;
        throw new Error("killed");
      };
      await take(target).catch((error: Error) => expect(error.message).toBe("killed"));
      await take(target);
      expect([...target.objects.keys()].sort()).toEqual([...expected.keys()].sort());
      for (const [path, bytes] of expected) expect(target.objects.get(path)!.equals(bytes), path).toBe(true);
      const { effects } = target;
      await take(target);
      expect(target.effects).toBe(effects);
    }
  },
);

test.each(DAMAGES.slice(1))(
  "a run that %s gets no fence that hides it when an entry is withheld: it is removed",
  async (_, change) => {
    const target = targetOf(recordsOf(5, [1]));
    change(target.objects);
    await take(target);
    expect([...target.objects.keys()]).toEqual([]);
  },
);

test("what somebody else is making stays if it does not show what is withheld", async () => {
  const target = targetOf(recordsOf(5));
  target.objects.delete(FENCE);
  await take(target);
  expect([...target.objects.keys()]).toEqual([PART]);
});
