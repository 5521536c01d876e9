/** Tiles, computed here from the entries by definition with node:crypto; and trees rebuilt from tiles alone. */
import { beforeAll, describe, expect, test } from "vitest";
import { openTestLog, testOperator } from "../../log/harness.js";
import { expectProblem, type Reply, startTestService, type TestService } from "../../server/harness.js";
import { sha256 } from "../../server/signers.js";

type Version = 1 | 2;
const VERSIONS = [1, 2] as const;
/** Two full tiles of leaves and a partial one. */
const SIZE = 700;
const WIDTH = 256;

const leaf = (digest: string, version: Version) => sha256((version === 2 ? "\0" : "") + digest);
const node = (left: string, right: string, version: Version) => sha256((version === 2 ? "\x01" : "") + left + right);

/** Complete nodes of the next level. */
const above = (hashes: readonly string[], version: Version) =>
  Array.from({ length: Math.floor(hashes.length / 2) }, (_, i) => node(hashes[2 * i]!, hashes[2 * i + 1]!, version));

/** Complete nodes of tree level 8 · `tileLevel`, by the definition. */
function nodesOf(digests: readonly string[], tileLevel: number, version: Version): string[] {
  let hashes = digests.map((digest) => leaf(digest, version));
  for (let level = 0; level < 8 * tileLevel; level++) hashes = above(hashes, version);
  return hashes;
}

const hashesIn = ({ bytes }: Reply) =>
  Array.from({ length: bytes.length / 32 }, (_, i) => bytes.toString("hex", 32 * i, 32 * i + 32));

let service: TestService;
let digests: string[];
const append = (count: number) =>
  service.server.registry.log.append(
    Array.from({ length: count }, (_, i) => ({ event_type: "test.event", payload: { i } })),
  );

beforeAll(async () => {
  service = await startTestService();
  expectProblem(await service.get("/log/tile/2/0/0.p/1"), 404, "not-found");
  await append(SIZE);
  const pages = await Promise.all([1, 2, 3, 4].map((page) => service.get(`/log?per_page=200&page=${page}`)));
  digests = pages.flatMap(({ body }) => body.entries.map((entry: { entry_hash: string }) => entry.entry_hash));
  expect(digests).toHaveLength(SIZE);
});

describe.each(VERSIONS)("tree version %i", (version) => {
  test("full tiles match the definition", async () => {
    const leaves = nodesOf(digests, 0, version);
    for (const index of [0, 1]) {
      const reply = await service.get(`/log/tile/${version}/0/${index}`);
      expect(reply.status).toBe(200);
      expect(reply.headers.get("content-type")).toBe("application/octet-stream");
      expect(reply.bytes).toHaveLength(8192);
      expect(hashesIn(reply)).toEqual(leaves.slice(WIDTH * index, WIDTH * (index + 1)));
    }
  });

  test("partial tiles of every width are the beginning of a tile, whether it is full by now or not", async () => {
    for (const [level, index] of [
      [0, 0],
      [0, 2],
      [1, 0],
    ] as const) {
      const nodes = nodesOf(digests, level, version).slice(WIDTH * index, WIDTH * (index + 1));
      for (const width of [1, 2, 3, 127, 187, 188, 189, 255]) {
        const reply = await service.get(`/log/tile/${version}/${level}/${index}.p/${width}`);
        if (width > nodes.length) expectProblem(reply, 404, "not-found");
        else expect(hashesIn(reply)).toEqual(nodes.slice(0, width));
      }
    }
  });

  test("root and inclusion proofs of sizes around 256 and 512 can be rebuilt from tiles alone", async () => {
    const tiles = new Map<string, string[]>();
    /** A complete node of the tree of `size` leaves, from a tile of that size. */
    const complete = async (level: number, index: number, size: number): Promise<string> => {
      const tileLevel = Math.floor(level / 8);
      const first = index * 2 ** (level % 8);
      const tile = Math.floor(first / WIDTH);
      const width = Math.min(WIDTH, Math.floor(size / WIDTH ** tileLevel) - tile * WIDTH);
      const path = `${version}/${tileLevel}/${tile}${width < WIDTH ? `.p/${width}` : ""}`;
      if (!tiles.has(path)) tiles.set(path, hashesIn(await service.get(`/log/tile/${path}`)));
      let hashes = tiles.get(path)!.slice(first % WIDTH, (first % WIDTH) + 2 ** (level % 8));
      while (hashes.length > 1) hashes = above(hashes, version);
      return hashes[0]!;
    };
    /** Any node. An incomplete last node is computed from its children, or from its only child twice. */
    const any = async (level: number, index: number, size: number): Promise<string> => {
      if ((index + 1) * 2 ** level <= size) return complete(level, index, size);
      const left = await any(level - 1, 2 * index, size);
      const hasRight = (2 * index + 1) * 2 ** (level - 1) < size;
      return node(left, hasRight ? await any(level - 1, 2 * index + 1, size) : left, version);
    };
    for (const size of [1, 2, 255, 256, 257, 511, 512, 513, 600, SIZE]) {
      const height = Math.ceil(Math.log2(size));
      const index = Math.floor(size / 2);
      const { body } = await service.get(`/log/proof/${index}?tree_size=${size}&tree_version=${version}`);
      expect(await any(height, 0, size)).toBe(body.root_hash);
      const path: string[] = [];
      for (let level = 0; level < height; level++) {
        const sibling = Math.floor(index / 2 ** level) ^ 1;
        if (sibling * 2 ** level < size) path.push(await any(level, sibling, size));
      }
      expect(path).toEqual(body.audit_path);
      expect(await complete(0, index, size)).toBe(leaf(digests[index]!, version));
    }
  });
});

