/** What a reader of entries keeps: how often it goes to the disk, and that it gives the same bytes then. */
import { beforeAll, describe, expect, test } from "vitest";
import { damagedEntry, EntryReader, headOf } from "#cairnlog/engine/log/read/reader.js";
import { Batch, packBatch } from "#cairnlog/engine/store/schema/batch.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog } from "../harness.js";

/** Batches of three small entries each, one of one, and one that is large enough to have a place in the file. */
const SMALL = 20;
const LARGE_AT = 3 * SMALL + 1;
/** Entries of the large batch; the second and third are of 4,096 and 4,097 bytes. */
const LARGE = 300;

let path: string;
let texts: string[];
beforeAll(async () => {
  const { log, path: made } = await openTestLog({ clock: () => 1_700_000_000_000_000 });
  path = made;
  const event = (text: string) => ({ event_type: "note", payload: { text } });
  for (let n = 0; n < SMALL; n++) await log.append([event("a"), event("b"), event("c")]);
  const empty = (await log.append(event(""))).json.length;
  const long = (length: number) => event("x".repeat(length - empty));
  const others = Array.from({ length: LARGE - 3 }, (_, i) => event(`${i}`.padStart(60, "y")));
  await log.append([event("first"), long(4096), long(4097), ...others]);
  texts = Array.from({ length: log.size }, (_, index) => log.entryJsonAt(index)!.toString());
  await log.close();
});

type Reads = Pick<Store, "batchAt" | "batchView" | "batchPlace">;

/** Runs `read` with a reader that has read nothing, and with the number of reads since the last call of `reads`. */
async function withReader(read: (reader: EntryReader, reads: () => string) => void): Promise<void> {
  const store = openStore({ path, readOnly: true, mapSize: MAP_SIZE });
  let [copies, views, places] = [0, 0, 0];
  const counted: Reads = {
    batchAt: (index) => {
      copies++;
      return store.batchAt(index);
    },
    batchView: (index) => {
      views++;
      return store.batchView(index);
    },
    batchPlace: (index) => {
      const place = store.batchPlace(index);
      if (place) places++;
      return place;
    },
  };
  const reads = () => {
    const text = `${copies} copies, ${views} views, ${places} places`;
    [copies, views, places] = [0, 0, 0];
    return text;
  };
  try {
    read(new EntryReader(counted), reads);
  } finally {
    await store.close();
  }
}

const NONE = "0 copies, 0 views, 0 places";

describe.each([
  ["bytes", (reader: EntryReader, index: number) => reader.json(index)?.toString(), (text: string) => text],
  ["entries", (reader: EntryReader, index: number) => reader.entry(index), (text: string) => JSON.parse(text)],
  [
    "digests",
    (reader: EntryReader, index: number) => reader.digest(index),
    (text: string) => JSON.parse(text).entry_hash,
  ],
] as const)("%s", (_, read, expected) => {
  test("the second one of a batch has the batch kept, and all others come from memory", async () => {
    await withReader((reader, reads) => {
      for (const first of [3, 0]) {
        for (const [i, count] of ["0 copies, 1 views, 0 places", "1 copies, 1 views, 0 places", NONE].entries()) {
          expect(read(reader, first + i)).toEqual(expected(texts[first + i]!));
          expect(reads(), `${first} + ${i}`).toBe(count);
        }
      }
      for (const index of [0, 2, 3, 5]) expect(read(reader, index)).toEqual(expected(texts[index]!));
      expect(reads()).toBe(NONE);
      expect(read(reader, 6)).toEqual(expected(texts[6]!));
      expect(reads()).toBe("0 copies, 1 views, 0 places");
    });
  });

  test("one of each batch has none kept", async () => {
    await withReader((reader, reads) => {
      for (let round = 0; round < 2; round++)
        for (let index = 0; index < 12; index += 3) expect(read(reader, index)).toEqual(expected(texts[index]!));
      expect(reads()).toBe("0 copies, 8 views, 0 places");
    });
  });

  test("the last sixteen batches are kept", async () => {
    await withReader((reader, reads) => {
      const one = (index: number) => expect(read(reader, index)).toEqual(expected(texts[index]!));
      for (let index = 0; index < 3 * 16; index++) if (index % 3 < 2) one(index);
      reads();
      for (let batch = 0; batch < 16; batch++) one(3 * batch + 2);
      expect(reads()).toBe(NONE);
      for (const index of [48, 49]) one(index);
      reads();
      for (let batch = 16; batch > 0; batch--) one(3 * batch + 2);
      expect(reads()).toBe(NONE);
      one(2);
      expect(reads()).toBe("0 copies, 1 views, 0 places");
    });
  });

  test("beyond the end there is none", async () => {
    await withReader((reader) => {
      expect(read(reader, texts.length - 1)).toEqual(expected(texts.at(-1)!));
      for (const index of [texts.length, texts.length + 1, 10 * texts.length])
        expect(read(reader, index)).toBeUndefined();
    });
  });
});

