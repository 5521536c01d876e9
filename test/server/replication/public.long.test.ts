/** A node that may not read private rows and has no private key: `SERVICE_READ_ONLY=on` with `SERVICE_REPLICATION`. */
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient } from "#cairnlog/server/client/index.js";
import { asSigner } from "../../client/clients.js";
import { type Cluster, freePorts, startCluster } from "../../cluster/servers/cluster.js";
import { cairnlog, type RunningService, scratchFolder, startService } from "../../service.js";
import { newNoteSigner } from "../../verify/note/notes.js";
import { newSigner } from "../signers.js";
import { headAt, Nodes, until } from "./nodes.js";

const scratch = scratchFolder();
let cluster: Cluster;
let nodes: Nodes;
let leader: RunningService;
let reader: RunningService;
let environment: Record<string, string>;
const dataDir = () => nodes.dataOf("public");

beforeAll(async () => {
  cluster = await startCluster();
  await cluster.primary.query("CREATE DATABASE shown");
  for (const role of ["leader", "candidate", "public"])
    await cluster.primary.query(`CREATE ROLE cairnlog_${role} NOLOGIN`);
  await cluster.primary.query("CREATE ROLE reader LOGIN IN ROLE cairnlog_public");
  const url = cluster.url({ database: "shown" });
  const policy = join(scratch.path, "policy");
  const [log, dead] = [newNoteSigner("log.example", 1), newNoteSigner("dead.example", 4)];
  // Nobody answers there.
  writeFileSync(policy, `log ${log.vkey}\nwitness A ${dead.vkey} http://127.0.0.1:9\nquorum none\n`);
  nodes = new Nodes(url, { SERVICE_WITNESSES: policy });
  expect(await nodes.command("a", "replicate", "init")).toMatchObject({ code: 0 });
  leader = await nodes.start("a");
  await until(leader.url, "/leader", 200);
  mkdirSync(dataDir(), { mode: 0o700 });
  environment = {
    PORT: String((await freePorts(1))[0]),
    SERVICE_REPLICATION: url.replace("postgres@", "reader@"),
    SERVICE_READ_ONLY: "on",
    LOG_LEVEL: "fatal",
  };
});
afterAll(async () => {
  reader.process.kill("SIGKILL");
  await nodes.remove();
  await cluster.remove();
  scratch.remove();
});

test("it does not start without the operator's public key", async () => {
  await expect(startService(dataDir(), environment, { stderr: "pipe" })).rejects.toThrow("exit code 1");
});

test("it serves what the leader has acknowledged, with heads and the leader's checkpoint", async () => {
  copyFileSync(join(nodes.dataOf("a"), "operator.pub.pem"), join(dataDir(), "operator.pub.pem"));
  reader = await startService(dataDir(), environment);
  await until(reader.url, "/readyz", 200);
  const client = createClient({ server: leader.url, signer: asSigner(newSigner()) });
  const { receipt } = await client.attest({ title: "a document", content_hash: "1".padStart(64, "0") });
  const { tree_size } = receipt.sth!;
  expect(await headAt(reader.url, tree_size)).toEqual(await headAt(leader.url, tree_size));
  for (const path of [`/api/v1/log/proof/${tree_size - 1}`, "/api/v1/log", "/api/v1/keys"])
    expect(await (await fetch(reader.url + path)).text()).toBe(await (await fetch(leader.url + path)).text());
  expect(await (await fetch(`${reader.url}/follower`)).json()).toMatchObject({ role: "follower", leader: leader.url });
  await until(reader.url, "/tlog/checkpoint", 200);
  expect(await (await fetch(`${reader.url}/tlog/vkey`)).text()).toBe(
    await (await fetch(`${leader.url}/tlog/vkey`)).text(),
  );
  expect((await fetch(`${reader.url}/api/v1/log/checkpoint`)).status).toBe(404);
});

test("whoever writes is sent to the leader, and what is private is not answered", async () => {
  const refused = await fetch(`${reader.url}/api/v1/attestations`, { method: "POST", body: "{}" });
  expect([refused.status, refused.headers.get("cairnlog-leader")]).toEqual([503, leader.url]);
  const client = createClient({ server: [reader.url, leader.url], signer: asSigner(newSigner()) });
  const { receipt } = await client.attest({ title: "through a reader", content_hash: "2".padStart(64, "0") });
  await headAt(reader.url, receipt.sth!.tree_size);
  expect((await fetch(`${reader.url}/api/v1/trust-configs`)).status).toBe(403);
});

test("the leader shows how it stands with its witnesses, and others show none", async () => {
  const metricsOf = async ({ url }: RunningService) => (await fetch(`${url}/metrics`)).text();
  expect(await metricsOf(leader)).toMatch(/^cairnlog_cosigner_late\{witness="A"\} [01]$/m);
  expect(await metricsOf(reader)).not.toContain("cairnlog_cosigner");
});

test("it starts while PostgreSQL is away, refuses what may be outdated, and goes on afterwards", async () => {
  expect(await reader.stop()).toBe(0);
  await cluster.primary.stop();
  reader = await startService(dataDir(), environment);
  expect((await fetch(`${reader.url}/livez`)).status).toBe(200);
  expect((await fetch(`${reader.url}/api/v1/log/head`)).status).toBe(503);
  await cluster.primary.start();
  await until(reader.url, "/readyz", 200);
  expect(await (await fetch(`${reader.url}/api/v1/log/sth`)).json()).toMatchObject({ tree_size: 4 });
  expect((await fetch(`${reader.url}/leader`)).status).toBe(503);
});

test("its data directory verifies, and holds no private key", async () => {
  expect(await reader.stop()).toBe(0);
  for (const name of ["operator.pem", "tlog.pem"]) expect(existsSync(join(dataDir(), name))).toBe(false);
  expect(await cairnlog(["fsck", "--data", dataDir()])).toMatchObject({ code: 0 });
});
