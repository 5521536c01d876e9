/**
 * Payloads that are withheld, on the disk: no backup has them afterwards, and a data directory that is made of one has no byte of
 * them, in rows, postings and free pages. All files are searched byte by byte.
 */
import { cpSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { FLUSH_ENTRIES } from "#cairnlog/engine/store/postings/postings.js";
import { anyEvent } from "../anyevent.js";
import { cairnlog } from "../cli/harness.js";
import { startTestService, temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner, submission } from "../server/signers.js";
import { backUp, manifestOf } from "./backups.js";
import { attestSecrets, formsOf, holding, withholdSecrets } from "./bytes.js";

const said = { reason: "An order.", basis: null };

test("a backup leaves it out, one from before is mended, and a data directory made of it has no byte of it", async () => {
  const [dataDir, backup] = [temporaryFolder(), temporaryFolder()];
  let service = await startTestService({ SERVICE_DATA_DIR: dataDir });
  const signer = newSigner();
  const { id, named, secrets } = await attestSecrets(service);
  await service.post("/attestations", submission(signer, newManifest("Another")));
  // So many that their postings are written.
  const many = Array.from({ length: FLUSH_ENTRIES }, (_, n) => anyEvent({ n }));
  await service.server.registry.log.append(many);
  await expect.poll(() => holding(dataDir, secrets)).toContain("log/postings/data.mdb: title folded");
  await backUp(dataDir, backup);
  const proof = `/log/proof/${id - 1}?tree_size=${id + 1}`;
  const before = [(await service.get(proof)).text, (await service.get(`/log/heads?from=1&limit=${id + 1}`)).text];
  // The search finds it where it is.
  const found = [...holding(backup, secrets), ...holding(dataDir, secrets)].map((line) => line.split(": ")[1]);
  for (const name of [
    "name",
    "name folded",
    "title",
    "title folded",
    "tag",
    "statement",
    "document",
    "manifest",
    "attestation",
    "signature",
  ])
    expect(found).toContain(name);

  await withholdSecrets(service, { id, named });
  await service.post("/attestations", submission(signer, newManifest("Behind")));
  expect(await backUp(dataDir, backup)).toMatchObject({ added: 3 });
  expect(holding(backup, secrets)).toEqual([]);
  expect(manifestOf(backup)).toMatchObject({ withheld: [named - 1, id - 1] });
  const files = readdirSync(backup);
  expect(await backUp(dataDir, backup)).toMatchObject({ added: 0 });
  expect(readdirSync(backup)).toEqual(files);
  const head = (await service.get("/log/sth")).body;
  const shown = (await service.get("/log?per_page=200")).text;
  await service.close();

  renameSync(join(dataDir, "log"), join(temporaryFolder(), "log"));
  const restored = await cairnlog(["restore", backup, "--to", dataDir]);
  expect(restored, restored.stderr).toMatchObject({ code: 0 });
  expect(holding(dataDir, secrets)).toEqual([]);
  expect(await cairnlog(["fsck", "--data", dataDir])).toMatchObject({ code: 0 });
  service = await startTestService({ SERVICE_DATA_DIR: dataDir });
  expect((await service.get("/log/sth")).body).toEqual(head);
  expect((await service.get("/log?per_page=200")).text).toBe(shown);
  expect([(await service.get(proof)).text, (await service.get(`/log/heads?from=1&limit=${id + 1}`)).text]).toEqual(
    before,
  );
  expect((await service.post("/log/verify")).body).toMatchObject({ valid: true });
  const more = await service.post("/attestations", submission(signer, newManifest("After")));
  expect(more.body.sth.tree_size).toBe(head.tree_size + 1);
  await service.close();
  expect(holding(dataDir, secrets)).toEqual([]);
  expect(await backUp(dataDir, backup)).toMatchObject({ added: 1 });
});

test("a backup that was broken off while it left something out is whole, and the next one does the rest", async () => {
  const [dataDir, backup] = [temporaryFolder(), temporaryFolder()];
  const service = await startTestService({ SERVICE_DATA_DIR: dataDir });
  const sent = submission(newSigner(), newManifest("Zwetschgenkuchen"));
  const id = (await service.post("/attestations", sent)).body.log_entry_id;
  await backUp(dataDir, backup);
  const earlier = temporaryFolder();
  cpSync(backup, earlier, { recursive: true });
  await withhold(service.server.registry, id, said);
  await backUp(dataDir, backup);
  await service.close();
  // The segment was written again, and the manifest not yet.
  const [anew] = readdirSync(backup).filter((name) => !readdirSync(earlier).includes(name) && /-2-/.test(name));
  cpSync(join(backup, anew!), join(earlier, anew!));
  const restoredTo = temporaryFolder();
  expect(await cairnlog(["restore", earlier, "--to", restoredTo, "--may-fork"])).toMatchObject({ code: 0 });
  rmSync(restoredTo, { recursive: true });
  await backUp(dataDir, earlier);
  expect(holding(earlier, formsOf({ title: "Zwetschgenkuchen" }))).toEqual([]);
});
