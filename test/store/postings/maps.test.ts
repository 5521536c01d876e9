/** What is read of the bitmaps of a run, compared with its records and with the simplest implementation. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { BLOCK_RECORDS, GROUP_BLOCKS, MAPS } from "#cairnlog/engine/store/postings/run-format.js";
import { fencesOf, type Run, RunBuilder, RunReader } from "#cairnlog/engine/store/postings/runs.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";

/** The run covers a part of a log. */
const [FROM, TO] = [5_003, 305_003];
/** More than one group, and a last one that is shorter. */
const SEVERAL = (GROUP_BLOCKS + 5) * BLOCK_RECORDS;

const HAS: Readonly<Record<string, (index: number) => boolean>> = {
  all: () => true,
  half: (index) => (Math.imul(index, 0x9e3779b1) >>> 16) % 2 === 0,
  "one in thirty": (index) => index % 30 === 11,
  "too few for a bitmap": (index) => index % 33 === 11,
  "here and there": (index) => index % 100_000 < SEVERAL,
  "no more than fill a few blocks": (index) => index >= 70_000 && index < 70_000 + 6 * BLOCK_RECORDS,
  few: (index) => index % 1_000 === 7,
  once: (index) => index === 123_456,
};
const lists = Object.entries(HAS).map(([name, has]) => {
  const indexes: number[] = [];
  for (let index = FROM; index < TO; index++) if (has(index)) indexes.push(index);
  return { name, term: hashedTerm(POSTING.tag, name), indexes };
});

const blocks = new Map<number, Buffer>();
const read: number[] = [];
const reader = new RunReader({
  block: (_, number) => {
    read.push(number);
    return blocks.get(number);
  },
});
const table = new TermTable();
for (const { term, indexes } of lists) for (const index of indexes) table.add(term, index);
const builder = new RunBuilder(100, (number, bytes) => blocks.set(number, Buffer.from(bytes)));
for (const _ of table.writeTo(builder, Number.POSITIVE_INFINITY));
const fences = fencesOf(builder.finish());
const mapped: Run = { id: 1, level: 0, from: FROM, to: TO, count: builder.count, bloom: null, fences, mapped: true };
/** A run as older versions write it: without bitmaps. */
const { mapped: _, ...plain } = mapped;

const within = fc.tuple(fc.integer({ min: 0, max: TO + 40 }), fc.integer({ min: 1, max: TO })).map(([at, width]) => {
  const from = at - (at % 32);
  return { from, to: from + width };
});

test.each(lists)("the bits of $name are those of its records", ({ term, indexes }) => {
  fc.assert(
    fc.property(within, ({ from, to }) => {
      const expected = new Int32Array(Math.ceil((to - from) / 32) + 1);
      for (const index of indexes)
        if (index >= from && index < to) expected[(index - from) >>> 5]! |= 1 << ((index - from) & 31);
      for (const run of [mapped, plain]) {
        const { first, end } = reader.span(run, term);
        expect(end - first).toBe(indexes.length);
        const bits = new Int32Array(expected.length);
        reader.fill(run, first, end, bits, from, to);
        expect(Buffer.compare(Buffer.from(bits.buffer), Buffer.from(expected.buffer))).toBe(0);
      }
    }),
    { numRuns: 40 },
  );
});

test.each(lists)("indexes are looked for among those of $name as in its records", ({ term, indexes }) => {
  const has = new Set(indexes);
  const some = fc.array(fc.oneof(fc.nat(TO + 9), fc.constantFrom(...indexes.slice(0, 99), ...indexes.slice(-99))));
  fc.assert(
    fc.property(some, fc.nat(TO), fc.nat(300), (sparse, from, count) => {
      const sought = [...new Set([...sparse, ...Array.from({ length: count }, (_, i) => from + i)])];
      sought.sort((a, b) => a - b);
      for (const run of [mapped, plain]) {
        const { first, end } = reader.span(run, term);
        const marks = new Uint8Array(sought.length);
        reader.mark(run, first, end, sought, marks);
        expect([...marks]).toEqual(sought.map((index) => Number(has.has(index))));
      }
    }),
    { numRuns: 40 },
  );
});

test("a term that has many postings is read from few bitmaps, and no more than its ends from blocks", () => {
  for (const { name, term, indexes } of lists) {
    const { first, end } = reader.span(mapped, term);
    read.length = 0;
    reader.fill(mapped, first, end, new Int32Array(TO), 0, TO);
    const filled = read.splice(0);
    reader.mark(mapped, first, end, indexes, new Uint8Array(indexes.length));
    const whole = Math.floor(indexes.length / BLOCK_RECORDS);
    for (const numbers of [filled, read]) {
      const maps = numbers.filter((number) => number >= MAPS).length;
      if (name === "too few for a bitmap" || whole < 4) expect([name, maps]).toEqual([name, 0]);
      else {
        expect(maps, name).toBeLessThanOrEqual(Math.ceil(whole / GROUP_BLOCKS));
        expect(numbers.length - maps, name).toBeLessThanOrEqual(5);
      }
    }
  }
});

test("bitmaps take a sixth of what the records of their terms take, at most", () => {
  const bytes = (isMap: boolean) =>
    [...blocks].reduce((sum, [number, { length }]) => sum + (number >= MAPS === isMap ? length : 0), 0);
  expect(bytes(true)).toBeGreaterThan(0);
  expect(bytes(true)).toBeLessThan(bytes(false) / 6);
});
