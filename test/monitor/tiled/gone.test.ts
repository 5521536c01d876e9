/** What a log of tiles does not serve, or not any more; and the largest bundle that there can be. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parsePolicy } from "#cairnlog/engine/verify/index.js";
import { tiledFollower } from "#cairnlog/server/cli/log/follower.js";
import { Http } from "#cairnlog/server/client/base/http.js";
import { ServedTiles } from "#cairnlog/server/client/log/served.js";
import { Misbehaviour, mayPass } from "#cairnlog/server/monitor/alarm.js";
import { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { persistentFetch } from "#cairnlog/server/outgoing/traced.js";
import { temporaryFolder } from "../../server/harness.js";
import { failureOf } from "../../thrown.js";
import { StaticLog, serving, URL_OF_LOG } from "./staticlog.js";

const tilesOf = (fetcher: typeof fetch) => new ServedTiles(new Http(URL_OF_LOG, fetcher));

/** A `fetch` that answers paths that are not there with this status. */
function store(files: ReadonlyMap<string, Buffer>, status: number, asked: string[] = []): typeof fetch {
  const served = serving(files, asked);
  return async (...request) => {
    const answer = await served(...request);
    return answer.ok ? answer : new Response("<Error/>", { status });
  };
}

test("the largest bundle that there can be is read, by a patient monitor too, and not a byte more", async () => {
  const one = Buffer.alloc(2 + 65_535, "e");
  one.writeUInt16BE(65_535);
  const largest = Buffer.concat(Array.from({ length: 256 }, () => one));
  const patient = persistentFetch({ signal: new AbortController().signal, say: () => {} });
  for (const waits of [false, true]) {
    let content = largest;
    const plain: typeof fetch = async () => new Response(content as BodyInit);
    const tiles = tilesOf(waits ? (...request) => withFetch(plain, () => patient(...request)) : plain);
    const { entries } = await tiles.bundle(0, 256);
    expect([entries.length, entries.at(-1)?.length]).toEqual([256, 65_535]);
    content = Buffer.concat([largest, Buffer.of(0)]);
    await expect(tiles.bundle(0, 256)).rejects.toMatchObject({ code: "malformed-answer" });
  }
});

/** `work`, while this is the global `fetch`, which is what patience wraps. */
async function withFetch<T>(fetcher: typeof fetch, work: () => Promise<T>): Promise<T> {
  const before = globalThis.fetch;
  globalThis.fetch = fetcher;
  try {
    return await work();
  } finally {
    globalThis.fetch = before;
  }
}

describe("a partial tile that is not there", () => {
  const log = new StaticLog(600);
  const files = log.files();

  test.each([400, 401, 403, 404, 410, 451])("%i: the full one is taken in its place", async (status) => {
    const asked: string[] = [];
    const tiles = tilesOf(store(files, status, asked));
    const full = files.get("tile/0/001")!;
    expect(Buffer.from(await tiles.tile(0, 1, 9))).toEqual(full.subarray(0, 9 * 32));
    expect((await tiles.bundle(1, 9)).entries).toHaveLength(9);
    expect(asked).toEqual(["tile/0/001.p/9", "tile/0/001", "tile/entries/001.p/9", "tile/entries/001"]);
  });

  test.each([403, 404])("%i, nor the full one: the error names what was asked for", async (status) => {
    const tiles = tilesOf(store(files, status));
    await expect(tiles.bundle(7, 9)).rejects.toMatchObject({
      status,
      message: `${URL_OF_LOG} has neither /tile/entries/007.p/9 nor /tile/entries/007 (${status}).`,
    });
    await expect(tiles.tile(0, 7, 256)).rejects.toMatchObject({
      status,
      message: `${URL_OF_LOG} does not have /tile/0/007 (${status}).`,
    });
    await expect(tiles.checkpoint()).resolves.toContain("\n600\n");
    await expect(tilesOf(store(new Map(), status)).checkpoint()).rejects.toMatchObject({
      status,
      message: `${URL_OF_LOG} does not have /checkpoint (${status}).`,
    });
  });

  test.each([429, 500, 503])("%i is no denial: nothing else is asked for", async (status) => {
    const asked: string[] = [];
    const tiles = tilesOf(store(files, status, asked));
    await expect(tiles.tile(0, 1, 9)).rejects.toMatchObject({ status });
    expect(asked).toEqual(["tile/0/001.p/9"]);
  });
});

