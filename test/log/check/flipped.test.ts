/**
 * One bit of what is on disk is flipped, in everything that is signed or on which something is built that is signed. Then the
 * log is opened, appends, and publishes a checkpoint. What is signed is right, or nothing is signed. The table is that of
 * docs/reliability.md.
 */
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { checkLog } from "#cairnlog/engine/log/check/fsck.js";
import { rebuildLog } from "#cairnlog/engine/log/check/repair.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { CheckpointPublisher } from "#cairnlog/engine/log/tlog/publisher.js";
import { hex } from "#cairnlog/engine/log/tree/tree.js";
import { Batch } from "#cairnlog/engine/store/schema/batch.js";
import { openStore, postingsFolder } from "#cairnlog/engine/store/store.js";
import { kernel } from "#cairnlog/wasm/index.js";
import { hashOf, plainRoot } from "../../verify/tlog/plain-rfc6962.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator, testPool } from "../harness.js";
import { type Bytes, tamper } from "../tamper.js";

const SIZE = 700;
const HASH = 32;
const note = { event_type: "note", payload: {} };
let base = "";
let digests = Buffer.alloc(0);
/** The leaf with which the newest batch begins. */
let newest = 0;

function publisherOf(
  log: Awaited<ReturnType<typeof openTestLog>>["log"],
  folder: string,
  told: (error: CairnlogError | null) => void,
) {
  const file = join(folder, "tlog-checkpoint.txt");
  return new CheckpointPublisher({ log, origin: "log.example/tlog", signer: testOperator, file, intervalMs: 0, told });
}

beforeAll(async () => {
  base = temporaryFolder();
  const { log } = await openTestLog({ path: join(base, "log") });
  const publisher = publisherOf(log, base, () => {});
  await publisher.open();
  await log.append(Array.from({ length: 300 }, () => note));
  publisher.start();
  while (publisher.size !== 300) await new Promise((resolve) => setTimeout(resolve, 2));
  await publisher.stop();
  for (let size = 300; size < SIZE; size += 200) await log.append(Array.from({ length: 200 }, () => note));
  digests = Buffer.from(log.digests(0, SIZE)!);
  await log.close();
  newest = SIZE - 200;
});

type Flip = (path: string) => Promise<void>;
const flipBit = (bytes: Buffer, at: number): Buffer => {
  const flipped = Buffer.from(bytes);
  flipped[at]! ^= 4;
  return flipped;
};
const inTile =
  (key: readonly number[], node: number): Flip =>
  (path) =>
    tamper(path, "tiles", async (db: Bytes) => {
      await db.put(key as number[], flipBit(db.get(key as number[])!, node * HASH + 5));
    });
const inBatch =
  (where: (row: Buffer, batch: Batch) => number): Flip =>
  (path) =>
    tamper(path, "batches", async (db: Bytes) => {
      const row = Buffer.from(db.get(newest)!);
      await db.put(newest, flipBit(row, where(row, new Batch(newest, row))));
    });
const at = (row: Buffer, part: Uint8Array): number => row.indexOf(part);

/** What is flipped, as docs/reliability.md names it → how, and where it is noticed before anything is signed. */
const FLIPS: Readonly<Record<string, readonly [Flip, "start" | "checkpoint"]>> = {
  "a leaf in a full tile": [inTile([2, 0, 1], 77), "checkpoint"],
  "the stored node over a full tile": [inTile([2, 1, 0], 1), "start"],
  "the text of the newest entry": [
    inBatch((row, batch) => at(row, batch.entry(batch.count - 1)) + batch.entry(batch.count - 1).indexOf(':"20') + 15),
    "start",
  ],
  "the hash of the newest entry": [inBatch((row, batch) => at(row, batch.digests) + batch.digests.length - 3), "start"],
  "the hash of an entry behind the last full tile": [
    inBatch((row, batch) => at(row, batch.digests) + batch.digests.length - 3 - 20 * HASH),
    "start",
  ],
  "the root of the newest head": [inBatch((row, batch) => at(row, batch.head(batch.count - 1)!.root) + 7), "start"],
  "the time of the newest head": [
    inBatch((row, batch) => at(row, batch.head(batch.count - 1)!.root) + HASH + 4),
    "start",
  ],
  "the signature of the newest head": [
    inBatch((row, batch) => at(row, batch.head(batch.count - 1)!.signature) + 9),
    "start",
  ],
};

