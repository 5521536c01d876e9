/** Paths of tiles: each tile has one, and nothing else is one. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseTilePath, type TileName, tilePath } from "#cairnlog/engine/verify/index.js";

const parse = (path: string) => parseTilePath(path.split("/").slice(1));

describe("a path", () => {
  test.each<[string, TileName]>([
    ["tile/0/000", { level: 0, index: 0, width: 256 }],
    ["tile/0/000.p/1", { level: 0, index: 0, width: 1 }],
    ["tile/63/255", { level: 63, index: 255, width: 256 }],
    ["tile/1/x001/000", { level: 1, index: 1000, width: 256 }],
    ["tile/0/x001/x234/067", { level: 0, index: 1_234_067, width: 256 }],
    ["tile/0/x001/x234/067.p/255", { level: 0, index: 1_234_067, width: 255 }],
    ["tile/entries/x999/999.p/10", { level: "entries", index: 999_999, width: 10 }],
  ])("%s", (path, name) => {
    expect(parse(path)).toEqual(name);
    expect(tilePath(name)).toBe(path);
  });

  test.each([
    "tile",
    "tile/0",
    "tile/0/",
    "tile/0/0",
    "tile/0/0000",
    "tile/0/00x",
    "tile/0/x000",
    "tile/0/x000/001",
    "tile/0/x000/x001/002",
    "tile/0/001/002",
    "tile/0/x01/002",
    "tile/0/X001/002",
    "tile/0/x001/x002",
    "tile/00/001",
    "tile/01/001",
    "tile/64/001",
    "tile/100/001",
    "tile/-1/001",
    "tile/+1/001",
    "tile/1e1/001",
    "tile/Entries/001",
    "tile/data/001",
    "tile/0/-01",
    "tile/0/001.p",
    "tile/0/001.p/",
    "tile/0/001.p/0",
    "tile/0/001.p/00",
    "tile/0/001.p/01",
    "tile/0/001.p/256",
    "tile/0/001.p/999",
    "tile/0/001.p/1000",
    "tile/0/001.p/x10",
    "tile/0/001.p/1/2",
    "tile/0/001.p/1.p/2",
    "tile/0/x001.p/1",
    "tile/0/.p/1",
    "tile/0/ 01",
    "tile/0/٠٠١",
    "tile/0/x009/x007/x199/x254/x740/992",
    "tile/0/001\n",
  ])("not %j", (path) => {
    expect(parse(path)).toBeUndefined();
  });

  test("of any tile leads back to it, and any path that is accepted is the one of its tile", () => {
    const name = fc.record({
      level: fc.oneof(fc.integer({ min: 0, max: 63 }), fc.constant("entries" as const)),
      index: fc.oneof(fc.maxSafeNat(), fc.integer({ min: 0, max: 2_000 })),
      width: fc.integer({ min: 1, max: 256 }),
    });
    fc.assert(
      fc.property(name, (tile) => {
        expect(parse(tilePath(tile))).toEqual(tile);
      }),
    );
    const part = fc.stringMatching(/^(?:x?\d{0,3}(?:\.p)?|entries)$/);
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const tile = parseTilePath(parts);
        if (tile) expect(tilePath(tile)).toBe(["tile", ...parts].join("/"));
      }),
    );
  });

  test.each<[unknown]>([
    [{ level: 64, index: 0, width: 1 }],
    [{ level: -1, index: 0, width: 1 }],
    [{ level: 0.5, index: 0, width: 1 }],
    [{ level: 0, index: -1, width: 1 }],
    [{ level: 0, index: 2 ** 53, width: 1 }],
    [{ level: 0, index: 0, width: 0 }],
    [{ level: 0, index: 0, width: 257 }],
  ])("is made of no tile like %j", (name) => {
    expect(() => tilePath(name as TileName)).toThrow(expect.objectContaining({ code: "invalid-input" }));
  });
});
