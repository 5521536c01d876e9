/** Two nodes of one log: what clients see while one of them, or PostgreSQL, fails. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { TreeHead } from "#cairnlog/engine/verify/tree/treehead.js";
import { createClient } from "#cairnlog/server/client/index.js";
import { asSigner } from "../../client/clients.js";
import { type Cluster, startCluster } from "../../cluster/servers/cluster.js";
import { cairnlog, type RunningService, startService } from "../../service.js";
import { startReceiver } from "../../webhooks/receiver.js";
import { newSigner } from "../signers.js";
import { headAt, Nodes, until } from "./nodes.js";

let cluster: Cluster;
let databases = 0;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.remove());

let nodes: Nodes;
let [a, b]: RunningService[] = [];
beforeEach(async () => {
  const database = `nodes${++databases}`;
  await cluster.primary.query(`CREATE DATABASE ${database}`);
  nodes = new Nodes(cluster.url({ database }), {
    SERVICE_CHECKPOINT_INTERVAL_S: "1",
    SERVICE_WEBHOOK_ALLOW_PRIVATE: "on",
  });
  expect(await nodes.command("a", "replicate", "init")).toMatchObject({ code: 0 });
  a = await nodes.start("a");
  await until(a.url, "/leader", 200);
  b = await nodes.start("b");
  await until(b.url, "/follower", 200);
});
afterEach(() => nodes.remove());

const signer = asSigner(newSigner());
let documents = 0;
/** A client that asks the node at `url` first, and whose user has named all nodes. */
const clientOf = (url: string) =>
  createClient({
    server: [url, ...[a, b].flatMap((node) => node?.url ?? [])],
    signer,
    operatorKey: readFileSync(join(nodes.dataOf("a"), "operator.pub.pem"), "utf8"),
  });
const newDocument = () => ({ title: "a document", content_hash: `${++documents}`.padStart(64, "0") });

/** Attests, and returns the head of the receipt. */
const attest = async (url: string): Promise<TreeHead> => (await clientOf(url).attest(newDocument())).receipt.sth!;

/** Attests until it succeeds, as a client that retries does. @returns the head of the receipt */
async function patiently(...urls: string[]): Promise<TreeHead> {
  const document = newDocument();
  for (let i = 0; ; i++)
    try {
      return (await clientOf(urls[i % urls.length]!).attest(document)).receipt.sth!;
    } catch (error) {
      expect((error as { status: number }).status, String(error)).toSatisfy((s: number) => s === 503 || s === 0);
      await sleep(50);
    }
}

test("a follower serves what the leader has acknowledged, and sends writers to it", async () => {
  const sth = await attest(a!.url);
  expect(await headAt(b!.url, sth.tree_size)).toEqual(await headAt(a!.url, sth.tree_size));
  const refused = await fetch(`${b!.url}/api/v1/attestations`, { method: "POST", body: "{}" });
  expect(refused.status).toBe(503);
  expect(refused.headers.get("cairnlog-leader")).toBe(a!.url);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await refused.json()).toMatchObject({ code: "not-leader" });
  // The client goes on at the leader by itself.
  const second = await attest(b!.url);
  expect(second.tree_size).toBeGreaterThan(sth.tree_size);
  for (const { url } of [a!, b!]) await until(url, "/readyz", 200);
  expect((await fetch(`${a!.url}/follower`)).status).toBe(503);
  expect(await (await fetch(`${b!.url}/follower`)).json()).toMatchObject({ role: "follower", leader: a!.url });
  expect(await (await fetch(`${b!.url}/metrics`)).text()).toMatch(/^cairnlog_replication_leader 0$/m);
  // The checkpoint that the leader publishes is the follower's, too.
  await until(b!.url, "/tlog/checkpoint", 200);
  expect(await (await fetch(`${b!.url}/tlog/vkey`)).text()).toBe(await (await fetch(`${a!.url}/tlog/vkey`)).text());
});

test("when the leader is killed the other node leads, and has every receipt", async () => {
  const heads: TreeHead[] = [];
  for (let i = 0; i < 20; i++) heads.push(await attest(a!.url));
  a!.process.kill("SIGKILL");
  await until(b!.url, "/leader", 200);
  const next = await patiently(b!.url);
  expect(next.tree_size).toBeGreaterThan(heads.at(-1)!.tree_size);
  for (const sth of heads) expect(await headAt(b!.url, sth.tree_size)).toEqual(sth);
  // The old leader comes back as a follower, with the same log.
  const again = await nodes.start("a");
  await until(again.url, "/follower", 200);
  expect(await headAt(again.url, next.tree_size)).toEqual(next);
  for (const { url } of [again, b!])
    expect((await fetch(`${url}/api/v1/log/verify`, { method: "POST" })).status).toBe(200);
});

