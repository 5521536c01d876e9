/** What makes the files of a log anew keeps what follows from no entry: what the log knows of itself, and its private rows. */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { RecordedChange } from "#cairnlog/engine/journal/rows.js";
import { checkLog } from "#cairnlog/engine/log/check/fsck.js";
import { rebuildLog } from "#cairnlog/engine/log/check/repair.js";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import { eraseWithheld } from "#cairnlog/engine/log/history/erase.js";
import { beginRecords } from "#cairnlog/engine/log/history/first-records.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { restore } from "#cairnlog/engine/log/history/restore.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { payloadHash } from "#cairnlog/engine/verify/events/withheld.js";
import type { JsonObject } from "#cairnlog/engine/verify/json/shape.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator, testPool } from "../harness.js";
import { chain } from "./entries.js";

const PAYLOADS = [{ text: "to be withheld" }, { text: "to be shown" }];
const operator = testOperator.public.pem;
/** Of imported entries. A history that is older than the log would be its beginning. */
const LATER = "2250-01-01T00:00:00.000000Z";
const common = { projection: noProjection, pool: testPool, operatorKey: operator };

/** A log with a name. It has an entry for each of these payloads, and withholds the first one. */
async function namedLog(payloads: readonly JsonObject[]): Promise<string> {
  const path = join(temporaryFolder(), "log");
  const { log } = await openTestLog({ path, name: "log.example" });
  const [first] = await log.append(payloads.map((payload) => ({ event_type: "https://example.org/note", payload })));
  if (first) {
    const { log_entry_id: entry_id, entry_hash } = first;
    const about = { entry_id, entry_hash, payload_hash: payloadHash(payloads[0]!), reason: "an order", basis: null };
    await log.append(eventOf("payload_withheld", about));
  }
  await log.close();
  await inStore(path, async (store) => {
    const position = { ...store.position(), sequence: store.position().sequence + 1 };
    const rows = [{ table: "userNames" as const, key: "ada", row: { user_id: "x" } }];
    await store.commit({ after: store.position().sequence, position, batches: [], tiles: [], rows });
  });
  return path;
}

async function inStore<T>(path: string, ask: (store: ReturnType<typeof openStore>) => T | Promise<T>): Promise<T> {
  const store = openStore({ path, mapSize: MAP_SIZE });
  try {
    return await ask(store);
  } finally {
    await store.close();
  }
}

const WAYS: Record<string, { payloads?: JsonObject[]; isNew?: true; remake: (path: string) => Promise<unknown> }> = {
  "an import": {
    payloads: [],
    isNew: true,
    remake: (path) =>
      importEntries(
        { path, signer: testOperator, mapSize: MAP_SIZE },
        chain([{ timestamp: LATER }, { timestamp: LATER }]),
      ),
  },
  "a backup, which is restored": {
    isNew: true,
    async remake(path) {
      const to = join(temporaryFolder(), "backup");
      await backUp({ path, to, operatorKey: operator });
      rmSync(path, { recursive: true });
      await restore({ ...common, from: to, path, published: [], mayFork: true });
    },
  },
  "a rotation of its operator key": {
    async remake(path) {
      const to = operatorKey(generatePrivateKey("ed25519"));
      await rotateOperatorKey({ path, from: testOperator, to, projection: noProjection });
    },
  },
  "a rebuild": {
    remake: (path) =>
      inStore(path, async (store) => {
        const options = { ...common, path, mapSize: MAP_SIZE };
        await rebuildLog(store, await checkLog(store, options), options);
      }),
  },
  "an erasure": { remake: (path) => eraseWithheld({ path, projection: noProjection, mapSize: MAP_SIZE }) },
};

for (const [way, { payloads = PAYLOADS, isNew = false, remake }] of Object.entries(WAYS))
  test(`${way} keeps name and beginning of the log, private rows, and its place in the journal`, async () => {
    const path = await namedLog(payloads);
    const kept = () =>
      inStore(path, (store) => {
        const { key_id: _, first_key_id: __, ...meta } = store.get("meta", "log")!;
        return { meta, names: [...store.range("userNames")], sequence: store.position().sequence };
      });
    const before = await kept();
    expect(before).toMatchObject({ meta: { name: "log.example" }, names: [{ key: "ada" }] });
    await remake(path);
    const after = await kept();
    expect(after).toEqual({ ...before, sequence: after.sequence });
    if (!isNew) expect(after.sequence).toBeGreaterThanOrEqual(before.sequence);
  });

