/** The cluster that replication is tested with: what it does to PostgreSQL, and what PostgreSQL then does. */
import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster, DATABASE, startCluster } from "./cluster.js";
import { Link } from "./link.js";

let cluster: Cluster;
const links: Link[] = [];
beforeAll(async () => {
  cluster = await startCluster({
    portBetween: async (_, to) => {
      const link = await Link.open(to.port);
      links.push(link);
      return link.port;
    },
  });
  await cluster.primary.query("CREATE TABLE t (n int PRIMARY KEY)", DATABASE);
});
afterAll(async () => {
  for (const link of links) link.close();
  await cluster.remove();
  expect(existsSync(cluster.folder)).toBe(false);
});

const insert = (n: number, milliseconds?: number) =>
  cluster.primary.query(`INSERT INTO t VALUES (${n})`, DATABASE, milliseconds);
const rowsAt = async (i: number) => (await cluster.servers[i]!.query("SELECT n FROM t ORDER BY n", DATABASE)).flat();

test("a commit waits for one of two standbys, and not for both", async () => {
  await insert(1);
  cluster.servers[1]!.freeze();
  await insert(2);
  cluster.servers[2]!.freeze();
  await expect(insert(3, 1000)).rejects.toThrow("did not end in time");
  cluster.servers[1]!.thaw();
  await insert(4);
  cluster.servers[2]!.thaw();
  await cluster.settled();
});

test("a link that is cut keeps commits from a standby until it is healed", async () => {
  for (const link of links) link.cut();
  await expect(insert(5, 1000)).rejects.toThrow("did not end in time");
  for (const link of links) link.heal();
  await insert(6);
});

test("the newest standby takes over, and the old primary comes back rewound", async () => {
  const old = cluster.primary;
  for (const link of links) link.cut();
  // It is on one disk, and nobody was told that it is there.
  await expect(insert(7, 1000)).rejects.toThrow("did not end in time");
  await old.kill();
  // What was on its way does not arrive.
  for (const link of links) link.reset();
  for (const link of links) link.heal();
  await cluster.promote(await cluster.newest());
  await insert(8);
  await cluster.rejoin(old);
  await cluster.settled();
  await insert(9);
  const there = await rowsAt(cluster.servers.indexOf(cluster.primary));
  expect(there).toContain("9");
  expect(there).not.toContain("7");
  await expect.poll(() => rowsAt(cluster.servers.indexOf(old))).toEqual(there);
});

test("a process of a server that is killed makes PostgreSQL recover by itself", async () => {
  expect(cluster.primary.killProcess(/^walwriter/)).toBe(true);
  await expect.poll(() => cluster.primary.isReady()).toBe(true);
  await cluster.settled();
  await insert(10);
});
