/** `cairnlog operator withhold`, on a data directory and through the service that writes it. */
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createClient } from "#cairnlog/server/client/index.js";
import { formsOf, holding } from "../backup/bytes.js";
import { asSigner } from "../client/clients.js";
import { newManifest, newSigner } from "../server/signers.js";
import { scratchFolder, startService } from "../service.js";
import { cairnlog } from "./harness.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());

test("withholds a payload of a service that runs, and of one that has stopped; the command shows it as withheld", async () => {
  const data = join(scratch.path, "data");
  let service = await startService(data);
  const client = createClient({ server: service.url, signer: asSigner(newSigner()) });
  const attest = async (title: string) =>
    (await client.attest({ title, content_hash: newManifest().document.content_hash })).receipt.log_entry_id;
  const [first, second] = [await attest("Zwetschgenkuchen"), await attest("Quittengelee")];
  const withhold = (...more: string[]) => cairnlog(["operator", "withhold", "--data", data, ...more]);
  const said = ["--reason", "An order.", "--basis", "Case 12/26"];
  expect(await withhold(`${first}`)).toMatchObject({ code: 2, stderr: expect.stringContaining("--reason is missing") });
  expect(await withhold(...said)).toMatchObject({ code: 2, stderr: expect.stringContaining("ENTRY is missing") });
  expect(await withhold(`${first}`, ...said)).toMatchObject({ code: 1, stderr: expect.stringContaining("in use by") });
  const there = await withhold(`${first}`, ...said, "--server", service.url, "--json");
  expect(there, there.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(there.stdout)).toEqual({
    entry_id: first,
    withheld_by: second + 1,
    reason: "An order.",
    basis: "Case 12/26",
  });
  const again = await withhold(`${first}`, ...said, "--server", service.url);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining(`withheld by entry ${second + 1}`) });
  await service.stop();

  expect(await withhold("1", ...said)).toMatchObject({ code: 1, stderr: expect.stringContaining("Only attestations") });
  expect(await withhold(`${second}`, "--reason", "x".repeat(501))).toMatchObject({ code: 1 });
  expect(await withhold(`${second}`, ...said)).toMatchObject({
    code: 0,
    stdout: `Entry ${second + 2} withholds what entry ${second} says.\n`,
  });
  expect(holding(data, formsOf({ first: "Zwetschgenkuchen", second: "Quittengelee" }))).toEqual([]);
  service = await startService(data);
  const state = ["--server", service.url, "--state", join(scratch.path, "state")];
  const shown = await cairnlog(["log", "show", `${first}`, `${second}`, ...state]);
  expect(shown, shown.stderr).toMatchObject({ code: 0 });
  expect(shown.stdout).toContain(`withheld by the operator, entry ${second + 1}`);
  expect(shown.stdout).toContain(`withheld by the operator, entry ${second + 2}`);
  const listed = await cairnlog(["log", "tail", "--lines", "10", ...state]);
  expect(listed.stdout).toContain(`withheld by entry ${second + 1}`);
  for (const text of [shown.stdout, listed.stdout, listed.stderr]) expect(text).not.toMatch(/kuchen|gelee/);
  expect(await cairnlog(["fsck", "--data", data])).toMatchObject({ code: 1 });
  await service.stop();
  expect(await cairnlog(["fsck", "--data", data])).toMatchObject({ code: 0 });
});
