/** Mirrors and payloads that are withheld: on their disk they keep what they have, unless they are told to obey. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { anyEvent } from "../anyevent.js";
import { attestSecrets, holding, withholdSecrets } from "../backup/bytes.js";
import { cairnlog } from "../cli/harness.js";
import { tamper } from "../fsck/everykind.js";
import { startTestService, temporaryFolder } from "../server/harness.js";
import { newMonitor } from "./monitors.js";

/** A log with an attestation, and what is searched for of its payload. */
async function attested() {
  const service = await startTestService();
  return { service, log: service.server.registry.log, ...(await attestSecrets(service)) };
}

const served = (folder: string, settings = {}) =>
  startTestService({ SERVICE_DATA_DIR: folder, SERVICE_READ_ONLY: "on", ...settings });

test("one that obeys has no byte of it after the round that tells so, also while it is served", async () => {
  const { service, log, id, named, secrets } = await attested();
  const obeying = newMonitor(service.url, { obeysWithholding: true });
  const keeping = newMonitor(service.url);
  for (const { monitor } of [obeying, keeping]) await monitor.round();
  expect(holding(obeying.folder.path, secrets)).toContain("mirror/log/data.mdb: title");
  const mirror = await served(obeying.folder.mirror);
  expect((await mirror.get(`/log/${id}`)).body.payload).toMatchObject({ document_title: "Zwetschgenkuchen mit Zimt" });

  await withholdSecrets(service, { id, named });
  // More than one page behind it, all in one round.
  await log.append(Array.from({ length: 450 }, (_, n) => anyEvent({ n })));
  const shown = (await service.get(`/log/${id}`)).text;
  for (const { monitor } of [obeying, keeping]) await monitor.round();
  expect(holding(obeying.folder.path, secrets)).toEqual([]);
  expect(holding(keeping.folder.path, secrets)).toContain("mirror/log/data.mdb: title");
  // The service that reads it takes the new files, and all that comes after.
  await expect.poll(async () => (await mirror.get(`/log/${id}`)).text).toBe(shown);
  await log.append([anyEvent({ n: "behind" })]);
  for (const { monitor } of [obeying, keeping]) await monitor.round({ audit: true });
  const head = (await service.get("/log/sth")).text;
  await expect.poll(async () => (await mirror.get("/log/sth")).text).toBe(head);
  const heads = `/log/heads?from=1&limit=${log.size}`;
  expect((await mirror.get(heads)).text).toBe((await service.get(heads)).text);
  const proof = `/log/proof/${id - 1}?tree_size=${log.size}`;
  expect((await mirror.get(proof)).text).toBe((await service.get(proof)).text);
  expect((await mirror.get("/log?search=Zwetschgenkuchen")).body).toMatchObject({ entries: [] });
  expect((await mirror.post("/log/verify")).body).toMatchObject({ valid: true });
  await mirror.close();
  for (const { monitor } of [obeying, keeping]) await monitor.close();
  expect(holding(obeying.folder.path, secrets)).toEqual([]);
});

test("the command obeys from the round on in which it is told to", async () => {
  const { service, id, named, secrets } = await attested();
  const state = temporaryFolder();
  const round = async (...told: string[]) => {
    const { code, stderr } = await cairnlog(["monitor", service.url, "--state", state, "--once", ...told]);
    expect(code, stderr).toBe(0);
    return holding(state, secrets);
  };
  await round("--obey-withholding");
  await withholdSecrets(service, { id, named });
  expect(await round()).toContain("mirror/log/data.mdb: title");
  expect(await round("--obey-withholding")).toEqual([]);
});

test("one that was made afterwards never has a byte of it", async () => {
  const { service, id, named, secrets } = await attested();
  await withholdSecrets(service, { id, named });
  for (const obeysWithholding of [true, false]) {
    const { monitor, folder } = newMonitor(service.url, { obeysWithholding });
    await monitor.round();
    await monitor.close();
    expect(holding(folder.path, secrets)).toEqual([]);
  }
});

test("a service that is told to obey takes it from a mirror that nobody writes, and leaves that to a monitor otherwise", async () => {
  const { service, id, named, secrets } = await attested();
  const { monitor, folder } = newMonitor(service.url);
  await monitor.round();
  await withholdSecrets(service, { id, named });
  await monitor.round();
  const shown = (await service.get(`/log/${id}`)).text;
  const obeying = { SERVICE_OBEY_WITHHOLDING: "on" };
  // All of them show what the log shows.
  for (const [settings, hasMonitor, isKept] of [
    [obeying, true, true],
    [{}, true, true],
    // There is no disk with so much room.
    [{ ...obeying, SERVICE_MIN_FREE_BYTES: `${2 ** 49}` }, false, true],
    [obeying, false, false],
  ] as const) {
    if (!hasMonitor) await monitor.close();
    const mirror = await served(folder.mirror, settings);
    expect((await mirror.get(`/log/${id}`)).text).toBe(shown);
    await mirror.close();
    expect(holding(join(folder.path, "mirror"), secrets).length > 0, JSON.stringify(settings)).toBe(isKept);
  }
});

test("a service that is told to obey and cannot does not start", async () => {
  const { service, log, id, named } = await attested();
  // As many as are written as a run of postings at the end: the next opening reads none of them.
  await log.append(Array.from({ length: 1_100 }, (_, n) => anyEvent({ n })));
  const { monitor, folder } = newMonitor(service.url);
  await monitor.round();
  await withholdSecrets(service, { id, named });
  await monitor.round();
  await monitor.close();
  // An entry that has nothing to do with it is damaged: the copy without the payload would lack it.
  await tamper(folder.mirror, async (_, bytes) => {
    const batches = bytes("batches");
    const [, { key, value }] = [...batches.getRange({ limit: 2 })] as [unknown, { key: number; value: Buffer }];
    await batches.put(key, value.subarray(0, value.length - 40));
  });
  await (await served(folder.mirror)).close();
  const refused = served(folder.mirror, { SERVICE_OBEY_WITHHOLDING: "on" });
  await expect(refused).rejects.toMatchObject({ code: "corrupt-log" });
});