describe("an old bundle that is gone", () => {
  const log = new StaticLog(1030);
  /** A log that was followed up to 600 entries, and has 1030 and not the first two bundles any more. */
  async function followed(isUnpruned: boolean) {
    const folder = new MonitorFolder(temporaryFolder());
    let files = log.files(600);
    const follower = tiledFollower({
      server: URL_OF_LOG,
      folder,
      fetch: (...request) => store(files, 403)(...request),
      policy: parsePolicy(`log ${log.signer.vkey}\nquorum none\n`),
      isUnpruned,
    });
    await follower.round({ audit: true });
    files = log.files();
    const gone = ["tile/entries/000", "tile/entries/001"];
    for (const path of gone) files.delete(path);
    const kept = () => readFileSync(join(folder.path, "mirror/checkpoint"), "utf8").split("\n")[1];
    return { follower, kept, files, gone, folder };
  }

  test("is named, and the log is followed", async () => {
    const { follower, kept, gone, files } = await followed(false);
    for (let rounds = 0; rounds < 2; rounds++) {
      await follower.round({ audit: true });
      expect(kept()).toBe("1030");
      const { text, json } = await follower.verified();
      expect(json).toMatchObject({ verified: 1030, missing: gone });
      expect(text).toMatch(
        /^verified: 1030 entries.*; not served any more, but mirrored: tile\/entries\/000 and 1 more$/,
      );
    }
    for (const path of gone) files.set(path, log.files().get(path)!);
    await follower.round({ audit: true });
    expect((await follower.verified()).json).not.toHaveProperty("missing");
  });

  test("is an alarm for a log that must serve everything, raised when the checkpoint is kept and the patience has ended", async () => {
    const { follower, kept } = await followed(true);
    const { thrown: error } = await failureOf(follower.round({ audit: true }));
    expect(error).toBeInstanceOf(Misbehaviour);
    const { kind, message, evidence } = error as Misbehaviour;
    expect([kind, message, mayPass(error)]).toEqual([
      "missing-entry",
      `${URL_OF_LOG} does not have /tile/entries/000 (403). Its entries were mirrored.`,
      true,
    ]);
    expect(evidence).toMatchObject({ shown: log.files().get("checkpoint")!.toString() });
    expect(kept()).toBe("1030");
  });

  test("is asked for again by the next rounds, until it is there again", async () => {
    const { follower, files, gone } = await followed(true);
    const [there, missing] = gone as [string, string];
    files.set(there, log.files().get(there)!);
    const isFine = () =>
      follower.round({ audit: false }).then(
        () => true,
        () => false,
      );
    while (await isFine());
    for (let rounds = 0; rounds < 12; rounds++) expect(await isFine()).toBe(false);
    files.set(missing, log.files().get(missing)!);
    for (let rounds = 0; rounds < 12; rounds++) expect(await isFine()).toBe(true);
    // Then the others are drawn again.
    files.delete(there);
    for (let rounds = 0; await isFine(); rounds++) expect(rounds).toBeLessThan(200);
  });

  test("and that the disk has lost, too, is a round that is not finished", async () => {
    const { follower, kept, gone, folder } = await followed(false);
    writeFileSync(join(folder.path, "mirror", gone[1]!), "damaged");
    await expect(follower.round({ audit: true })).rejects.toMatchObject({
      status: 403,
      message: `${URL_OF_LOG} does not have /tile/entries/001 (403).`,
    });
    expect(kept()).toBe("1030");
  });

  test("whatever else an audit ends with, the checkpoint is kept first", async () => {
    const { follower, kept, files, gone } = await followed(false);
    files.set(gone[0]!, Buffer.from("<html>"));
    await expect(follower.round({ audit: true })).rejects.toMatchObject({ code: "malformed-answer" });
    expect(kept()).toBe("1030");
  });
});
