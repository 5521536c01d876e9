/** Which server counts as the primary, and whose word counts for a record, over real servers of which two are primaries. */
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseConnectionString } from "#cairnlog/engine/journal/postgres/connection-string.js";
import { SCHEMA_SQL } from "#cairnlog/engine/journal/postgres/operate/schema.js";
import { Servers } from "#cairnlog/engine/journal/postgres/servers.js";
import { type Cluster, startCluster } from "../../cluster/servers/cluster.js";
import type { PostgresServer } from "../../cluster/servers/server.js";

const SHORT_MS = 300;
const LONG_MS = 20_000;
const hash = (branch: string): Buffer => Buffer.alloc(32, branch);

let cluster: Cluster;
/** A primary that was replaced, and does not know it. */
let old: PostgresServer;
let primary: PostgresServer;
let standby: PostgresServer;

const insert = (server: PostgresServer, sequence: number, branch: string) =>
  server.query(`SET synchronous_commit TO local; INSERT INTO cairnlog.record (sequence, hash, epoch, first_index, bytes, body)
    VALUES (${sequence}, '\\x${hash(branch).toString("hex")}', 1, 0, 1, 'b')`);
const mark = (server: PostgresServer, text: string) =>
  server.query(`SET synchronous_commit TO local; UPDATE cairnlog.lead SET mark = '${text}'`);

beforeAll(async () => {
  cluster = await startCluster();
  old = cluster.primary;
  await old.query(
    `${SCHEMA_SQL} INSERT INTO cairnlog.lead (epoch, sequence, hash, size, acked) VALUES (1, 0, '', 0, 0)`,
  );
  await cluster.promote(await cluster.newest());
  primary = cluster.primary;
  standby = cluster.servers.find((server) => server !== old && server !== primary)!;
  await cluster.settled(1);
});
afterAll(() => cluster.remove());

/** The servers of the cluster as a node sees them, in this order, when it has found the primary. */
async function found(order: readonly PostgresServer[]): Promise<{ readonly servers: Servers; readonly port: number }> {
  const servers = new Servers(
    parseConnectionString(cluster.url({ database: "postgres", ports: order.map(({ port }) => port) })),
  );
  const port = await servers.askPrimary(async ({ place }) => place.port);
  return { servers, port };
}

/** Asks with each order of the servers. */
async function inEveryOrder(ask: (servers: Servers) => Promise<unknown>): Promise<unknown[]> {
  const orders = [
    [old, primary, standby],
    [standby, primary, old],
    [primary, old, standby],
  ];
  const answers: unknown[] = [];
  for (const order of orders) {
    const { servers } = await found(order);
    answers.push(await ask(servers));
    servers.close();
  }
  return answers;
}

test("closed while connections to them are being opened, they keep none", async () => {
  const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
  // Between two rounds of the event loop: a connection takes several.
  const beyond = async (count: number) => {
    while (sockets() <= count) await setImmediate();
  };
  const before = sockets();
  const ports = [old, primary, standby].map(({ port }) => port);
  const servers = new Servers(parseConnectionString(cluster.url({ database: "postgres", ports })));
  const asked = servers.identify();
  await beyond(before);
  servers.close();
  await asked;
  expect(servers.statuses.map(({ role }) => role)).toEqual(["unreachable", "unreachable", "unreachable"]);
  await expect.poll(sockets).toBe(before);
  const { servers: leading } = await found([primary, standby, old]);
  const idle = sockets();
  const opened = expect(leading.openPrimary()).rejects.toThrow("the journal is closed");
  await beyond(idle);
  leading.close();
  await opened;
  await expect.poll(sockets).toBe(before);
});

test("of two that say they are primary, the one of the newest timeline is asked", async () => {
  expect([await old.isStandby(), await primary.isStandby(), await standby.isStandby()]).toEqual([false, false, true]);
  for (const order of [
    [old, primary, standby],
    [primary, old, standby],
  ]) {
    const { servers, port } = await found(order);
    expect(port).toBe(primary.port);
    const [connection, statuses] = [await servers.openPrimary(), servers.statuses];
    expect(connection.place.port).toBe(primary.port);
    expect(statuses.map(({ role, timeline }) => [role, timeline]).sort()).toEqual([
      ["primary", 1],
      ["primary", 2],
      ["standby", null],
    ]);
    connection.close();
    servers.close();
  }
});

test("a record that only the replaced primary has is not shown, nor is its mark", async () => {
  await insert(old, 1, "o");
  await mark(old, "of the old one");
  expect(await inEveryOrder((servers) => servers.areShown(1, hash("o"), SHORT_MS))).toEqual([false, false, false]);
  expect(await inEveryOrder((servers) => servers.areMarked("of the old one", SHORT_MS))).toEqual([false, false, false]);
});

test("another record of the same sequence is not the record, and another mark not the mark", async () => {
  await insert(primary, 1, "p");
  await mark(primary, "of the new one");
  expect(await inEveryOrder((servers) => servers.areShown(1, hash("p"), LONG_MS))).toEqual([true, true, true]);
  expect(await inEveryOrder((servers) => servers.areMarked("of the new one", LONG_MS))).toEqual([true, true, true]);
  expect(await inEveryOrder((servers) => servers.areShown(1, hash("o"), SHORT_MS))).toEqual([false, false, false]);
  expect(await inEveryOrder((servers) => servers.areMarked("of the old one", SHORT_MS))).toEqual([false, false, false]);
});

test("what only the primary has is not shown until its standby has it, too", async () => {
  await standby.query("SELECT pg_wal_replay_pause()");
  await insert(primary, 2, "p");
  await mark(primary, "next");
  expect(await inEveryOrder((servers) => servers.areShown(2, hash("p"), SHORT_MS))).toEqual([false, false, false]);
  expect(await inEveryOrder((servers) => servers.areMarked("next", SHORT_MS))).toEqual([false, false, false]);
  const { servers } = await found([old, primary, standby]);
  const [shown, marked] = [servers.areShown(2, hash("p"), LONG_MS), servers.areMarked("next", LONG_MS)];
  await standby.query("SELECT pg_wal_replay_resume()");
  expect([await shown, await marked]).toEqual([true, true]);
  servers.close();
});
