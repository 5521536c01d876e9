/**
 * The mirror of a monitor can be served: byte for byte the same answers as the log's own service, except for writes.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openOperatorKey } from "#cairnlog/engine/index.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { createClient } from "#cairnlog/server/client/index.js";
import { readSettings, startServer } from "#cairnlog/server/index.js";
import type { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import type { Monitor } from "#cairnlog/server/monitor/monitor.js";
import { anyEvent } from "../anyevent.js";
import { chain } from "../log/history/entries.js";
import { done, newPair, type Pair } from "../server/endorsements.js";
import {
  expectProblem,
  startTestService,
  type TestService,
  temporaryFolder,
  testEnvironment,
} from "../server/harness.js";
import { newManifest, newSigner, sha256, submission } from "../server/signers.js";
import { newMonitor } from "./monitors.js";

let service: TestService;
let mirror: TestService;
let monitor: Monitor;
let folder: MonitorFolder;
let pair: Pair;
const manifest = newManifest();
const signer = newSigner();

beforeAll(async () => {
  service = await startTestService({
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
    SERVICE_CHECKPOINT_INTERVAL_S: "1",
  });
  const attested = await service.post("/attestations", submission(signer, manifest));
  expect(attested.status).toBe(200);
  pair = await newPair(service);
  await done("offer", pair);
  await done("accept", pair);
  const notes = Array.from({ length: 300 }, (_, i) => anyEvent({ i, tags: ["many"] }));
  await service.server.registry.log.append(notes);
  ({ monitor, folder } = newMonitor(service.url));
  await monitor.round();
  mirror = await startTestService({
    SERVICE_DATA_DIR: folder.mirror,
    SERVICE_READ_ONLY: "on",
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
  });
});
afterAll(() => monitor.close());

describe("reading", () => {
  test("every public answer is that of the log's own service, byte for byte", async () => {
    const { fingerprint } = pair.endorsed;
    const size = await service.entryCount();
    const paths = [
      "/log?page=2&per_page=200",
      "/log?event_type=encrypted_claim&tags=many&per_page=3",
      `/log?search=${sha256("nothing")}`,
      "/log/head",
      "/log/2",
      `/log/by-fingerprint/${fingerprint}`,
      `/log/audit-trail?fingerprint=${signer.fingerprint}`,
      "/log/sth",
      "/log/sth/17",
      "/log/heads?from=200&limit=1000",
      `/log/proof/7?tree_size=${size - 1}`,
      "/log/proof/7?tree_version=1",
      `/log/consistency?from=3&to=${size}`,
      "/log/tile/2/0/0",
      "/log/tile/1/0/1.p/40",
      "/log/checkpoint",
      "/log/operator-key",
      "/log/anchor-status",
      "/keys",
      "/keys/search?pseudonym=a",
      `/keys/${fingerprint}`,
      `/keys/${service.server.operatorFingerprint}/status`,
      `/keys/${fingerprint}/status`,
      `/endorsements/${fingerprint}`,
      `/endorsements/${pair.endorser.fingerprint}/issued`,
      `/endorsements/${fingerprint}/status`,
      `/graph/${fingerprint}`,
      "/audit/export?scope=keys&format=csv",
      "/identifier-types",
    ];
    for (const path of paths) {
      const [theirs, ours] = [await service.get(path), await mirror.get(path)];
      expect(ours.status, path).toBe(200);
      expect(ours.text, path).toBe(theirs.text);
    }
  });

  test("so is the log as other tools read it: key, checkpoint, tiles and bundles", async () => {
    await service.checkpointed(await service.entryCount());
    await monitor.round();
    for (const path of ["vkey", "checkpoint", "tile/0/000", "tile/1/000.p/1", "tile/entries/001.p/3"]) {
      const theirs = await service.send("GET", `/tlog/${path}`);
      await expect.poll(async () => (await mirror.send("GET", `/tlog/${path}`)).text).toBe(theirs.text);
    }
    const { vkey } = (await mirror.send("GET", "/readyz")).body;
    expect(`${vkey}\n`).toBe((await service.send("GET", "/tlog/vkey")).text);
  });

  test("/health and /readyz say that it is a mirror", async () => {
    expect((await mirror.get("/health")).body).toEqual({ status: "ok", version: expect.any(String), read_only: true });
    expect((await service.get("/health")).body).toEqual({ status: "ok", version: expect.any(String) });
    expect((await mirror.send("GET", "/readyz")).status).toBe(200);
  });

  test("verification goes on", async () => {
    const source_hash = manifest.document.content_hash;
    const [theirs, ours] = [
      await service.post("/verify", { manifest, source_hash }),
      await mirror.post("/verify", { manifest, source_hash }),
    ];
    expect(ours.text).toBe(theirs.text);
    expect((await mirror.post("/log/verify")).body).toMatchObject({ valid: true, errors: [] });
  });

  test("a client that trusts nobody works against it", async () => {
    const operatorKey = (await service.get("/log/operator-key")).body.public_key;
    const client = createClient({ server: mirror.url, operatorKey });
    expect(await client.log.head()).toEqual((await service.get("/log/sth")).body);
    expect((await client.log.entry(2)).entry).toEqual((await service.get("/log/2")).body);
  });

  test("so does a monitor: a mirror of the mirror", async () => {
    const second = newMonitor(mirror.url);
    await second.monitor.round();
    expect(second.monitor.size).toBe(await service.entryCount());
    await second.monitor.close();
    const name = "checkpoint.txt";
    expect(readFileSync(join(second.folder.mirror, name))).toEqual(readFileSync(join(folder.mirror, name)));
  });
});

test("writing, signing in and private rows: 403 with a reason, for any request", async () => {
  const document = await mirror.openApi();
  const open = ["/api/v1/verify", "/api/v1/log/verify", "/api/v1/composite/assemble", "/api/v1/composite/compile"];
  let refused = 0;
  for (const [path, operations] of Object.entries<Record<string, unknown>>(document.paths))
    for (const method of Object.keys(operations)) {
      if (["get", "head"].includes(method) || open.includes(path)) continue;
      const reply = await mirror.send(method.toUpperCase(), path.replace(/\{(\w+)\}/g, "1"), { body: '{"a":' });
      expectProblem(reply, 403, "forbidden");
      expect(reply.body.detail).toContain("read-only mirror");
      refused++;
    }
  expect(refused).toBeGreaterThan(20);
  for (const path of ["/inbox", "/webhooks", "/trust-configs"]) expectProblem(await mirror.get(path), 403, "forbidden");
});

test("there is no private key, and none is needed", () => {
  expect(readdirSync(folder.mirror).sort()).toEqual([
    ...["checkpoint.txt", "log", "operator.pub.pem"],
    ...["tlog-checkpoint.txt", "tlog.vkey"],
  ]);
});

test("what the monitor writes meanwhile is picked up", async () => {
  await service.server.registry.log.append(anyEvent({ late: true }));
  await monitor.round();
  const wanted = (await service.get("/log/sth")).text;
  await expect.poll(async () => (await mirror.get("/log/sth")).text).toBe(wanted);
  expect((await mirror.get("/log/checkpoint")).text).toBe((await service.get("/log/checkpoint")).text);
  expect((await mirror.get("/log?event_type=encrypted_claim")).body.total).toBe(301);
});

test("imported history: version 1, ids with gaps, no heads but the last", async () => {
  const dataDir = temporaryFolder();
  const operator = openOperatorKey(join(dataDir, "operator.pem"));
  const wanted = [
    {},
    { id: 7, chain_version: null },
    { id: 9, timestamp: "2019-05-05 05:05:05" },
    { chain_version: 2 as const },
  ];
  await importEntries({ path: join(dataDir, "log"), signer: operator, projection }, chain(wanted) as Entry[]);
  const old = await startTestService({ SERVICE_DATA_DIR: dataDir });
  await old.server.registry.log.append(anyEvent({ later: true }));
  const made = newMonitor(old.url);
  for (const audit of [false, true]) await made.monitor.round({ audit });
  await made.monitor.close();
  const copy = await startTestService({ SERVICE_DATA_DIR: made.folder.mirror, SERVICE_READ_ONLY: "on" });
  for (const path of [
    "/log",
    "/log/9",
    "/log/heads",
    "/log/sth",
    "/log/proof/1",
    "/log/consistency?from=2",
    "/log/checkpoint",
  ])
    expect((await copy.get(path)).text, path).toBe((await old.get(path)).text);
  expectProblem(await copy.get("/log/8"), 404, "not-found");
  expectProblem(await copy.get("/log/sth/2"), 404, "not-found");
});

test("a directory without a mirror is not served", async () => {
  const start = (dataDir: string) =>
    startServer(readSettings({ ...testEnvironment(dataDir), SERVICE_READ_ONLY: "on" }));
  await expect(start(temporaryFolder())).rejects.toMatchObject({ code: "not-found" });
});