test("a complete copy of an earlier state, over which a later one was copied, does not take the place of the log", async () => {
  const path = await namedLog(PAYLOADS);
  const earlier = join(temporaryFolder(), "log");
  cpSync(path, earlier, { recursive: true });
  const { log } = await openTestLog({ path });
  await log.append({ event_type: "https://example.org/note", payload: { text: "acknowledged since" } });
  const [head, { size }] = [log.treeHead(), log];
  await log.close();
  cpSync(earlier, join(path, "erased"), { recursive: true });

  const { log: again } = await openTestLog({ path });
  expect([again.size, again.treeHead()]).toEqual([size, head]);
  expect(again.stateDifferences()).toEqual([]);
  expect(readdirSync(path)).not.toContain("erased");
});

test("the first record of a log that several nodes keep from now on has its name, its beginning and its private rows", async () => {
  const path = await namedLog(PAYLOADS);
  const meta = await inStore(path, (store) => store.get("meta", "log"));
  const settings = { SERVICE_NAME: "log.example" };
  const position = { sequence: 9, epoch: 1, hash: Buffer.alloc(32) };
  let given: readonly RecordedChange[] = [];
  await beginRecords({ path, operatorKey: operator, settings }, async ({ rows }) => {
    given = rows;
    return position;
  });
  expect(given).toEqual([
    { table: "meta", key: "log", row: { ...meta, settings } },
    { table: "userNames", key: "ada", row: { user_id: "x" } },
  ]);
  expect(await inStore(path, (store) => store.position())).toMatchObject({ sequence: position.sequence });
});

/** Erases in a process whose files may have so many KiB, and says what it was told. */
function erase(path: string, kibibytes: string) {
  const code = `
import { eraseWithheld } from "#cairnlog/engine/log/history/erase.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
const told = [];
const onErasing = (payloads, refusal) => told.push([payloads, refusal?.code ?? null]);
await eraseWithheld({ path: process.argv[1], projection: noProjection, mapSize: ${MAP_SIZE}, onErasing });
console.log(JSON.stringify(told));
`;
  const child = [process.execPath, "--input-type=module", "--eval", code, path];
  const run = spawnSync("bash", ["-c", `ulimit -f ${kibibytes}; exec "$@"`, "bash", ...child], { encoding: "utf8" });
  expect(run.stderr).toBe("");
  return JSON.parse(run.stdout);
}

test("an erasure without room for its copy says so, leaves nothing of it, and is made up for later", async () => {
  const path = await namedLog(Array.from({ length: 40 }, () => ({ text: randomBytes(45_000).toString("base64") })));
  const files = readdirSync(path).sort();
  expect(erase(path, "1500")).toEqual([
    [1, null],
    [1, "storage-full"],
  ]);
  // Not even for an empty environment.
  expect(erase(path, "200")).toEqual([
    [1, null],
    [1, "storage-failed"],
  ]);
  expect(readdirSync(path).sort()).toEqual(files);
  expect(erase(path, "unlimited")).toEqual([[1, null]]);
  expect(erase(path, "unlimited")).toEqual([]);
});

test.each([
  ["a log whose rows are being rebuilt", { rebuilding: true }],
  ["a log of an older format", { format: FORMAT - 1 }],
])("nothing is taken from %s: what its rows say may not be so", async (_, marked) => {
  const path = await namedLog(PAYLOADS);
  const isThere = () => inStore(path, (store) => store.batchAt(0)!.text(0).includes("to be withheld"));
  const meta = await inStore(path, (store) => store.get("meta", "log")!);
  const putMeta = (row: object) =>
    inStore(path, (store) => {
      const rows = [{ table: "meta" as const, key: "log", row }];
      return store.commit({ after: store.position().sequence, position: null, batches: [], tiles: [], rows });
    });
  await putMeta({ ...meta, ...marked });
  await eraseWithheld({ path, projection: noProjection, mapSize: MAP_SIZE });
  expect(await isThere()).toBe(true);
  await putMeta(meta);
  await eraseWithheld({ path, projection: noProjection, mapSize: MAP_SIZE });
  expect(await isThere()).toBe(false);
});
