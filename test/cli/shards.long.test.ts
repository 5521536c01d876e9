/** A log ends and the next one begins, as an operator does it with commands, and what holds on both sides of the seam. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import { createClient } from "#cairnlog/server/client/index.js";
import { asSigner, newClient } from "../client/clients.js";
import { LyingProxy } from "../client/proxy.js";
import { SettableClock } from "../cluster/rig/clock.js";
import { newManifest } from "../server/signers.js";
import { type RunningService, scratchFolder, cairnlog as spawned, startService } from "../service.js";
import { cairnlog } from "./harness.js";

const DAY_MS = 86_400_000;
const scratch = scratchFolder();
afterAll(() => scratch.remove());
let count = 0;
let [lastData, nextData, keyFile] = ["", "", ""];
let last: RunningService;
let vkey: string;

const keyOf = async (url: string) =>
  ((await (await fetch(`${url}/api/v1/log/operator-key`)).json()) as { public_key: string }).public_key;
const vkeyAt = async (url: string) => (await (await fetch(`${url}/tlog/vkey`)).text()).trim();
const operator = (...args: string[]) => cairnlog(["operator", ...args]);
const goOn = (url: string, data = nextData) =>
  operator("continue", "--predecessor", url, "--predecessor-key", keyFile, "--data", data);
const freeze = (...more: string[]) =>
  operator("freeze", "--data", lastData, "--server", last.url, "--reason", "The year is over.", ...more);

/** A log that may end, and the data directory of one that was started and has no entry. */
beforeEach(async () => {
  count++;
  [lastData, nextData, keyFile] = ["last", "next", "key.pem"].map((name) => join(scratch.path, `${count}-${name}`)) as [
    string,
    string,
    string,
  ];
  last = await startService(lastData);
  const next = await startService(nextData);
  vkey = await vkeyAt(next.url);
  await next.stop();
  writeFileSync(keyFile, await keyOf(last.url));
});

test("both logs name each other, a client finds the way in both directions, and statements hold on both sides", async () => {
  const ada = newClient(last.url);
  await ada.client.keys.register({ pseudonym: "Ada" });
  const { document } = newManifest();
  const before = await ada.client.attest(document);
  expect((await goOn(last.url)).stderr).toContain("has not ended: freeze it first.");
  expect((await freeze("--successor", "http://127.0.0.1:9", "--vkey", vkey)).code).toBe(0);
  const { code, stdout } = await goOn(last.url);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^This log goes on from the 3 entries at http/)]);
  expect(await goOn(last.url)).toMatchObject({ code: 0, stdout: expect.stringContaining("went on already") });

  const next = await startService(nextData);
  const successor = (await ada.client.shards.successor())!;
  expect(successor).toEqual({ server: "http://127.0.0.1:9", operatorKey: await keyOf(next.url) });
  // With the same key.
  const moved = newClient(next.url, { operatorKey: successor.operatorKey, signer: asSigner(ada.signer) });
  const beginning = (await moved.client.shards.beginning())!;
  expect(beginning).toMatchObject({ entry_id: 1, url: last.url, tree_head: { tree_size: 3 } });
  const back = createClient({ server: beginning.url, operatorKey: beginning.operator_key });
  expect(await back.log.head()).toEqual(beginning.tree_head);

  // What comes after the end is refused there, a repetition and a revocation too, with the way to the next log.
  for (const late of [() => ada.client.attest(document), () => ada.client.keys.revoke()])
    await expect(late()).rejects.toMatchObject({ code: "frozen", status: 410 });

  // Keys are registered anew, by possession; the same document is attested anew, and both receipts hold.
  await moved.client.keys.register({ pseudonym: "Ada" });
  const after = await moved.client.attest(document);
  expect(after.receipt.duplicate).toBe(false);
  await moved.client.keys.revoke();
  // A key is revoked where that was written, and there alone.
  const key = ada.fingerprint;
  expect((await back.keys.find(key)).status).toBe("active");
  expect((await moved.client.keys.find(key)).status).toBe("revoked");
  for (const [{ receipt }, client] of [
    [before, back],
    [after, moved.client],
  ] as const)
    expect((await client.log.entry(receipt.log_entry_id)).entry.payload).toMatchObject({
      document_hash: document.content_hash,
    });
  const shown = await cairnlog(["log", "shards", "--server", next.url, "--state", join(scratch.path, "state")]);
  expect(shown.stdout).toMatch(/^The log goes on from the 3 entries at .*\nIt has not ended\.\n$/);
  for (const data of [lastData, nextData]) {
    await (data === lastData ? last : next).stop();
    expect((await cairnlog(["fsck", "--data", data])).code).toBe(0);
  }
});

