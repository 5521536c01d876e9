/** What a transaction may add to a log's file is bounded before it runs, by what it changes: never less than LMDB takes, and not much more. */
import { join } from "node:path";
import fc from "fast-check";
import type { Database } from "lmdb";
import { Encoder } from "msgpackr";
import { describe, expect, test } from "vitest";
import { fileUse, openEnvironment } from "#cairnlog/engine/store/lmdb/environment.js";
import { PageFile } from "#cairnlog/engine/store/lmdb/file/pagefile.js";
import { encodedBytes, Growth } from "#cairnlog/engine/store/lmdb/growth.js";
import type { Key } from "#cairnlog/engine/store/schema/schema.js";
import { temporaryFolder } from "../log/harness.js";
import { anyCharacter } from "../texts.js";

const PAGE = 4096;
type Change = { readonly key: Key; readonly bytes: number | null };

/** An environment with two tables of bytes. If a reader holds its first moment, every page comes from the end of the file. */
function openTables(isHeld = true) {
  const path = temporaryFolder();
  const mapSize = 2 ** 32;
  const environment = openEnvironment({
    path,
    mapSize,
    maxDbs: 4,
    readOnly: false,
    noSync: true,
    advice: null,
    mustExist: false,
  });
  const tables = ["one", "two"].map((name) => environment.openDB<Buffer, Key>({ name, encoding: "binary" }));
  const reader = isHeld ? environment.useReadTransaction() : undefined;
  const write = async (changes: readonly Change[], into: Database<Buffer, Key> = tables[0]!) => {
    await environment.batch(() => {
      for (const { key, bytes } of changes)
        if (bytes === null) void into.remove(key);
        else void into.put(key, Buffer.alloc(bytes, 7));
    });
    await environment.flushed;
  };
  const measured = async (changes: readonly Change[]) => {
    const growth = new Growth();
    for (const { key, bytes } of changes) growth.add("one", key, bytes);
    const { bytes: before, freeListPages } = fileUse(environment);
    const file = new PageFile(join(path, "data.mdb"));
    const [tight, loose] = [(await growth.tight(file))!, growth.loose(freeListPages)];
    file.close();
    await write(changes);
    return { tight, loose, used: fileUse(environment).bytes - before };
  };
  const close = async () => {
    reader?.done();
    await environment.close();
  };
  return { write, measured, close };
}

const hex = (n: number): string =>
  Math.imul(n + 1, 0x9e3779b1)
    .toString(16)
    .padStart(8, "0");
const range = (count: number, from = 0) => Array.from({ length: count }, (_, n) => from + n);

/** How keys lie: all over the table, one after another at its end, under one of its keys, or in some places. */
const KEYS: Record<string, (n: number) => Key> = {
  scattered: (n) => `${hex(n)}-${"k".repeat(50)}`,
  appended: (n) => n,
  clustered: (n) => [hex(3), n],
  "in some places": (n) => [hex(n % 7), n],
};

const shape = fc.record({
  keys: fc.constantFrom(...Object.keys(KEYS)),
  before: fc.integer({ min: 0, max: 3000 }),
  count: fc.integer({ min: 1, max: 1500 }),
  sizes: fc.array(
    fc.oneof(
      fc.integer({ min: 0, max: 60 }),
      fc.integer({ min: 100, max: 600 }),
      fc.integer({ min: 600, max: 20_000 }),
    ),
    {
      minLength: 1,
      maxLength: 5,
    },
  ),
  step: fc.constantFrom(1, 2, 5),
  run: fc.constantFrom(1, 12, 40),
  removedShare: fc.constantFrom(0, 0, 0.3, 1),
});

describe("the bound of a transaction's growth", () => {
  test("is never below what LMDB takes, whatever is changed", async () => {
    const property = fc.asyncProperty(
      fc.boolean(),
      shape,
      fc.array(shape, { maxLength: 5 }),
      async (isHeld, first, more) => {
        const tables = openTables(isHeld);
        const keyOf = KEYS[first.keys]!;
        await tables.write(
          range(first.before).map((n) => ({ key: keyOf(2 * n), bytes: first.sizes[n % first.sizes.length]! })),
        );
        for (const { count, sizes, step, run, removedShare } of [first, ...more]) {
          const changes = range(count).map((n) => ({
            key: keyOf(n * step),
            // Sizes change after each key, or after some, so that halves of pages differ.
            bytes: (n * 0.618) % 1 < removedShare ? null : sizes[Math.floor(n / run) % sizes.length]!,
          }));
          const { tight, loose, used } = await tables.measured(changes);
          expect(tight).toBeGreaterThanOrEqual(used);
          expect(loose).toBeGreaterThanOrEqual(used);
        }
        await tables.close();
      },
    );
    await fc.assert(property, { numRuns: 25, seed: Number(process.env.TEST_SEED ?? 1) });
  });

  test.each(Object.keys(KEYS))("asks for at most eight times what rows take whose keys are %s", async (name) => {
    const keyOf = KEYS[name]!;
    const tables = openTables();
    await tables.write(range(20_000).map((n) => ({ key: keyOf(n), bytes: 120 })));
    for (const count of [1, 100, 5_000]) {
      const changes = range(count, 30_000).map((n) => ({ key: keyOf(n), bytes: 120 }));
      const { tight, used } = await tables.measured(changes);
      expect(tight).toBeLessThanOrEqual(8 * used + 32 * PAGE);
    }
    await tables.close();
  });
});

test("the bound of a row's encoding is never below the encoding", () => {
  const encoder = new Encoder();
  const row = fc.dictionary(
    fc.string(),
    fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.double(),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.constant(undefined),
      fc.uint8Array(),
      fc.array(fc.integer()),
      fc.dictionary(fc.string(), fc.integer()),
    ),
  );
  fc.assert(
    fc.property(row, (value) => {
      expect(encodedBytes(value)).toBeGreaterThanOrEqual(encoder.encode(value).length);
    }),
  );
});
