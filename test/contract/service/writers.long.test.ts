/**
 * Nothing is stored past the gate: every write of the OpenAPI document, over both transports, by a key that may not write;
 * and that keys which may write still can.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { TRANSPORTS } from "#cairnlog/server/http/transport/transport.js";
import { expectProblem, startTestService, type TestService, temporaryFolder } from "../../server/harness.js";
import { bearerOf } from "../../server/proofs.js";
import { newManifest, newSigner, submission, type TestSigner } from "../../server/signers.js";
import { content, FREE, register, send, WRITES } from "../../server/writes.js";
import { operationsOf } from "../tour.js";

const ADDRESS = "198.51.100.7";

async function start(rule: string, transport: string, listed: readonly string[] = [newSigner().fingerprint]) {
  const list = join(temporaryFolder(), "writers");
  const write = (fingerprints: readonly string[]) =>
    writeFileSync(list, fingerprints.map((one, i) => `key-${i} ${one}\n`).join(""));
  write(listed);
  const service = await startTestService({
    SERVICE_WRITERS: rule === "file" ? list : rule,
    SERVICE_TRANSPORT: transport,
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
  });
  return { service, write };
}

/** The writes that the document offers. One that is new must be among those that this test can make. */
async function writesOf(service: TestService): Promise<readonly string[]> {
  const ids = operationsOf(await service.openApi()).filter(({ method, id }) => method !== "GET" && !FREE.has(id));
  return ids.map(({ id }) => id);
}

/** Sends a write, which must be refused. */
async function expectRefused(service: TestService, id: string, signer?: TestSigner): Promise<void> {
  expect(WRITES, "a write that this test cannot make").toHaveProperty(id);
  const go = await send(service, id, ADDRESS, signer);
  const before = content(service);
  const reply = await go();
  if (id === "post_attestations_batch") {
    expect(reply.status).toBe(200);
    expect(reply.body.results, id).toMatchObject([{ status: 403, problem: { code: "not-a-writer" } }]);
  } else expectProblem(reply, 403, "not-a-writer");
  expect(content(service), id).toEqual(before);
}

describe.each(TRANSPORTS)("over %s", (transport) => {
  test.each(["file", "endorsed"])(
    "%s: a registered key that may not write stores nothing, whatever it sends",
    async (rule) => {
      const { service } = await start(rule, transport);
      for (const id of await writesOf(service)) await expectRefused(service, id);
      await service.close();
    },
  );

  test("registered: a key that is not registered stores nothing", async () => {
    const { service } = await start("registered", transport);
    const unregistered = ["post_keys_register", "post_attestations", "post_attestations_batch", "post_documents_sign"];
    for (const id of unregistered) await expectRefused(service, id, newSigner());
    await service.close();
  });

  test.each(["file", "registered"])("%s: a key that may write does so in every way", async (rule) => {
    const signers = Object.keys(WRITES).map(() => newSigner());
    const { service, write } = await start(rule, transport);
    const before = await service.get("/writers");
    expect(before.body.rule).toBe(rule);
    for (const signer of signers) await register(service.server.registry, signer);
    // The keys of the scenes are registered, and not listed.
    write(signers.map(({ fingerprint }) => fingerprint));
    expect(service.server.renewWriters()).toBe(rule === "file" ? signers.length : null);
    // Whoever sends these has not shown that the key is his; and the key that an account gets back is another's.
    const others = ["post_keys_register", "post_users", ...(rule === "file" ? ["post_users_recover"] : [])];
    for (const [i, id] of Object.keys(WRITES).entries()) {
      if (others.includes(id)) continue;
      const reply = await (await send(service, id, ADDRESS, signers[i]!))();
      expect(reply.status, `${id}: ${reply.text}`).toBeLessThan(300);
      if (id === "post_attestations_batch") expect(reply.body.results[0].status).toBe(201);
    }
    await service.close();
  });
});

test("what a stranger may do is as before: read, verify, sign in and end a session's subscription", async () => {
  const { service } = await start("file", "");
  const signer = newSigner();
  await register(service.server.registry, signer);
  const { id } = await service.server.registry.webhooks.subscribe({ url: "https://a.example/" }, signer.fingerprint);
  const headers = await bearerOf(service, signer);
  expect((await service.send("DELETE", `/api/v1/webhooks/${id}`, { headers })).status).toBe(200);
  expect((await service.get("/webhooks", headers)).status).toBe(200);
  expect((await service.post("/auth/renew", {}, headers)).status).toBe(200);
  const { manifest } = submission(signer, newManifest());
  const { content_hash: source_hash } = manifest.document;
  expect((await service.post("/verify", { manifest, source_hash })).status).toBe(200);
  expect((await service.get("/log/head")).status).toBe(200);
});

test("a list that is read again holds for each front end at once; one that is wrong changes nothing", async () => {
  const [first, second] = [newSigner(), newSigner()];
  const list = join(temporaryFolder(), "writers");
  writeFileSync(list, `first ${first.fingerprint}\n`);
  const service = await startTestService({ SERVICE_WRITERS: list, SERVICE_FRONT_ENDS: "3" });
  const statuses = async (signer: TestSigner) => {
    const replies = Array.from({ length: 12 }, () =>
      service.post("/attestations", submission(signer), { connection: "close" }),
    );
    return new Set((await Promise.all(replies)).map(({ status }) => status));
  };
  expect(await statuses(first)).toEqual(new Set([200]));
  expect(await statuses(second)).toEqual(new Set([403]));
  writeFileSync(list, `second ${second.fingerprint}\n`);
  expect(service.server.renewWriters()).toBe(1);
  expect(await statuses(first)).toEqual(new Set([403]));
  expect(await statuses(second)).toEqual(new Set([200]));
  for (const [wrong, why] of [
    [`third ${first.fingerprint}\nfourth\n`, /, line 2: it must be names, options and a key/],
    ["", / lists nobody\.$/],
  ] as const) {
    writeFileSync(list, wrong);
    expect(() => service.server.renewWriters()).toThrow(why);
    expect(await statuses(second)).toEqual(new Set([200]));
  }
});