test("a leader that stood still does not go on where another has taken the lead", async () => {
  await attest(a!.url);
  a!.process.kill("SIGSTOP");
  await until(b!.url, "/leader", 200);
  const next = await patiently(b!.url);
  a!.process.kill("SIGCONT");
  await until(a!.url, "/follower", 200);
  expect(await headAt(a!.url, next.tree_size)).toEqual(next);
  const refused = await fetch(`${a!.url}/api/v1/attestations`, { method: "POST", body: "{}" });
  expect(refused.headers.get("cairnlog-leader")).toBe(b!.url);
});

test("webhooks are told by who leads, also by one that leads again, and by none that PostgreSQL cannot tell whether it does", async () => {
  const receiver = await startReceiver();
  const tries = (id: number) =>
    receiver.received.filter(({ headers }) => `${headers["webhook-id"]}`.endsWith(`_${id}`)).length;
  const told = async () => {
    const { tree_size: id } = await patiently(a!.url, b!.url);
    await expect.poll(() => tries(id)).toBe(1);
    return id;
  };
  await attest(a!.url);
  await clientOf(a!.url).webhooks.create({ url: receiver.url, events: ["attestation.created"] });
  await told();
  for (const next of ["b", "a"]) {
    expect(await nodes.command(next, "promote")).toMatchObject({ code: 0 });
    await until(await nodes.urlOf(next), "/leader", 200);
    await told();
  }
  receiver.answer = (response) => void response.writeHead(500).end();
  const id = await told();
  const failed = performance.now();
  // Its outcome is on disk, and the next try is due after five seconds.
  await sleep(500);
  for (const server of cluster.servers) server.freeze();
  try {
    await expect.poll(() => performance.now() - failed).toBeGreaterThan(9_000);
    expect(tries(id)).toBe(1);
  } finally {
    for (const server of cluster.servers) server.thaw();
  }
});

test("when a standby is promoted the leader goes on, and a client sees its receipt", async () => {
  const before = await attest(a!.url);
  const old = cluster.primary;
  await old.kill();
  const pending = patiently(a!.url, b!.url);
  await cluster.promote(await cluster.newest());
  const sth = await pending;
  expect(sth.tree_size).toBeGreaterThan(before.tree_size);
  for (const { url } of [a!, b!]) expect(await headAt(url, sth.tree_size)).toEqual(sth);
  await cluster.rejoin(old);
  await cluster.settled();
});

test("a stopped leader gives the lead back, promote moves it, and check finds all copies alike", async () => {
  await attest(a!.url);
  expect(await nodes.command("b", "promote")).toMatchObject({ code: 0 });
  await until(b!.url, "/leader", 200);
  await until(a!.url, "/follower", 200);
  const sth = await patiently(a!.url);
  // The one that led makes the tree of /tlog/ again, and shows what the other publishes.
  const shown = async (url: string) => {
    const answer = await fetch(`${url}/tlog/checkpoint`);
    return answer.ok ? Number((await answer.text()).split("\n")[1]) : 0;
  };
  for (const { url } of [b!, a!]) while ((await shown(url)) < sth.tree_size) await sleep(100);
  expect(await b!.stop()).toBe(0);
  await until(a!.url, "/leader", 200);
  expect(await headAt(a!.url, sth.tree_size)).toEqual(sth);
  const next = await patiently(a!.url);
  expect(await a!.stop()).toBe(0);
  for (const name of ["a", "b"]) {
    const checked = await nodes.command(name, "replicate", "check", "--json");
    expect(JSON.parse(checked.stdout)).toMatchObject({ sound: true, faults: [] });
    expect(await nodes.command(name, "fsck")).toMatchObject({ code: 0 });
  }
  expect(next.tree_size).toBeGreaterThan(sth.tree_size);
});

test("a node that has shown more than the journal has does not lead, and leaves the lead to one that has not", async () => {
  const sth = await attest(a!.url);
  for (const node of [b!, a!]) expect(await node.stop()).toBe(0);
  // As if records were lost with a primary, and the node's own with its disk.
  const shown = join(nodes.dataOf("b"), "published.json");
  writeFileSync(shown, JSON.stringify({ ...sth, tree_size: sth.tree_size + 5 }));
  b = await nodes.start("b");
  const figures = async () => (await fetch(`${b!.url}/metrics`)).text();
  await expect.poll(figures).toMatch(/^cairnlog_replication_trouble 1$/m);
  expect((await fetch(`${b.url}/leader`)).status).toBe(503);
  a = await nodes.start("a");
  await until(a.url, "/leader", 200);
  expect((await patiently(a.url)).tree_size).toBe(sth.tree_size + 1);
});

