/** The end of a log, as its clients see it: proven, and where it goes on. */
import { beforeAll, expect, test } from "vitest";
import { beginLog } from "#cairnlog/engine/log/operator/entries.js";
import type { TreeHead } from "#cairnlog/engine/verify/index.js";
import { createClient } from "#cairnlog/server/client/index.js";
import { startTestService, type TestService } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { conviction, failure, newClient, operatorSigner } from "./clients.js";

const reason = "The year is over.";
let service: TestService;
let successor: { url: string; vkey: string };
beforeAll(async () => {
  service = await startTestService();
  successor = { url: "https://next.example", vkey: (await service.send("GET", "/tlog/vkey")).text.trim() };
});

test("the operator ends it, and every client has the end proven", async () => {
  const operator = createClient({ server: service.url, signer: operatorSigner(service.server.dataDir) });
  const { client } = newClient(service.url);
  await client.keys.register({ pseudonym: "Ada" });
  expect(await client.shards.end()).toBeNull();
  expect(await failure(client.shards.freeze({ reason }))).toMatchObject({ status: 403 });
  const head = await operator.shards.freeze({ reason, successor });
  expect(head.tree_size).toBe(service.server.registry.log.size);
  expect(await failure(operator.shards.freeze({ reason }))).toMatchObject({ code: "frozen", status: 410, successor });
  const refusal = await failure(newClient(service.url).client.keys.register({ pseudonym: "Ben" }));
  expect(refusal).toMatchObject({ code: "frozen", successor, detail: expect.stringContaining(successor.url) });
  const end = { entry_id: head.tree_size, tree_size: head.tree_size, reason, successor };
  expect(await client.shards.end()).toMatchObject(end);
  expect(await client.log.head()).toEqual(head);
});

test("others may write between the head that the operator has seen and the end", async () => {
  const busy = await startTestService();
  const operator = createClient({ server: busy.url, signer: operatorSigner(busy.server.dataDir) });
  for (const pseudonym of ["Ada", "Ben"]) await newClient(busy.url).client.keys.register({ pseudonym });
  expect(await operator.log.head()).toMatchObject({ tree_size: 2 });
  for (const pseudonym of ["Cleo", "Dan"]) await newClient(busy.url).client.keys.register({ pseudonym });
  expect(await operator.shards.freeze({ reason })).toMatchObject({ tree_size: 5 });
});

test("the beginning names a log whose key has signed the head that it names, or convicts this one", async () => {
  const last = await startTestService();
  const operator = createClient({ server: last.url, signer: operatorSigner(last.server.dataDir) });
  const tree_head = (await operator.shards.freeze({ reason })) as Required<TreeHead>;
  const operator_key: string = (await last.get("/log/operator-key")).body.public_key;
  const beginning = async (predecessor: object) => {
    const next = await startTestService();
    const said = { url: last.url, operator_key, tree_head, ...predecessor };
    await next.server.registry.log.execute(beginLog, { predecessor: said });
    return newClient(next.url).client.shards.beginning();
  };
  expect(await beginning({})).toEqual({ entry_id: 1, url: last.url, operator_key, tree_head });
  const lies = [
    { operator_key: newSigner().publicKey },
    { operator_key: "no key" },
    { tree_head: { ...tree_head, tree_size: tree_head.tree_size + 1 } },
    { tree_head: { ...tree_head, root_hash: "0".repeat(64) } },
    { tree_head: { ...tree_head, signature: "AA==" } },
  ];
  for (const lie of lies) await conviction(beginning(lie));
});
