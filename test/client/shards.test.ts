/** The end of a log, as its clients see it: proven, and where it goes on. */
import { beforeAll, expect, test } from "vitest";
import { createClient } from "#cairnlog/server/client/index.js";
import { startTestService, type TestService } from "../server/harness.js";
import { failure, newClient, operatorSigner } from "./clients.js";

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
