/** Private rows in the journal: every node has them, whenever it comes, and what is deleted or refused leaves nothing. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import { restore } from "#cairnlog/engine/log/history/restore.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { type Cluster, startCluster } from "../../cluster/servers/cluster.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator, testPool } from "../../log/harness.js";
import { runIn } from "../../log/inline.js";
import { Node, newJournal, outcome } from "./node.js";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.remove());

const put = (node: Node, name: string, user: string | undefined) =>
  runIn(node.log, (transaction) => {
    transaction.put("userNames", name, user === undefined ? undefined : { user_id: user });
    transaction.append({ event_type: "note", payload: { of: "somebody" } });
  });
const rowsOf = (node: Node) => node.log.rows("userNames", "", "~").map(({ key, row }) => [key, row.user_id]);
const databaseOf = (url: string) => url.split("/").at(-1)!;

test("a node that comes late, or comes back late, has exactly the rows that there are", async () => {
  const url = await newJournal(cluster);
  const [leader, late] = [await Node.open(url), await Node.open(url)];
  await leader.lead();
  await put(leader, "ada", "1");
  await put(leader, "grace", "2");
  await leader.beat();
  await late.log.follow();
  expect(rowsOf(late)).toEqual([
    ["ada", "1"],
    ["grace", "2"],
  ]);
  await put(leader, "ada", undefined);
  await put(leader, "grace", "3");
  await leader.beat();
  await leader.journal.sweep(0);
  const database = databaseOf(url);
  expect(await cluster.primary.query("SELECT count(*) FROM cairnlog.private_change", database)).toEqual([["0"]]);
  await put(leader, "alan", "4");
  await put(leader, "alan", "5");
  await put(leader, "barbara", "6");
  await leader.beat();
  const empty = await Node.open(url);
  for (const node of [late, empty]) {
    await node.log.follow();
    expect(rowsOf(node)).toEqual([
      ["alan", "5"],
      ["barbara", "6"],
      ["grace", "3"],
    ]);
    expect(node.log.position).toEqual(leader.log.position);
    expect(node.log.size).toBe(leader.log.size);
    expect(await node.log.verify()).toMatchObject({ valid: true });
  }
  const left = await cluster.primary.query("SELECT key FROM cairnlog.private_row ORDER BY key", database);
  expect(left.flat()).toEqual(['"alan"', '"barbara"', '"grace"']);
});

test("a node whose question ended in an error of the server asks again, and has the rows then", async () => {
  const url = await newJournal(cluster);
  const leader = await Node.open(url);
  await leader.lead();
  await put(leader, "ada", "1");
  await leader.beat();
  await leader.journal.sweep(0);
  const database = databaseOf(url);
  const follower = await Node.open(url);
  await cluster.primary.query("ALTER TABLE cairnlog.private_row RENAME TO away", database);
  await expect(follower.log.follow()).rejects.toMatchObject({ code: "storage-failed" });
  await cluster.primary.query("ALTER TABLE cairnlog.away RENAME TO private_row", database);
  await follower.log.follow();
  expect(rowsOf(follower)).toEqual([["ada", "1"]]);
});

test("rows wait until what they were read with is decided", async () => {
  const url = await newJournal(cluster);
  const leader = await Node.open(url);
  await leader.lead();
  await put(leader, "ada", "1");
  await leader.beat();
  await leader.journal.sweep(0);
  // Decided, and not told to be: the next append or beat tells.
  await put(leader, "ada", "2");
  const follower = await Node.open(url);
  const following = follower.log.follow();
  expect(await outcome(following)).toBe("waits");
  await leader.beat();
  await following;
  await follower.log.follow();
  expect(rowsOf(follower)).toEqual([["ada", "2"]]);
});

test("of a record that was refused no byte is in WAL or heap", async () => {
  const url = await newJournal(cluster);
  const [first, second] = [await Node.open(url), await Node.open(url)];
  await first.lead();
  await put(first, "kept", "kept-by-everybody");
  await second.lead();
  await expect(put(first, "refused-name", "refused-by-everybody")).rejects.toMatchObject({ code: "not-leader" });
  await cluster.primary.query("CHECKPOINT");
  const found = (text: string) =>
    cluster.servers.some(({ dataDir }) =>
      ["pg_wal", "base"].some((folder) =>
        filesBelow(join(dataDir, folder)).some((file) => readFileSync(file).includes(text)),
      ),
    );
  // What is kept is found, so the search can find it.
  expect(found("kept-by-everybody")).toBe(true);
  expect(found("refused-by-everybody")).toBe(false);
  expect(found("refused-name")).toBe(false);
});

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, path, name }) => join(parentPath ?? path, name));
}

/** The log's own row on disk. */
async function metaAt(path: string): Promise<unknown> {
  const store = openStore({ path, readOnly: true, mapSize: MAP_SIZE });
  const meta = store.get("meta", "log");
  await store.close();
  return meta;
}

