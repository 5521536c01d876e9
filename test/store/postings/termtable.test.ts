/** The table of terms compared with a simple map: growth, undoing, merging and reuse. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { BLOCK_RECORDS, RECORD_BYTES } from "#cairnlog/engine/store/postings/run-format.js";
import { RunBuilder } from "#cairnlog/engine/store/postings/runs.js";
import { TERM_BYTES } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";

/** Few terms, many with the same beginning, with bytes of either sign. */
const term = fc
  .tuple(
    fc.constantFrom(1, 3, 9, 0x80, 0xff),
    fc.constantFrom("", "\0\0\0", "\xff\xff\xff", "abc", "abcdefghij"),
    fc.array(fc.constantFrom(0, 1, 0x7f, 0x80, 0xff), { maxLength: 6 }),
  )
  .map(([kind, start, rest]) =>
    (String.fromCharCode(kind) + start + String.fromCharCode(...rest)).padEnd(TERM_BYTES, "\0").slice(0, TERM_BYTES),
  );

/** Terms of entries that follow one another; some beyond 2^32. */
const entries = fc
  .tuple(
    fc.constantFrom(0, 4_096, 2 ** 32 - 2, 2 ** 47),
    fc.array(fc.array(term, { maxLength: 12 }), { maxLength: 60 }),
  )
  .map(([from, terms]) => terms.map((of, i) => ({ index: from + i, terms: of })));

type Entries = readonly { readonly index: number; readonly terms: readonly string[] }[];

function file(entries: Entries, table = new TermTable()): TermTable {
  for (const { index, terms } of entries) for (const term of terms) table.add(term, index);
  return table;
}

function model(entries: Entries): Map<string, number[]> {
  const map = new Map<string, number[]>();
  for (const { index, terms } of entries)
    for (const term of new Set(terms)) map.set(term, [...(map.get(term) ?? []), index]);
  return map;
}

function expectSame(table: TermTable, map: ReadonlyMap<string, readonly number[]>): void {
  expect(new Map(table)).toEqual(map);
  expect(table.count).toBe([...map.values()].reduce((sum, { length }) => sum + length, 0));
  for (const [term, indexes] of map) {
    expect(table.list(term)).toEqual(indexes);
    expect(table.first(term)).toBe(indexes[0]);
  }
  const absent = "\x05".padEnd(TERM_BYTES, "?");
  expect(table.list(absent)).toEqual([]);
  expect(table.first(absent)).toBe(undefined);
}

test("it holds what a map holds, and what was taken back leaves no trace", () => {
  fc.assert(
    fc.property(entries, entries, fc.nat(60), (kept, refused, again) => {
      const table = file(kept);
      const { count } = table;
      const last = kept.at(-1)?.index ?? 0;
      const later = refused.map(({ terms }, i) => ({ index: last + 1 + i, terms }));
      file(later, table);
      expectSame(table, model([...kept, ...later]));
      table.truncate(count);
      expectSame(table, model(kept));
      const third = later.slice(0, again);
      expectSame(file(third, table), model([...kept, ...third]));
      table.clear();
      expectSame(table, new Map());
      expectSame(file(later, table), model(later));
    }),
  );
});

test("one table added to another is as if all had come to one", () => {
  fc.assert(
    fc.property(entries, fc.nat(60), (all, at) => {
      const table = file(all.slice(0, at));
      table.addAll(file(all.slice(at)));
      expectSame(table, model(all));
    }),
  );
});

test("packed for another thread and added there, it is as if all had come there", () => {
  fc.assert(
    fc.property(entries, fc.nat(60), (all, at) => {
      const [earlier, later] = [all.slice(0, at), all.slice(at)];
      const base = later[0]?.index ?? 0;
      const sent = file(later);
      const words = new Int32Array(new SharedArrayBuffer(4 * sent.packedWords));
      sent.pack(words, base);
      const table = file(earlier);
      table.addPacked(words, base);
      expectSame(table, model(all));
    }),
  );
});

test("a range is every posting of a kind whose term is in it, also after terms came and went", () => {
  fc.assert(
    fc.property(entries, entries, term, term, (all, gone, low, other) => {
      const high = low[0] + other.slice(1);
      const table = file(all);
      const expectRange = (map: ReadonlyMap<string, readonly number[]>) => {
        const wanted = [...map].flatMap(([term, indexes]) => (term >= low && term <= high ? indexes : []));
        const found: number[] = [];
        table.readRange(low, high, found);
        expect(found.sort((a, b) => a - b)).toEqual(wanted.sort((a, b) => a - b));
        expect(table.rangeCount(low, high)).toBe(wanted.length);
      };
      expectRange(model(all));
      const { count } = table;
      const last = all.at(-1)?.index ?? 0;
      const later = gone.map(({ terms }, i) => ({ index: last + 1 + i, terms }));
      file(later, table);
      expectRange(model([...all, ...later]));
      table.truncate(count);
      expectRange(model(all));
      table.clear();
      expectRange(new Map());
    }),
  );
});

/** Records in the format of a run: term, a zero, six bytes of the index. */
function recordsOf(map: ReadonlyMap<string, readonly number[]>): Buffer {
  const records = [...map].flatMap(([term, indexes]) =>
    indexes.map((index) => {
      const record = Buffer.alloc(RECORD_BYTES);
      record.write(term, "latin1");
      record.writeUIntBE(index, TERM_BYTES + 1, 6);
      return record;
    }),
  );
  return Buffer.concat(records.sort(Buffer.compare));
}

test("it is written in the order of bytes, with pauses between a bounded number of postings", () => {
  fc.assert(
    fc.property(entries, fc.integer({ min: 1, max: 20 }), (all, slice) => {
      const written: Buffer[] = [];
      const builder = new RunBuilder(all.length, (block, records) => {
        expect(block).toBe(written.length);
        written.push(records);
      });
      const table = file(all);
      const pauses: number[] = [];
      for (const _ of table.writeTo(builder, slice)) pauses.push(builder.count);
      builder.finish();
      expect(Buffer.concat(written).equals(recordsOf(model(all)))).toBe(true);
      expect(written.slice(0, -1).every(({ length }) => length === BLOCK_RECORDS * RECORD_BYTES)).toBe(true);
      // The terms are put in order before the first pause, and nothing is written before it.
      expect(pauses[0]).toBe(0);
      const longest = Math.max(0, ...[...model(all).values()].map(({ length }) => length));
      for (const [i, count] of [...pauses.slice(1), builder.count].entries())
        expect(count - pauses[i]!).toBeLessThan(slice + Math.max(1, longest));
    }),
  );
});