test("tiles that the log has not filled, and levels it has not reached, are 404", async () => {
  for (const tile of ["0/2", "0/3", "1/0", "1/1", "2/0", "63/0", "0/9007199254740991", "63/9007199254740991"])
    expectProblem(await service.get(`/log/tile/2/${tile}`), 404, "not-found");
  for (const tile of ["0/3.p/1", "1/0.p/3", "1/1.p/1", "2/0.p/1", "0/999999999999999.p/255"])
    expectProblem(await service.get(`/log/tile/2/${tile}`), 404, "not-found");
});

test("an invalid tile is 422", async () => {
  for (const tile of ["0/0/0", "3/0/0", "2/64/0", "2/-1/0", "2/0/-1", "2/00/0", "2/0/00", "2/0/x000", "2/0/0.p"])
    expectProblem(await service.get(`/log/tile/${tile}`), 422, "invalid-input");
  for (const tile of ["0/0.p/0", "0/0.p/256", "0/0.p/01", "0/0.p/-1", "0/00.p/1", "0/0/1", "0/0.q/1", "0/.p/1"])
    expectProblem(await service.get(`/log/tile/2/${tile}`), 422, "invalid-input");
  expectProblem(await service.get("/log/tile/2/0"), 404, "not-found");
});

test("nothing is shown of entries that are not on disk", async () => {
  let release = () => {};
  let gate = Promise.resolve();
  const { log } = await openTestLog({
    signer: { ...testOperator, sign: (messages) => gate.then(() => testOperator.sign(messages)) },
  });
  const events = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ event_type: "test.event", payload: { i } }));
  await log.append(events(200));
  const before = log.tile(2, 0, 0, 200);
  gate = new Promise((resolve) => {
    release = resolve;
  });
  const appended = log.append(events(400));
  // The batch is formed at the end of this turn: the trees in memory have 600 leaves, the log has 200.
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  expect(log.size).toBe(200);
  for (const version of VERSIONS) {
    expect(log.tile(version, 0, 0, 201)).toBeUndefined();
    expect(log.tile(version, 0, 0)).toBeUndefined();
    expect(log.tile(version, 0, 1, 1)).toBeUndefined();
    expect(log.tile(version, 1, 0, 1)).toBeUndefined();
  }
  expect(log.tile(2, 0, 0, 200)).toEqual(before);
  release();
  await appended;
  expect(log.tile(2, 0, 0)?.subarray(0, 200 * 32)).toEqual(before);
  expect(log.tile(2, 1, 0, 2)).toHaveLength(64);
  expect(log.tile(2, 1, 0, 3)).toBeUndefined();
});

test("a tile that was handed out stays as it was while the log grows", async () => {
  const { log } = await openTestLog();
  const events = Array.from({ length: 250 }, (_, i) => ({ event_type: "test.event", payload: { i } }));
  await log.append(events);
  const tile = log.tile(2, 0, 0, 250)!;
  const copy = tile.slice();
  await log.append(events);
  expect(tile).toEqual(copy);
});