/** A log that was restored from a backup of the node's, in a folder of its own. @returns its path */
async function restoredFrom(node: Node): Promise<string> {
  const [to, data] = [temporaryFolder(), temporaryFolder()];
  const path = join(data, "log");
  await backUp({ path: node.path, to, operatorKey: testOperator.public.pem });
  await restore({ from: to, path, projection: noProjection, pool: testPool, published: [], mayFork: false });
  return path;
}

test("a node may begin with a log that was restored from a backup", async () => {
  const url = await newJournal(cluster);
  const leader = await Node.open(url);
  await leader.lead();
  await put(leader, "ada", "1");
  await put(leader, "grace", "2");
  const path = await restoredFrom(leader);
  await expect(openTestLog({ path })).rejects.toMatchObject({ code: "precondition-failed" });
  await put(leader, "grace", undefined);
  await put(leader, "alan", "3");
  await leader.beat();
  const restored = await Node.open(url, path);
  expect(restored.log.size).toBe(2);
  await restored.log.follow();
  expect(rowsOf(restored)).toEqual([
    ["ada", "1"],
    ["alan", "3"],
  ]);
  expect([restored.log.size, restored.log.position]).toEqual([4, leader.log.position]);
  expect(await restored.log.verify()).toMatchObject({ valid: true });
  await restored.lead();
  await put(restored, "barbara", "4");
  expect(await metaAt(path)).toEqual(await metaAt(leader.path));
  // A log of others has no place here.
  const other = await openTestLog();
  await other.log.append({ event_type: "note", payload: { of: "somebody else" } });
  await other.log.close();
  const stranger = await Node.open(url, other.path);
  await expect(stranger.log.follow()).rejects.toMatchObject({ code: "corrupt-log" });
});

test("a restored log has its place when its newest entry is known to be decided, and not before", async () => {
  const url = await newJournal(cluster);
  const leader = await Node.open(url);
  await leader.lead();
  await put(leader, "ada", "1");
  await put(leader, "grace", "2");
  const restored = await Node.open(url, await restoredFrom(leader));
  await expect(restored.log.follow()).rejects.toMatchObject({ code: "corrupt-log" });
  await leader.beat();
  await restored.log.follow();
  expect(restored.log.position).toEqual(leader.log.position);
});

test("roles: a public follower may read records, and no private row", async () => {
  for (const role of ["leader", "candidate", "public"])
    await cluster.primary.query(
      `CREATE ROLE cairnlog_${role} NOLOGIN; CREATE ROLE login_${role} LOGIN IN ROLE cairnlog_${role}`,
    );
  const url = await newJournal(cluster);
  const as = (role: string) => url.replace("postgres@", `login_${role}@`);
  const leader = await Node.open(as("leader"));
  await leader.lead();
  await put(leader, "ada", "1");
  await leader.beat();
  const candidate = await Node.open(as("candidate"));
  await candidate.lead();
  expect(rowsOf(candidate)).toEqual([["ada", "1"]]);
  await candidate.beat();
  const reader = await Node.open(as("public"), undefined, { isPublic: true });
  await reader.log.follow();
  expect([reader.log.size, rowsOf(reader)]).toEqual([1, []]);
  expect(await reader.log.verify()).toMatchObject({ valid: true });
  const database = databaseOf(url);
  const psql = (sql: string) =>
    execFileSync(
      "psql",
      ["-h", "127.0.0.1", "-p", `${cluster.primary.port}`, "-U", "login_public", "-d", database, "-c", sql],
      {
        stdio: "pipe",
      },
    );
  for (const table of ["private_row", "private_change"])
    expect(() => psql(`SELECT * FROM cairnlog.${table}`)).toThrow(/permission denied/);
  expect(() => psql("UPDATE cairnlog.lead SET epoch = 9")).toThrow(/permission denied/);
});
