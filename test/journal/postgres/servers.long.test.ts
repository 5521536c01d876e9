/**
 * Which server counts as the primary, whose word counts for a record, and what a check of all of them finds: over real servers
 * of which two are primaries.
 */
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseConnectionString } from "#cairnlog/engine/journal/postgres/connection-string.js";
import { checkJournal } from "#cairnlog/engine/journal/postgres/operate/check.js";
import { SCHEMA_SQL } from "#cairnlog/engine/journal/postgres/operate/schema.js";
import { Servers } from "#cairnlog/engine/journal/postgres/servers.js";
import { type Columns, columnsOf } from "#cairnlog/engine/journal/postgres/statements.js";
import { NO_HASH } from "#cairnlog/engine/store/changeset.js";
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

describe("a check of all servers", () => {
  const HEX = (bytes: Uint8Array) => `'\\x${Buffer.from(bytes).toString("hex")}'`;
  /** Records that follow one another; those from the third on are of a branch. */
  const recordsOf = (branch: string, count = 3): Columns[] => {
    const records: Columns[] = [];
    for (let sequence = 1; sequence <= count; sequence++) {
      const previous = records.at(-1)?.hash ?? NO_HASH;
      const row = { table: "meta", key: `${sequence}`, row: { name: sequence < 3 ? "" : branch } } as never;
      records.push(columnsOf({ sequence, epoch: 1, firstIndex: 0, previous, batch: null, rows: [row] }, 0));
    }
    return records;
  };
  const rowOf = ({ sequence, hash, body, publicRows }: Columns) =>
    `(${sequence}, ${HEX(hash)}, 1, 0, 1, ${HEX(body)}, '${publicRows}')`;
  /** Gives a primary, and its standbys with it, these records, and then changes them. */
  const fill = (server: PostgresServer, records: readonly Columns[], change = "") =>
    server.query(`SET synchronous_commit TO local; DROP SCHEMA cairnlog CASCADE; ${SCHEMA_SQL}
      INSERT INTO cairnlog.lead (epoch, sequence, hash, size, acked) VALUES (1, ${records.length}, ${HEX(records.at(-1)!.hash)}, 0, 3);
      INSERT INTO cairnlog.record VALUES ${records.map(rowOf).join(", ")}; ${change}`);
  const addressOf = ({ port }: PostgresServer) => `127.0.0.1:${port}`;
  /** The report on servers, when the standby has what its primary has. */
  const checked = async (servers: readonly PostgresServer[], position = null as Parameters<typeof checkJournal>[1]) => {
    const newest = (server: PostgresServer) => server.query("SELECT pg_current_wal_lsn()").then(([row]) => row![0]);
    const lsn = await newest(primary);
    await expect.poll(() => standby.query(`SELECT pg_last_wal_replay_lsn() >= '${lsn}'`)).toEqual([["t"]]);
    return checkJournal(cluster.url({ database: "postgres", ports: servers.map(({ port }) => port) }), position);
  };
  const [ours, theirs] = [recordsOf("ours"), recordsOf("theirs")];

  test("finds nothing where all have the same, and where the log of a node stands in it", async () => {
    await fill(primary, ours);
    await fill(old, ours);
    const report = await checked([standby, old, primary]);
    expect(report.faults).toEqual([]);
    expect(report.servers.map(({ records }) => records)).toEqual([3, 3, 3]);
    const at = (sequence: number, hash: Uint8Array) => checked([primary], { sequence, epoch: 1, hash });
    expect((await at(2, ours[1]!.hash)).faults).toEqual([]);
    expect((await at(3, theirs[2]!.hash)).faults).toEqual([expect.stringMatching(/^Record 3 .* is not that/)]);
    expect((await at(4, ours[2]!.hash)).faults).toEqual([expect.stringMatching(/is ahead: it has record 4/)]);
    expect((await at(3, NO_HASH)).faults).toEqual([expect.stringMatching(/was written without the journal/)]);
  });

  test("finds the first record that the primary has otherwise, or not at all, and names the server that has it", async () => {
    await fill(primary, ours);
    const fault = (sequence: number, what: string) => `${addressOf(old)}: record ${sequence} ${what}.`;
    const at = { sequence: 3, epoch: 1, hash: ours[2]!.hash };
    for (const order of [
      [old, primary, standby],
      [standby, old, primary],
    ]) {
      await fill(old, recordsOf("theirs", 5));
      expect((await checked(order, at)).faults).toEqual([fault(3, "differs from that of the others")]);
      await fill(old, recordsOf("ours", 5));
      expect((await checked(order, at)).faults).toEqual([fault(4, "is not in the journal")]);
      await fill(old, ours.slice(0, 2));
      expect((await checked(order, at)).faults).toEqual([]);
    }
  });

  test.each([
    ["a record that is missing", "DELETE FROM cairnlog.record WHERE sequence = 2", /record/i],
    ["the newest record that is missing", "DELETE FROM cairnlog.record WHERE sequence = 3", /record 3 is missing/],
    ["a record that is damaged", "UPDATE cairnlog.record SET body = substr(body, 2) WHERE sequence = 2", /\w/],
    [
      "a record that does not follow the one before it",
      `UPDATE cairnlog.record SET body = ${HEX(theirs[2]!.body)}, epoch = 1 WHERE sequence = 2`,
      /continues with record 3 instead of 2/,
    ],
    ["a row of the lead that is missing", "DELETE FROM cairnlog.lead", /no row in cairnlog\.lead/],
    ["a table that is missing", "DROP TABLE cairnlog.record", /cairnlog\.record/],
  ])("finds %s, on the server that has it", async (_, change, said) => {
    await fill(primary, ours, change);
    await fill(old, ours);
    const { faults, servers } = await checked([old, primary, standby]);
    expect(faults).toEqual([primary, standby].map((server) => expect.stringMatching(`^${addressOf(server)}: `)));
    for (const fault of faults) expect(fault).toMatch(said);
    expect(servers.find(({ address }) => address === addressOf(old))).toMatchObject({ records: 3 });
  });
});
