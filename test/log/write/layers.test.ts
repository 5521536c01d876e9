/** State as commands see it, above a disk that is a map: which layer counts, and what is kept in memory. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { finishEntry } from "#cairnlog/engine/log/state/entry.js";
import { addDigestTerm, addLogTerms, eventTerms, type LoggedEvent } from "#cairnlog/engine/log/state/projection.js";
import { CommittedRows, LayeredState } from "#cairnlog/engine/log/state/rows.js";
import { Layer, rowsBetween, type StateRow, type TableChange, withChanges } from "#cairnlog/engine/store/changeset.js";
import { hashedTerm, hashTerm, hexPrefixTerm } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { POSTING, type TableName } from "#cairnlog/engine/store/schema/schema.js";
import type { Store } from "#cairnlog/engine/store/store.js";

type Reads = Pick<Store, "get" | "range">;

/** A disk with rows of the tables `counters`, `keys` and `webhooks`, under text keys; it counts its reads. */
function diskOf(rows: Record<string, number> = {}) {
  const disk = {
    rows: new Map<string, unknown>(Object.entries(rows).map(([key, last]) => [key, { last }])),
    gets: 0,
    ranges: 0,
    get: (_: TableName, key: unknown) => {
      disk.gets++;
      return disk.rows.get(key as string);
    },
    *range(_: TableName, start = "", end = "\uffff") {
      disk.ranges++;
      const sorted = [...disk.rows].sort(([a], [b]) => (a < b ? -1 : 1));
      for (const [key, row] of sorted) if (key >= start && key < end) yield { key, row };
    },
  };
  return disk as typeof disk & Reads;
}
const row = (last: number) => ({ last }) as never;

function layerOf(rows: Record<string, number | undefined>): Layer {
  const layer = new Layer();
  for (const [key, last] of Object.entries(rows))
    layer.put("counters", key as never, last === undefined ? undefined : row(last));
  return layer;
}

describe("rows under layers", () => {
  const disk = diskOf({ a: 1, b: 1, c: 1, d: 1, f: 1 });
  const layers = [layerOf({ b: 2, c: 2, e: 2, d: undefined }), layerOf({ c: 3, d: 3, e: undefined, aa: 3 })];
  const state = new LayeredState(disk, null, layers);
  const seen = { a: 1, aa: 3, b: 2, c: 3, d: 3, f: 1 } as const;

  test("are those of the newest layer that has them", () => {
    for (const key of ["a", "aa", "b", "c", "d", "e", "f", "g"])
      expect(state.get("counters", key as never)?.last, key).toBe((seen as Record<string, number>)[key]);
  });

  test("are read in ranges, which hold their start and not their end", () => {
    const keys = ["", "a", "aa", "b", "c", "d", "e", "f", "g"];
    for (const start of keys)
      for (const end of keys.filter((key) => key >= start)) {
        const expected = Object.entries(seen).filter(([key]) => key >= start && key < end);
        const found = state.range("counters", start, end).map(({ key, row: { last } }) => [key, last]);
        expect(found, `${start}–${end}`).toEqual(expected);
      }
  });

  test("are written to the newest layer alone", () => {
    const [older, newer] = [layerOf({ a: 2 }), layerOf({})];
    const writer = new LayeredState(disk, null, [older, newer]);
    writer.put("counters", "a" as never, row(9));
    expect(older.change("counters", "a" as never)).toMatchObject({ row: { last: 2 } });
    expect(newer.change("counters", "a" as never)).toMatchObject({ row: { last: 9 } });
    writer.put("counters", "a" as never, undefined);
    expect(writer.get("counters", "a" as never)).toBeUndefined();
  });

  test("cannot be read from a disk that fails, and the command is told so", () => {
    const cause = new Error("injected: unreadable");
    const fail = () => {
      throw cause;
    };
    const failing = new LayeredState({ get: fail, range: fail }, null, [layerOf({ a: 2 })]);
    const refusal = { code: "storage-failed", message: "The data directory cannot be read.", cause };
    expect(failing.get("counters", "a" as never)).toEqual({ last: 2 });
    expect(() => failing.get("counters", "b" as never)).toThrow(expect.objectContaining(refusal));
    expect(() => failing.range("counters", "a", "b")).toThrow(expect.objectContaining(refusal));
  });
});