test("a node with other settings may not join, and says which", async () => {
  const environment = { SERVICE_PREDICATE_BASE: "https://other.example/predicates" };
  const others = new Nodes(cluster.url({ database: `nodes${databases}` }), environment);
  const refused = await others.command("c", "replicate", "init");
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/There is a journal/) });
  const started = await others.command("c", "serve");
  expect(started.code).toBe(1);
  expect(started.stderr).toMatch(/SERVICE_PREDICATE_BASE is "https:\/\/x-service.example\/predicates" there/);
  await others.remove();
});

test("a node that never leads follows, starts empty, and serves everything", async () => {
  for (let i = 0; i < 10; i++) await attest(a!.url);
  b!.process.kill("SIGKILL");
  await b!.exited;
  const c = await nodes.start("c", "--follow");
  await until(c.url, "/follower", 200);
  const sth = await patiently(a!.url);
  expect(await headAt(c.url, sth.tree_size)).toEqual(sth);
  a!.process.kill("SIGKILL");
  await sleep(4_000);
  expect((await fetch(`${c.url}/leader`)).status).toBe(503);
  expect(await headAt(c.url, sth.tree_size)).toEqual(sth);
  // The journal still names the leader that is dead. No command takes its word.
  const said = async (...args: string[]) => JSON.parse((await nodes.command("a", ...args, "--json")).stdout);
  const { epoch, ...dead } = await said("replicate", "status");
  expect(dead).toMatchObject({ led: false, leader: null });
  const promoted = said("promote");
  const again = await nodes.start("a");
  expect(await promoted).toEqual({ leader: again.url, epoch: epoch + 1 });
  await until(again.url, "/leader", 200);
  expect(await said("replicate", "status")).toMatchObject({ led: true, leader: again.url, epoch: epoch + 1 });
  expect(await said("promote")).toEqual({ leader: again.url, epoch: epoch + 1 });
});

test("a node does not leave the journal where another is about to take the lead that was just given back", async () => {
  await attest(a!.url);
  b!.process.kill("SIGSTOP");
  expect(await a!.stop()).toBe(0);
  const left = nodes.command("a", "replicate", "leave");
  await sleep(1_500);
  b!.process.kill("SIGCONT");
  // A slow command finds its record already.
  const why = /has a leader, http.*: stop all nodes|lacks 1 records/;
  expect(await left).toMatchObject({ code: 1, stderr: expect.stringMatching(why) });
  await until(b!.url, "/leader", 200);
});

test("a stopped node leaves the journal if no other leads and it has everything; before that nothing writes its log alone", async () => {
  const { tree_size } = await attest(a!.url);
  expect(await headAt(b!.url, tree_size)).toBeTruthy();
  expect(await b!.stop()).toBe(0);
  const leave = (name: string) => nodes.command(name, "replicate", "leave");
  const refused = (why: string) => ({ code: 1, stderr: expect.stringContaining(why) });
  expect(await leave("a")).toMatchObject(refused("in use by process"));
  expect(await leave("b")).toMatchObject(refused(`has a leader, ${a!.url}: stop all nodes`));
  await attest(a!.url);
  expect(await leave("b")).toMatchObject(refused("lacks 1 records of the journal"));
  expect(await a!.stop()).toBe(0);

  const { SERVICE_REPLICATION: _, ...alone } = await nodes.environmentOf("a");
  const env = { ...process.env, ...alone };
  expect(await cairnlog(["serve"], { env })).toMatchObject(refused("cairnlog replicate leave"));
  expect(await nodes.command("a", "replicate", "check")).toMatchObject({ code: 0 });
  expect(await leave("a")).toMatchObject({ code: 0 });
  expect(await leave("a")).toMatchObject(refused("is not that of a node"));
  const service = await startService(nodes.dataOf("a"), alone);
  expect((await attest(service.url)).tree_size).toBe(tree_size + 2);
  expect(await service.stop()).toBe(0);
  // Whoever has lost the journal has nobody to ask.
  const { SERVICE_REPLICATION: __, ...other } = await nodes.environmentOf("b");
  const left = await cairnlog(["replicate", "leave", "--data", nodes.dataOf("b"), "--json"], {
    env: { ...process.env, ...other },
  });
  expect(left).toMatchObject({ code: 0, stdout: '{"left":true}\n' });
});