test("of a large batch, single entries and digests are read where they lie", async () => {
  await withReader((reader, reads) => {
    const [one, other] = [LARGE_AT + 5, LARGE_AT + 200];
    const inPlace = "0 copies, 0 views, 1 places";
    expect(reader.json(one)?.toString()).toBe(texts[one]);
    expect(reads()).toBe(inPlace);
    reader.json(0);
    reads();
    expect(reader.json(other)?.toString()).toBe(texts[other]);
    expect(reads()).toBe(inPlace);
    reader.json(0);
    reads();
    expect(reader.entry(one)).toEqual(JSON.parse(texts[one]!));
    expect(reads()).toBe(inPlace);
    reader.json(3);
    reads();
    expect(reader.digest(other)).toBe(JSON.parse(texts[other]!).entry_hash);
    expect(reads()).toBe(inPlace);
    // The second one in a row: the whole batch is kept.
    expect(reader.digest(one)).toBe(JSON.parse(texts[one]!).entry_hash);
    expect(reads()).toBe("1 copies, 1 views, 1 places");
    expect(reader.json(LARGE_AT)?.toString()).toBe(texts[LARGE_AT]);
    expect(reads()).toBe(NONE);
  });
});

describe("an entry that is asked for again", () => {
  test("is kept as it is served, if it has 4,096 bytes at most", async () => {
    await withReader((reader) => {
      for (const length of [4096, 4097]) {
        const index = LARGE_AT + length - 4095;
        const [first, second, third] = [reader.json(index)!, reader.json(index)!, reader.json(index)!];
        expect(first).toHaveLength(length);
        // What was asked for once is not kept.
        expect(second === first).toBe(false);
        expect(third === second).toBe(length === 4096);
        for (const json of [first, second, third]) expect(json.toString()).toBe(texts[index]);
      }
    });
  });

  test("is kept until 256 others were", async () => {
    await withReader((reader) => {
      const twice = (index: number) => {
        reader.json(index);
        return reader.json(index);
      };
      const from = LARGE_AT + 4;
      const kept = twice(from);
      for (let i = 1; i < 256; i++) twice(from + i);
      expect(reader.json(from)).toBe(kept);
      // The first one was used last now, so it is kept until there are 256 newer ones.
      for (let i = 0; i < 256; i++) twice(i < 30 ? i : from + i);
      expect(reader.json(from) === kept).toBe(false);
    });
  });
});

test("a damaged entry and a damaged head are named, and an imported entry has no head", () => {
  const [entry, digest] = [Buffer.from("{"), Buffer.alloc(32, 7)];
  const head = { root: Buffer.alloc(32, 1), timestamp: Number.NaN, signature: Buffer.alloc(64) };
  const keyId = Buffer.alloc(32, 9);
  const row = packBatch([entry], digest, { treeVersion: 2, keyId, heads: [head] });
  const batch = new Batch(41, row);
  const store = { batchAt: () => batch, batchView: () => batch, batchPlace: () => undefined };
  const reader = new EntryReader(store);
  expect(() => reader.entry(41)).toThrow(
    expect.objectContaining({
      code: "corrupt-log",
      message: damagedEntry(41, null).message,
      cause: expect.any(SyntaxError),
    }),
  );
  expect(damagedEntry(41, null).message).toMatch(/^The entry at leaf 41 is damaged\./);
  expect(() => reader.head(42)).toThrow(
    expect.objectContaining({
      code: "corrupt-log",
      message: "The head of size 42 is damaged: its timestamp is not valid.",
    }),
  );
  const sound = new Batch(
    41,
    packBatch([entry], digest, { treeVersion: 1, keyId, heads: [{ ...head, timestamp: 5 }] }),
  );
  expect(headOf(sound, 0, 42)).toEqual({
    tree_size: 42,
    root_hash: "01".repeat(32),
    signature: Buffer.alloc(64).toString("base64"),
    timestamp: "1970-01-01T00:00:00.000005Z",
    key_id: `sha256:${"09".repeat(32)}`,
    tree_version: 1,
  });
  expect(headOf(new Batch(41, packBatch([entry], digest, null)), 0, 42)).toBeUndefined();
});