/** Opens the log, appends and publishes. Returns where damage was noticed; whatever was signed meanwhile was right. */
async function attempt(folder: string): Promise<"start" | "checkpoint" | null> {
  const isDamage = (error: unknown) => error instanceof CairnlogError && error.code === "corrupt-log";
  const path = join(folder, "log");
  let log: Awaited<ReturnType<typeof openTestLog>>["log"];
  try {
    ({ log } = await openTestLog({ path }));
  } catch (error) {
    expect(error).toSatisfy(isDamage);
    expect((error as Error).message).toMatch(/cairnlog (fsck --rebuild|restore)/);
    return "start";
  }
  const { entry_hash, sth, json } = await log.append(note);
  const all = Buffer.concat([digests, Buffer.from(entry_hash, "hex")]);
  expect(JSON.parse(json.toString()).previous_hash).toBe(hex(digests.subarray(-HASH)));
  expect(sth.root_hash).toBe(hex(kernel.extend(0, new Uint8Array(0), all, 2, true).roots.subarray(-HASH)));
  expect((await log.signHead()).root_hash).toBe(sth.root_hash);
  let trouble: CairnlogError | null = null;
  const publisher = publisherOf(log, folder, (told) => {
    trouble = told;
  });
  try {
    await publisher.open();
    publisher.start();
    await expect.poll(() => trouble !== null || publisher.size === SIZE + 1).toBe(true);
  } catch (error) {
    trouble = error as CairnlogError;
  }
  await publisher.stop();
  await log.close();
  const shown = readFileSync(join(folder, "tlog-checkpoint.txt"), "utf8").split("\n");
  if (trouble) {
    expect(trouble).toSatisfy(isDamage);
    expect(shown[1]).toBe("300");
    return "checkpoint";
  }
  const leaves = Array.from({ length: SIZE + 1 }, (_, i) =>
    hashOf(0, Buffer.from(hex(all.subarray(i * HASH, (i + 1) * HASH)))),
  );
  expect(shown.slice(1, 3)).toEqual([`${SIZE + 1}`, Buffer.from(plainRoot(leaves)).toString("base64")]);
  return null;
}

function copy(): string {
  const folder = temporaryFolder();
  cpSync(base, folder, { recursive: true });
  return folder;
}

test("without a flipped bit, all is signed", async () => {
  expect(await attempt(copy())).toBeNull();
});

describe("nothing is signed over", () => {
  test.each(Object.entries(FLIPS))("%s", async (_, [flip, noticed]) => {
    const folder = copy();
    await flip(join(folder, "log"));
    expect(await attempt(folder)).toBe(noticed);
  });

  test("any node of any stored tile of the signed tree", async () => {
    // 700 entries: two full tiles of leaves, and the tile above them. Of the first tile, the nodes were published before.
    for (const [key, node, noticed] of [
      [[2, 0, 0], 0, null],
      // It tells whether the stored nodes are of this log.
      [[2, 0, 0], 255, "checkpoint"],
      [[2, 0, 1], 0, "checkpoint"],
      [[2, 0, 1], 255, "checkpoint"],
      [[2, 1, 0], 0, "start"],
      [[2, 1, 0], 1, "start"],
    ] as const) {
      const folder = copy();
      await inTile(key, node)(join(folder, "log"));
      expect(await attempt(folder), `${key} ${node}`).toBe(noticed);
    }
  });

  test("nodes of the RFC 6962 tree that no checkpoint covers: they are made again", async () => {
    const folder = copy();
    const { log } = await openTestLog({ path: join(folder, "log") });
    const publisher = publisherOf(log, temporaryFolder(), () => {});
    await publisher.open();
    publisher.start();
    await expect.poll(() => publisher.size).toBe(SIZE);
    await publisher.stop();
    await log.close();
    // The node over leaves 256 to 511; the checkpoint beside the log has 300.
    await tamper(postingsFolder(join(folder, "log")), "lens", async (db) => {
      await db.put([1, 0], flipBit(db.get([1, 0])!, HASH + 3));
    });
    expect(await attempt(folder)).toBeNull();
  });
});

test.each(["a leaf in a full tile", "the stored node over a full tile"])("fsck --rebuild mends %s", async (name) => {
  const folder = copy();
  const path = join(folder, "log");
  await FLIPS[name]![0](path);
  const store = openStore({ path, mapSize: MAP_SIZE });
  const options = { path, operatorKey: testOperator.public.pem, projection: noProjection, pool: testPool };
  const report = await checkLog(store, options);
  expect(report).toMatchObject({ ok: false, counts: { entries: 0, derived: 1 } });
  expect(await rebuildLog(store, report, options)).toMatchObject({ ok: true });
  await store.close();
  expect(await attempt(folder)).toBeNull();
});

test("docs/reliability.md names each", () => {
  const text = readFileSync(new URL("../../../docs/reliability.md", import.meta.url), "utf8");
  for (const name of Object.keys(FLIPS)) expect(text).toContain(`- ${name}: `);
});
