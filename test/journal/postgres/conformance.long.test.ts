/**
 * The suite of all journals, over real PostgreSQL servers that fail in every way in which they do. No acknowledged change
 * is lost, nothing is there in part, records are dense and chained, and every node has the same log.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster, startCluster } from "../../cluster/servers/cluster.js";
import { checkContent, Load, namesOf } from "../load.js";
import { Node, newJournal } from "./node.js";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.remove());

const REFUSED = "not-leader";

/** Both nodes have the same log, and each is what the journal says. */
async function checkSame(nodes: readonly Node[], load: Load, isKept: boolean): Promise<void> {
  const [first] = nodes;
  for (const { log } of nodes) {
    await checkContent(log, load, isKept);
    expect(log.size).toBe(first!.log.size);
    expect(namesOf(log)).toEqual(namesOf(first!.log));
    for (let index = 0; index < log.size; index++) {
      expect(log.entryJsonAt(index)).toEqual(first!.log.entryJsonAt(index));
      expect(log.treeHead(index + 1)).toEqual(first!.log.treeHead(index + 1));
    }
    expect(log.position).toEqual(first!.log.position);
  }
}

/** What follows, when the leader has told what is decided. */
async function followed(leader: Node, url: string): Promise<Node[]> {
  await leader.beat();
  const follower = await Node.open(url);
  await follower.log.follow();
  return [leader, follower];
}

interface Failure {
  readonly name: string;
  /** Happens while the load runs. */
  happen(leader: Node, url: string): Promise<void>;
}

const waiter = "backend_type = 'client backend' AND wait_event = 'SyncRep'";

/** Waits until the leader's append waits for its standbys. */
async function untilBlocked(): Promise<void> {
  for (;;) {
    const [row] = await cluster.primary.query(`SELECT count(*) FROM pg_stat_activity WHERE ${waiter}`);
    if (row![0] !== "0") return;
    await sleep(10);
  }
}

/** Has no standby acknowledge anything while `meanwhile` runs. */
async function blocked(meanwhile: () => Promise<unknown>): Promise<void> {
  const standbys = cluster.standbys;
  for (const standby of standbys) standby.freeze();
  await untilBlocked();
  await meanwhile();
  for (const standby of standbys) standby.thaw();
}

const RESOLVED: Failure[] = [
  {
    name: "the wait for the standbys is cancelled",
    happen: () =>
      blocked(() => cluster.primary.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE ${waiter}`)),
  },
  {
    name: "the waiting session is terminated",
    happen: () =>
      blocked(() => cluster.primary.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${waiter}`)),
  },
  {
    name: "the primary stands still for longer than the patience of a statement",
    async happen() {
      cluster.primary.freeze();
      await sleep(6_000);
      cluster.primary.thaw();
    },
  },
  {
    name: "the primary crashes and recovers",
    async happen() {
      cluster.primary.killProcess(/^walwriter/);
    },
  },
  {
    name: "one standby stands still",
    async happen() {
      const [standby] = cluster.standbys;
      standby!.freeze();
      await sleep(500);
      standby!.thaw();
    },
  },
];

test.each(RESOLVED)("$name: everything is acknowledged all the same", async ({ happen }) => {
  const url = await newJournal(cluster);
  const leader = await Node.open(url);
  await leader.lead();
  const load = new Load(leader.log);
  await load.run(2, 50);
  const running = load.run(6, 150);
  await happen(leader, url);
  await running;
  await load.run(1, 5);
  expect(load.failed.size).toBe(0);
  await checkSame(await followed(leader, url), load, false);
  await cluster.settled();
});

test("a primary that dies gives way to the newest standby, and no acknowledged entry is lost", async () => {
  const url = await newJournal(cluster);
  const leader = await Node.open(url);
  await leader.lead();
  const load = new Load(leader.log);
  await load.run(2, 50);
  const running = load.run(6, 150);
  const old = cluster.primary;
  await old.kill();
  await cluster.promote(await cluster.newest());
  await running;
  await load.run(1, 5);
  expect(load.failed.size).toBe(0);
  await checkSame(await followed(leader, url), load, false);
  await cluster.rejoin(old);
  await cluster.settled();
});

