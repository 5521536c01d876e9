/** Payloads that are withheld, in the journal of PostgreSQL: its rows lose them, its files with `replicate erase`, and nodes to come never have them. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient } from "#cairnlog/server/client/index.js";
import { formsOf, holding } from "../../backup/bytes.js";
import { asSigner } from "../../client/clients.js";
import { type Cluster, startCluster } from "../../cluster/servers/cluster.js";
import type { RunningService } from "../../service.js";
import { newManifest, newSigner, submission } from "../signers.js";
import { headAt, Nodes, until } from "./nodes.js";

let cluster: Cluster;
let nodes: Nodes;
let leader: RunningService;

beforeAll(async () => {
  cluster = await startCluster();
  nodes = new Nodes(cluster.url());
  expect(await nodes.command("a", "replicate", "init")).toMatchObject({ code: 0 });
  leader = await nodes.start("a");
  await until(leader.url, "/leader", 200);
});
afterAll(async () => {
  await nodes.remove();
  await cluster.remove();
});

const secrets = formsOf({ title: "Zwetschgenkuchen", name: "Holundergelee" });
async function post(url: string, attestation: object) {
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(attestation) };
  const response = await fetch(`${url}/api/v1/attestations`, init);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
const textOf = async (url: string, path: string) => (await fetch(`${url}/api/v1${path}`)).text();
/** Records of the journal, and files of the servers' tables, that hold the payload. */
const rowsWithIt = async () => {
  const text = `SELECT count(*) FROM cairnlog.record WHERE position('Zwetschgen'::bytea in body) + position('Holunder'::bytea in body) > 0`;
  return Number((await cluster.primary.query(text, "cairnlog"))[0]![0]);
};
const filesWithIt = async () => {
  for (const server of cluster.servers) await server.query("CHECKPOINT");
  return cluster.servers.flatMap(({ dataDir }) => holding(join(dataDir, "base"), secrets));
};

test("its rows lose them, its files do with a command, and a node to come never has them", async () => {
  const client = createClient({ server: leader.url, signer: asSigner(newSigner()) });
  const attest = async (title: string) =>
    (await client.attest({ title, content_hash: "1".padStart(64, "0") })).receipt.log_entry_id;
  const { log_entry_id: named } = await client.keys.register({ pseudonym: "Holundergelee" });
  const id = await attest("Zwetschgenkuchen");
  await attest("behind");
  const submitted = submission(newSigner(), newManifest("Zwetschgenkuchen"));
  const { status, body } = await post(leader.url, submitted);
  expect(status).toBe(200);
  expect(await rowsWithIt()).toBe(3);
  // While the rows have them: when PostgreSQL writes over what a changed row has left is not known.
  const files = await filesWithIt();
  for (const what of [": title", ": name"]) expect(files.filter((line) => line.includes(what))).not.toEqual([]);
  const proof = `/log/proof/${id - 1}?tree_size=${id}`;
  const before = await textOf(leader.url, proof);
  const withhold = async (...what: string[]) => {
    const said = ["--reason", "An order.", "--server", leader.url];
    const withheld = await nodes.command("a", "operator", "withhold", ...what, ...said);
    expect(withheld, withheld.stderr).toMatchObject({ code: 0 });
  };
  await withhold(`${id}`);
  await withhold(`${body.log_entry_id}`);
  await expect.poll(rowsWithIt).toBe(1);
  await withhold(`${named}`, "--member", "pseudonym");
  await expect.poll(rowsWithIt).toBe(0);
  expect(await nodes.command("a", "replicate", "erase", "--json")).toMatchObject({
    code: 0,
    stdout: '{"withheld":3}\n',
  });
  await expect.poll(filesWithIt).toEqual([]);
  expect(await nodes.command("a", "replicate", "check")).toMatchObject({ code: 0 });

  const newest = await attest("later");
  const late = await nodes.start("b");
  expect(await headAt(late.url, newest)).toEqual(await headAt(leader.url, newest));
  expect(holding(nodes.dataOf("b"), secrets)).toEqual([]);
  for (const path of [
    `/log/${id}`,
    `/log/${named}`,
    "/keys",
    proof,
    `/log/heads?from=1&limit=${newest}`,
    "/log?per_page=100",
  ])
    expect(await textOf(late.url, path)).toBe(await textOf(leader.url, path));
  expect(await textOf(late.url, proof)).toBe(before);
  expect(await late.stop()).toBe(0);
  expect(await nodes.command("b", "fsck")).toMatchObject({ code: 0 });

  expect(await leader.stop()).toBe(0);
  expect(holding(nodes.dataOf("a"), secrets)).not.toEqual([]);
  // It never had the payload, and knows it nevertheless.
  const alone = await nodes.start("b");
  await until(alone.url, "/leader", 200);
  expect(await post(alone.url, submitted)).toMatchObject({ status: 410, body: { code: "gone" } });
  expect(await post(alone.url, { ...submitted, intent_statement: "I did." })).toMatchObject({ status: 403 });
  expect(await alone.stop()).toBe(0);
  leader = await nodes.start("a");
  await until(leader.url, "/leader", 200);
  expect(holding(nodes.dataOf("a"), secrets)).toEqual([]);
  expect(await nodes.command("a", "replicate", "check")).toMatchObject({ code: 0 });
  expect(await headAt(leader.url, await attest("after"))).toBeTruthy();
});
