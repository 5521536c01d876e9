/**
 * Payloads that are withheld, on the disk of the service itself: the start after that leaves no byte of them, in rows, postings and
 * free pages. All files are searched byte by byte.
 */
import { cpSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FLUSH_ENTRIES } from "#cairnlog/engine/store/postings/postings.js";
import { anyEvent } from "../anyevent.js";
import { cairnlog } from "../cli/harness.js";
import { newPair } from "../server/endorsements.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner, submission } from "../server/signers.js";
import { attestSecrets, holding, withholdSecrets } from "./bytes.js";

/** A service with an attestation and as many entries behind it, and what is searched for of its payload. */
async function attested(dataDir: string, behind: number) {
  const service = await startTestService({ SERVICE_DATA_DIR: dataDir });
  const attestation = await attestSecrets(service);
  await service.server.registry.log.append(Array.from({ length: behind }, (_, n) => anyEvent({ n })));
  return { service, ...attestation };
}

/** What anybody sees of the log. */
async function shownBy(service: TestService, id: number): Promise<string[]> {
  const { tree_size } = (await service.get("/log/sth")).body;
  const paths = [
    `/log/${id}`,
    "/log/sth",
    "/log?per_page=200",
    `/log/heads?from=1&limit=${Math.min(1000, tree_size)}`,
    `/log/proof/${id - 1}?tree_size=${tree_size}`,
    `/log/consistency?from=${id}&to=${tree_size}`,
    "/log?tags=Quittengelee",
    "/log?title=Holundergelee",
    "/keys?per_page=200",
    "/keys/search?pseudonym=Holundergelee",
    "/log/tile/2/0/0.p/20",
  ];
  return Promise.all(paths.map(async (path) => (await service.get(path)).text));
}

test("the start after a payload was withheld takes it from the disk, and nothing else", async () => {
  const dataDir = temporaryFolder();
  // So many that their postings are written.
  let { service, id, named, secrets } = await attested(dataDir, FLUSH_ENTRIES);
  const pair = await newPair(service);
  await service.server.registry.passwords.set(pair.endorsed.fingerprint, { password: "correct horse battery staple" });
  await expect.poll(() => holding(dataDir, secrets)).toContain("log/postings/data.mdb: title folded");
  await withholdSecrets(service, { id, named });
  const before = await shownBy(service, id);
  const password = service.server.registry.log.row("passwords", pair.endorsed.fingerprint);
  expect(password).toBeDefined();
  await service.close();
  expect(holding(dataDir, secrets)).toContain("log/data.mdb: title");

  service = await startTestService({ SERVICE_DATA_DIR: dataDir });
  expect(holding(dataDir, secrets)).toEqual([]);
  expect(await shownBy(service, id)).toEqual(before);
  expect(service.server.registry.log.row("passwords", pair.endorsed.fingerprint)).toEqual(password);
  expect(service.server.registry.log.stateDifferences()).toEqual([]);
  expect((await service.post("/log/verify")).body).toMatchObject({ valid: true });
  const { tree_size } = (await service.get("/log/sth")).body;
  const more = await service.post("/attestations", submission(newSigner(), newManifest("After")));
  expect(more.body.sth.tree_size).toBeGreaterThan(tree_size);
  await service.close();
  expect(readdirSync(join(dataDir, "log")).filter((name) => name.startsWith("eras"))).toEqual([]);
  expect(await cairnlog(["fsck", "--data", dataDir])).toMatchObject({ code: 0 });

  // The next start finds nothing to do.
  const { ino } = statSync(join(dataDir, "log/data.mdb"));
  service = await startTestService({ SERVICE_DATA_DIR: dataDir });
  expect(statSync(join(dataDir, "log/data.mdb")).ino).toBe(ino);
  await service.close();
  expect(holding(dataDir, secrets)).toEqual([]);
});

test("a start that ends while it takes something from the disk is finished by the next one", async () => {
  const dataDir = temporaryFolder();
  let { service, id, named, secrets } = await attested(dataDir, 0);
  await withholdSecrets(service, { id, named });
  const before = await shownBy(service, id);
  await service.close();
  const erased = temporaryFolder();
  cpSync(dataDir, erased, { recursive: true });
  await (await startTestService({ SERVICE_DATA_DIR: erased })).close();

  const files = ["postings", "data.mdb"];
  for (const [building, built, placed] of [
    [true, [], []],
    [false, files, []],
    [false, ["data.mdb"], ["postings"]],
    [false, [], files],
  ] as const) {
    const killed = temporaryFolder();
    cpSync(dataDir, killed, { recursive: true });
    const log = join(killed, "log");
    if (building) cpSync(join(dataDir, "log"), join(log, "erasing"), { recursive: true });
    else mkdirSync(join(log, "erased"));
    for (const [names, to] of [
      [built, "erased"],
      [placed, ""],
    ] as const)
      for (const name of names) {
        rmSync(join(log, to, name), { recursive: true, force: true });
        cpSync(join(erased, "log", name), join(log, to, name), { recursive: true });
      }
    service = await startTestService({ SERVICE_DATA_DIR: killed });
    expect(holding(killed, secrets), `${built} ${placed}`).toEqual([]);
    expect(await shownBy(service, id)).toEqual(before);
    await service.close();
    expect(await cairnlog(["fsck", "--data", killed])).toMatchObject({ code: 0 });
  }
});
