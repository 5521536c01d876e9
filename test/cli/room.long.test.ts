/** The room on the disk that the settings ask for, and commands that write a log that no service writes. */
import fs, { mkdirSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { createClient } from "#cairnlog/server/client/index.js";
import { formsOf, holding } from "../backup/bytes.js";
import { asSigner } from "../client/clients.js";
import { newManifest, newSigner } from "../server/signers.js";
import { scratchFolder, startService } from "../service.js";
import { cairnlog } from "./harness.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());

/** The data directory of a stopped service, with one attestation. @returns also its entry */
async function dataWith(title: string) {
  const data = join(scratch.path, title);
  const service = await startService(data);
  const client = createClient({ server: service.url, signer: asSigner(newSigner()) });
  const { receipt } = await client.attest({ title, content_hash: newManifest().document.content_hash });
  await service.stop();
  return { data, id: `${receipt.log_entry_id}` };
}

/** Has the disk of what `isThere` names show so many free bytes. */
function showFree(free: number, isThere: (path: string) => boolean): void {
  const { statfsSync } = fs;
  const setLook = (look: typeof statfsSync) => {
    fs.statfsSync = look;
    syncBuiltinESMExports();
  };
  onTestFinished(() => setLook(statfsSync));
  const shown = { blocks: 2 ** 20, bavail: free / 4096, bsize: 4096 };
  setLook(((path: string) => (isThere(path) ? shown : statfsSync(path))) as typeof statfsSync);
}

test("operator and import leave as much of the disk free as SERVICE_MIN_FREE_BYTES says", async () => {
  const { data, id } = await dataWith("Zwetschgenkuchen");
  const [next, empty] = [join(scratch.path, "next.pem"), join(scratch.path, "empty")];
  writeFileSync(next, generatePrivateKey("ed25519"), { mode: 0o600 });
  mkdirSync(empty);
  const history = join(scratch.path, "history.ndjson");
  const log = await openLog({
    path: join(data, "log"),
    signer: operatorKey(fs.readFileSync(join(data, "operator.pem"), "utf8")),
    projection,
  });
  writeFileSync(history, [0, 1].map((leaf) => `${JSON.stringify(log.entryAt(leaf))}\n`).join(""));
  await log.close();
  const works: readonly (readonly string[])[] = [
    ["operator", "withhold", id, "--reason", "An order.", "--data", data],
    ["operator", "rotate", "--to", next, "--data", data],
    ["operator", "freeze", "--reason", "It is over.", "--data", data],
    ["import", history, "--data", empty],
  ];
  showFree(2 ** 20, () => true);
  for (const work of works)
    expect(await cairnlog(work, { SERVICE_MIN_FREE_BYTES: `${2 ** 21}` }), work.join(" ")).toMatchObject({
      code: 1,
      stderr: "cairnlog: Only 1 MiB are free on the disk of the log, which needs 2 MiB to be written.\n",
    });
  for (const work of works)
    expect(await cairnlog(work, { SERVICE_MIN_FREE_BYTES: `${2 ** 19}` }), work.join(" ")).toMatchObject({
      code: 0,
      stderr: "",
    });
});

test("a payload that is withheld, and stays on a disk without room for the copy, is said to stay until a start", async () => {
  const { data, id } = await dataWith("Quittengelee");
  showFree(0, (path) => path.includes("erasing"));
  const { code, stdout, stderr } = await cairnlog([
    "operator",
    "withhold",
    id,
    "--reason",
    "An order.",
    "--data",
    data,
  ]);
  const secrets = formsOf({ title: "Quittengelee" });
  expect(holding(data, secrets)).not.toEqual([]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: `Entry 3 withholds what entry ${id} says.\n` });
  expect(stderr).toMatch(/^The disk still has it, until a start .* take it away: .*Only 0 MiB are free.*\n$/);
  showFree(2 ** 40, () => true);
  await (await startService(data)).stop();
  expect(holding(data, secrets)).toEqual([]);
});