test("a command that is refused leaves a layer as it was, whatever it wrote and however often", () => {
  const writes = fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.option(fc.nat(9), { nil: undefined })));
  const shown = (layer: Layer) => [...layer.changes("counters")].map(({ key, row }) => [key, row?.last]).sort();
  const write = (layer: Layer, all: readonly (readonly [string, number | undefined])[]) => {
    for (const [key, last] of all) layer.put("counters", key as never, last === undefined ? undefined : row(last));
  };
  fc.assert(
    fc.property(writes, writes, writes, (kept, refused, after) => {
      const layer = new Layer();
      layer.begin();
      write(layer, kept);
      layer.keep();
      const before = shown(layer);
      layer.begin();
      write(layer, refused);
      layer.undo();
      expect(shown(layer)).toEqual(before);
      layer.begin();
      write(layer, after);
      layer.keep();
      expect(shown(layer)).toEqual(Object.entries(Object.fromEntries([...kept, ...after])).sort());
    }),
  );
});

test("the first entry with a term is looked for on disk, and then in the oldest layer", () => {
  const [onDisk, early, late, none] = ["a", "b", "c", "d"].map((text) => hashedTerm(POSTING.tag, text)) as [
    string,
    string,
    string,
    string,
  ];
  const layers = [new Layer(), new Layer(), new Layer()];
  layers[0]!.terms.add(early, 10);
  layers[1]!.terms.add(early, 20);
  layers[1]!.terms.add(late, 21);
  layers[2]!.terms.add(late, 30);
  layers[2]!.terms.add(onDisk, 31);
  const postings = { first: (term: string) => (term === onDisk ? 0 : undefined) };
  const state = new LayeredState(diskOf(), postings, layers);
  expect([onDisk, early, late, none].map((term) => state.first(term))).toEqual([0, 10, 21, undefined]);
  expect(new LayeredState(diskOf(), null, layers).first(onDisk)).toBe(31);
});

describe("rows that are kept", () => {
  const changed = (table: TableName, key: string, last: number | undefined) => {
    const layer = new Layer();
    layer.put(table as "keys", key as never, last === undefined ? undefined : row(last));
    return layer;
  };

  test("those of keys are read once, until they change or the disk may hold anything", () => {
    const disk = diskOf({ a: 1, b: 1 });
    const rows = new CommittedRows(disk);
    const get = (key: string) => (rows.get("keys", key) as { last: number } | undefined)?.last;
    expect([get("a"), get("a"), get("b"), get("a"), disk.gets]).toEqual([1, 1, 1, 1, 2]);
    disk.rows.set("a", { last: 2 });
    rows.written(changed("keys", "a", 2));
    expect([get("a"), get("b"), disk.gets]).toEqual([2, 1, 3]);
    rows.written(changed("counters", "b", 2));
    expect([get("b"), disk.gets]).toEqual([1, 3]);
    disk.rows.set("b", { last: 7 });
    rows.clear();
    expect([get("b"), disk.gets]).toEqual([7, 4]);
    // That a key is not there is not kept.
    expect(get("c")).toBeUndefined();
    disk.rows.set("c", { last: 3 });
    expect(get("c")).toBe(3);
  });

  test("those of other tables are read each time", () => {
    const disk = diskOf({ a: 1 });
    const rows = new CommittedRows(disk);
    for (const count of [1, 2]) {
      expect(rows.get("counters", "a" as never)).toEqual({ last: 1 });
      expect(rows.range("counters", "a", "b")).toEqual([{ key: "a", row: { last: 1 } }]);
      expect([disk.gets, disk.ranges]).toEqual([count, count]);
    }
    expect(rows.range("counters", "b", "c")).toEqual([]);
  });

  test("those of webhooks are read once as a whole, and follow what is written; what was given does not change", () => {
    const disk = diskOf({ a: 1, b: 1, c: 1 });
    const rows = new CommittedRows(disk);
    const range = (start: string, end: string) => rows.range("webhooks", start, end) as unknown as { key: string }[];
    expect(range("b", "c").map(({ key }) => key)).toEqual(["b"]);
    const all = range("", "z");
    expect(all.map(({ key }) => key)).toEqual(["a", "b", "c"]);
    expect(range("", "z")).toBe(all);
    expect(disk.ranges).toBe(1);
    rows.written(changed("webhooks", "b", undefined));
    rows.written(changed("webhooks", "bb", 2));
    expect(range("", "z").map(({ key }) => key)).toEqual(["a", "bb", "c"]);
    expect(all.map(({ key }) => key)).toEqual(["a", "b", "c"]);
    expect(disk.ranges).toBe(1);
    rows.clear();
    expect(range("", "z").map(({ key }) => key)).toEqual(["a", "b", "c"]);
    expect(disk.ranges).toBe(2);
  });

  test("observers get the changes of their own table, when there are any, and the newest observer of a table alone", () => {
    const rows = new CommittedRows(diskOf());
    const seen: unknown[] = [];
    const observer = (name: string) => (changes: readonly TableChange<"counters">[] | null) => {
      seen.push([name, changes?.map(({ key }) => key) ?? null]);
    };
    rows.observe("counters", observer("earlier"));
    rows.observe("counters", observer("counters"));
    rows.observe("keys", observer("keys") as never);
    rows.written(changed("keys", "a", 1));
    rows.written(changed("users", "a", 1));
    rows.written(changed("counters", "b", 1));
    expect(seen.splice(0)).toEqual([
      ["keys", ["a"]],
      ["counters", ["b"]],
    ]);
    rows.clear();
    expect(seen).toEqual([
      ["counters", null],
      ["keys", null],
    ]);
  });
});