test("a node that takes the lead ends that of the other, which appends nothing more", async () => {
  const url = await newJournal(cluster);
  const [first, second] = [await Node.open(url), await Node.open(url)];
  await first.lead();
  const load = new Load(first.log, 0, REFUSED);
  await load.run(1, 50);
  const running = load.run(6, 150);
  await second.lead();
  await running;
  await load.run(1, 3);
  expect(load.failed.size).toBeGreaterThan(0);
  expect(first.journal.isLeading).toBe(false);
  const next = new Load(second.log, 10_000);
  await next.run(2, 20);
  expect(next.failed.size).toBe(0);
  for (const [n, committed] of next.acknowledged) load.acknowledged.set(n, committed);
  await second.beat();
  await first.log.follow();
  // What was under way when the lead changed may be there, though nobody was told.
  await checkSame([second, first], load, true);
});

test("a record counts as untold until the next append, or a sign of life, tells that it is decided", async () => {
  const url = await newJournal(cluster);
  const leader = await Node.open(url);
  const follower = await Node.open(url);
  expect(leader.journal.untold).toBe(0);
  await leader.lead();
  const shown = async () => {
    await follower.journal.look();
    await follower.log.follow();
    return follower.log.size;
  };
  await leader.log.append({ event_type: "note", payload: { n: 1 } });
  expect(leader.journal.untold).toBeGreaterThan(0);
  expect(await shown()).toBe(0);
  await leader.log.append({ event_type: "note", payload: { n: 2 } });
  expect(leader.journal.untold).toBeGreaterThan(0);
  expect(await shown()).toBe(1);
  await leader.beat();
  expect(leader.journal.untold).toBe(0);
  expect(await shown()).toBe(2);
});

test.each(["not persisted", "persisted anyway"] as const)(
  "a decided record whose transaction fails (%s) is applied at the next start",
  async (fate) => {
    const url = await newJournal(cluster);
    const leader = await Node.open(url);
    await leader.lead();
    const load = new Load(leader.log);
    await load.run(1, 20);
    leader.faults.plan = ["works", fate];
    await load.run(4, 150);
    await load.run(1, 5);
    await checkSame(await followed(leader, url), load, true);
  },
);

test("a node that was killed after the decision has the record when it starts again", async () => {
  const url = await newJournal(cluster);
  const leader = await Node.open(url);
  await leader.lead();
  const load = new Load(leader.log);
  await load.run(1, 20);
  leader.faults.plan = ["not persisted", "not persisted", "not persisted"];
  await load.run(1, 3);
  await leader.close();
  const again = await Node.open(url, leader.path);
  await again.lead();
  await checkSame(await followed(again, url), load, true);
  expect(namesOf(again.log).size).toBeGreaterThan(load.acknowledged.size);
});

test("a node that is ahead of the journal never leads", async () => {
  const url = await newJournal(cluster);
  const leader = await Node.open(url);
  await leader.lead();
  await new Load(leader.log).run(1, 20);
  await leader.close();
  const database = url.split("/").at(-1)!;
  // PostgreSQL was brought back from an old backup.
  const sql = `DELETE FROM cairnlog.record WHERE sequence > 2;
    UPDATE cairnlog.lead SET (sequence, hash, size, acked) = (SELECT sequence, hash, 0, sequence FROM cairnlog.record
    ORDER BY sequence DESC LIMIT 1)`;
  await cluster.primary.query(sql, database);
  const again = await Node.open(url, leader.path);
  const { size } = again.log;
  await expect(again.lead()).rejects.toMatchObject({
    code: "corrupt-log",
    message: expect.stringMatching(/It must never lead/),
  });
  expect(again.log.size).toBe(size);
  await expect(again.log.append({ event_type: "note", payload: {} })).rejects.toMatchObject({ code: REFUSED });
});
