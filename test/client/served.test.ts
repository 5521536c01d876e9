/** Tiles and checkpoints behind a store that says of what it does not have, or not any more, something else than 404. */
import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { rfc6962 } from "#cairnlog/engine/verify/index.js";
import { createClient } from "#cairnlog/server/client/index.js";
import { AuthenticTiles, WrongTile } from "#cairnlog/server/client/log/authentic.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService } from "../server/harness.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  await service.server.registry.log.append(Array.from({ length: 300 }, (_, i) => anyEvent({ i })));
  await service.checkpointed(300);
});

/** A client to which a store answers `status` for paths that match. */
function clientOf(status: number, absent: RegExp) {
  const asked: string[] = [];
  const fetcher: typeof fetch = async (input, init) => {
    const path = String(input).replace(service.url, "");
    if (!path.startsWith("/tlog/")) return fetch(input, init);
    asked.push(path);
    return absent.test(path) ? new Response("<Error/>", { status }) : fetch(input, init);
  };
  return { client: createClient({ server: service.url, fetch: fetcher }), asked };
}

describe.each([400, 401, 403, 404, 410])("%i", (status) => {
  test("for a partial tile: the full one is taken in its place", async () => {
    const { client, asked } = clientOf(status, /\.p\//);
    const full = await client.tlog.tile(0, 0);
    expect(await client.tlog.tile(0, 0, 9)).toEqual(full.subarray(0, 9 * 32));
    expect(await client.tlog.bundle(0, 2)).toEqual((await client.tlog.bundle(0)).slice(0, 2));
    expect(asked.filter((path) => path.includes(".p/"))).toEqual([
      "/tlog/tile/0/000.p/9",
      "/tlog/tile/entries/000.p/2",
    ]);
  });

  test("for the full one, too, or the checkpoint: the error names every path", async () => {
    const { client } = clientOf(status, /tile|checkpoint/);
    await expect(client.tlog.tile(0, 7, 9)).rejects.toMatchObject({
      status,
      message: `${service.url} has neither /tlog/tile/0/007.p/9 nor /tlog/tile/0/007 (${status}).`,
    });
    await expect(client.tlog.checkpoint()).rejects.toMatchObject({
      status,
      message: `${service.url} does not have /tlog/checkpoint (${status}).`,
    });
  });
});

test("what the service says of it is in the error", async () => {
  const { client } = clientOf(500, /nothing/);
  await expect(client.tlog.tile(0, 7)).rejects.toMatchObject({
    code: "not-found",
    message: expect.stringMatching(/ does not have \/tlog\/tile\/0\/007 \(404\)\. [A-Z].+\.$/),
  });
});

test("429 and 500 are no such answer: nothing else is asked for", async () => {
  for (const status of [429, 500]) {
    const { client, asked } = clientOf(status, /tile/);
    await expect(client.tlog.tile(0, 0, 9)).rejects.toMatchObject({ status });
    expect(asked).toEqual(["/tlog/tile/0/000.p/9"]);
  }
});

test("a tile that is not that of the tree is refused each time, and the right one is taken when it comes", async () => {
  const { tlog } = createClient({ server: service.url });
  const { treeSize, rootHash } = (await tlog.checkpoint()).checkpoint;
  let isWrong = false;
  const tiles = await AuthenticTiles.open(treeSize, rootHash, {
    async served(level, index, width) {
      const right = await tlog.tile(level, index, width);
      return isWrong ? right.map((byte) => byte ^ 1) : right;
    },
    kept: () => undefined,
  });
  isWrong = true;
  for (let n = 0; n < 2; n++) await expect(tiles.tile(0, 0)).rejects.toThrow(WrongTile);
  isWrong = false;
  expect(await tiles.tile(0, 0)).toEqual(await tlog.tile(0, 0));
});

test("tiles of an earlier round are compared as all others, and each is known by its level, too", async () => {
  // More than a full tile of the second level.
  const size = 256 ** 2 + 300;
  const levels: Uint8Array[][] = [Array.from({ length: size }, (_, i) => createHash("sha256").update(`${i}`).digest())];
  for (let below = levels[0]!; below.length >= 256; below = levels.at(-1)!)
    levels.push(
      Array.from({ length: Math.floor(below.length / 256) }, (_, i) =>
        rfc6962.rootOf(below.slice(256 * i, 256 * (i + 1))),
      ),
    );
  const tileOf = (level: number, index: number, width = 256) =>
    new Uint8Array(Buffer.concat(levels[level]!.slice(256 * index, 256 * index + width)));
  const root = Buffer.from(rfc6962.rootOf(levels[0]!)).toString("hex");
  const tiles = await AuthenticTiles.open(size, root, {
    served: async (...of) => tileOf(...of),
    kept: (level, index) => (index ? tileOf(level, index) : tileOf(level, index).map((byte) => byte ^ 1)),
  });
  for (const [level, index] of [
    [0, 0],
    [1, 0],
    [0, 1],
    [0, 0],
    [1, 0],
  ] as const)
    expect(Buffer.compare(await tiles.tile(level, index), tileOf(level, index)), `${level}/${index}`).toBe(0);
});