test("a list of rows that needs no change is given as it is", () => {
  const rows = ["a", "b"].map((key) => ({ key, row: row(1) })) as unknown as StateRow<"counters">[];
  expect(withChanges(rows, [])).toBe(rows);
  expect(rowsBetween(rows, "a", "c")).toBe(rows);
  expect(rowsBetween(rows, "a", "b")).toEqual([rows[0]]);
});

describe("terms of an event", () => {
  function addedTerms(payload: Record<string, unknown>): [string, number][] {
    const added: [string, number][] = [];
    const event = { event_type: "note", payload, id: 8, leafIndex: 7, timestamp: "" } as unknown as LoggedEvent;
    addLogTerms(event, { add: (term, index) => added.push([term, index]) });
    return added;
  }
  const type: [string, number] = [hashedTerm(POSTING.eventType, "note"), 7];

  test("tags that are texts, in lower case, and fields that are texts", () => {
    expect(
      addedTerms({ tags: ["News", 7, null], fingerprint: 7, document_hash: null, signer_fingerprint: true }),
    ).toEqual([type, [hashedTerm(POSTING.tag, "news"), 7]]);
    expect(addedTerms({ tags: "news" })).toEqual([type]);
    const fingerprint = `sha256:${"AB".repeat(32)}`;
    expect(addedTerms({ endorser_key_fingerprint: fingerprint })).toEqual([
      type,
      [hashTerm(POSTING.fingerprint, fingerprint.toLowerCase()), 7],
    ]);
  });

  test("made before the event has its place, they file it where its own projection and every log file it", () => {
    const payload = { document_title: "Blue tits", tags: ["news"], fingerprint: "ab", timestamp: "" };
    const own = hashedTerm(POSTING.submission, "own");
    const projection = {
      apply() {},
      addTerms: ({ leafIndex }: LoggedEvent, terms: Pick<TermTable, "add">) => terms.add(own, leafIndex),
    };
    const table = new TermTable();
    table.addEach(eventTerms({ event_type: "note", payload }, projection), 7);
    const expected = [[own, 7] as const, ...addedTerms({ ...payload, timestamp: "later" })];
    expect([...table]).toEqual(expected.map(([term, index]) => [term, [index]]));
  });

  test("digests, however they are spelled", () => {
    const added: unknown[] = [];
    addDigestTerm("ABCD".repeat(16), 3, { add: (...term) => added.push(term) });
    expect(added).toEqual([[hexPrefixTerm(POSTING.digest, "abcd".repeat(16)), 3]]);
  });
});

test("entries of types that take turns are spelled each with its own", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom("", "a", "b", '"'), { maxLength: 8 }), (types) => {
      for (const event_type of types) {
        const draft = { id: 1, timestamp: "2026-01-01T12:00:00.000000Z", event_type, canonicalPayload: "{}" };
        expect(JSON.parse(finishEntry(draft, null, null).text)).toMatchObject({ event_type });
      }
    }),
  );
});