test("an operator does not go on from a log that lies, goes on elsewhere, or with a log that has entries", async () => {
  const other = await startService(join(scratch.path, `${count}-other`));
  const otherVkey = await vkeyAt(other.url);
  await freeze("--successor", "https://other.example", "--vkey", otherVkey);
  expect((await goOn(last.url)).stderr).toContain("goes on at https://other.example under the verifier key");
  const proxy = await LyingProxy.before(last.url);
  proxy.lie = (path, answer) =>
    path === "/log/shards" ? { ...answer, frozen: { ...answer.frozen, reason: "Another." } } : answer;
  expect((await goOn(proxy.url)).code).toBe(1);
  writeFileSync(keyFile, await keyOf(other.url));
  expect((await goOn(last.url)).code).toBe(1);

  const ended = await startService(join(scratch.path, `${count}-ended`));
  writeFileSync(keyFile, await keyOf(ended.url));
  const data = join(scratch.path, `${count}-ended`);
  await operator("freeze", "--data", data, "--server", ended.url, "--reason", "Nobody uses it.");
  const next = await startService(nextData);
  await newClient(next.url).client.keys.register({ pseudonym: "Early" });
  await next.stop();
  expect((await goOn(ended.url)).stderr).toContain("Only the first entry of a log says");
  for (const service of [other, ended, last]) await service.stop();
  rmSync(data, { recursive: true });
});

test("at a day the log ends by itself, though the service is away then; an old client is refused from then on", async () => {
  const clock = new SettableClock(join(scratch.path, `${count}-clock`));
  const env = { ...process.env, ...clock.environment };
  const midnight = Math.ceil(Date.now() / DAY_MS) * DAY_MS + DAY_MS;
  const day = new Date(midnight).toISOString().slice(0, 10);
  const proxy = await LyingProxy.before(last.url);
  const { client } = newClient(proxy.url);
  await client.keys.register({ pseudonym: "Ada" });
  const freezing = ["operator", "freeze", "--data", lastData, "--reason", "The year is over."];
  const args = [...freezing, "--server", proxy.url, "--as", last.url, "--json"];
  expect((await spawned([...freezing, "--at", day])).stderr).toContain("--at is for a service that runs");
  expect((await spawned([...args, "--at", "soon"])).code).toBe(2);
  const lastYear = new Date(midnight - 365 * DAY_MS).toISOString().slice(0, 10);
  const mistaken = await spawned([...args, "--at", lastYear]);
  expect(mistaken).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`--at ${lastYear}T00:00:00.000Z has long passed`),
  });
  const waiting = spawned([...args, "--at", day], { env });
  // An hour before.
  clock.set(midnight - Date.now() - 3_600_000);
  await client.attest(newManifest().document);
  expect(await client.shards.end()).toBeNull();
  let tries = 0;
  proxy.seize = (path, response) => path === "/log/freeze" && tries++ === 0 && !!response.writeHead(503).end();
  clock.set(midnight - Date.now());
  const { code, stdout, stderr } = await waiting;
  expect({ code, said: stderr.trim() }).toEqual({ code: 0, said: expect.stringContaining("answered 503") });
  expect(JSON.parse(stdout)).toMatchObject({ reason: "The year is over.", sth: { tree_size: 3 } });
  await expect(client.attest(newManifest().document)).rejects.toMatchObject({ code: "frozen", status: 410 });
  // Once more, as by a supervisor.
  expect((await spawned([...args, "--at", day], { env })).stdout).toBe(stdout);
  await last.stop();
});
