/** A frozen log over HTTP: every write of the document is refused, whatever it holds, and everything else goes on. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TRANSPORTS } from "#cairnlog/server/http/transport/transport.js";
import { operatorSigner } from "../../crash/load.js";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { bearerOf, registeredSigner } from "../../server/proofs.js";
import { newSigner, registration } from "../../server/signers.js";
import { content, FREE, prepared, WRITES } from "../../server/writes.js";
import { operationsOf } from "../tour.js";

/** The session of the operator, whose key is in the data directory. */
const operatorOf = (service: TestService) =>
  bearerOf(service, operatorSigner(readFileSync(join(service.server.dataDir, "operator.pem"), "utf8")));

test.each(TRANSPORTS)("no write gets behind the end, over %s and three front ends", async (transport) => {
  const service = await startTestService({ SERVICE_TRANSPORT: transport, SERVICE_FRONT_ENDS: "3" });
  const operations = operationsOf(await service.openApi());
  const writes = operations.filter(({ method, id }) => method !== "GET" && !FREE.has(id));
  // One that is new must be among those that this test can make.
  expect(writes.map(({ id }) => id).sort()).toEqual(Object.keys(WRITES).sort());
  const ready = [];
  for (const { id } of writes) ready.push({ id, ...(await prepared(service, id)).write });
  const headers = await operatorOf(service);
  const vkey = (await service.send("GET", "/tlog/vkey")).text.trim();
  const successor = { url: "https://next.example", vkey };
  const reason = "The year is over.";
  expectProblem(await service.post("/log/freeze", { reason, successor: { ...successor, vkey: "x" } }, headers), 422);
  const { status, body } = await service.post("/log/freeze", { reason, successor }, headers);
  expect(status).toBe(200);
  const before = content(service);
  // Each on a connection of its own, so that other front ends are asked, too.
  for (const { id, path, method = "POST", body: sent, headers: own = {} } of ready)
    for (const [given, more] of [
      [sent, own],
      [{}, {}],
    ] as const)
      for (let i = 0; i < 4; i++) {
        const init = { headers: { ...more, connection: "close" }, ...(given && { body: JSON.stringify(given) }) };
        const reply = await service.send(method, `/api/v1${path}`, init);
        expectProblem(reply, 410, "frozen");
        expect(reply.body, id).toMatchObject({ successor });
        expect(reply.body.detail).toContain("It goes on at https://next.example.");
      }
  expectProblem(await service.post("/log/freeze", { reason }, headers), 410, "frozen");
  expect(content(service)).toEqual(before);
  const { log_entry_id, leaf_index, sth } = body;
  expect(sth.tree_size).toBe(leaf_index + 1);
  expect((await service.get("/log/sth")).body).toEqual(sth);
  expect((await service.get(`/log/${log_entry_id}`)).body).toMatchObject({
    event_type: "log_frozen",
    payload: { event_type: "log_frozen", reason, successor },
  });
  const end = { entry_id: log_entry_id, tree_size: sth.tree_size, reason, successor };
  expect((await service.get("/log/shards")).body.frozen).toMatchObject(end);
  const readyz = await service.send("GET", "/readyz");
  expect([readyz.status, readyz.body.frozen]).toMatchObject([200, end]);
  await service.close();
});

test("reads, proofs, sign-in and fresh heads go on, and after a restart, too", async () => {
  let service = await startTestService();
  const signer = await registeredSigner(service);
  const reason = "No more of it.";
  const { body } = await service.post("/log/freeze", { reason }, await operatorOf(service));
  for (let starts = 0; starts < 2; starts++) {
    const { size } = service.server.registry.log;
    expect(size).toBe(2);
    const refusal = await service.post("/keys/register", registration(newSigner(), "Late"));
    expectProblem(refusal, 410, "frozen");
    expect(refusal.body).not.toHaveProperty("successor");
    expect((await service.get("/log/sth")).body).toEqual(body.sth);
    expect((await service.get("/log/0/proof")).status).toBe(404);
    for (const path of ["/log/proof/0", `/keys/${signer.fingerprint}`, "/log/consistency?from=1", "/log"])
      expect((await service.get(path)).status).toBe(200);
    expect((await service.send("GET", "/")).status).toBe(200);
    const headers = await bearerOf(service, signer);
    expect((await service.get("/inbox", headers)).status).toBe(200);
    const fresh = (await service.post("/log/sth/sign", {}, await operatorOf(service))).body;
    expect(fresh).toMatchObject({ tree_size: 2, root_hash: body.sth.root_hash });
    expect((await service.post("/log/verify", {})).body).toMatchObject({ valid: true, entry_count: 2 });
    const { dataDir } = service.server;
    await service.close();
    if (!starts) service = await startTestService({ SERVICE_DATA_DIR: dataDir });
  }
});
