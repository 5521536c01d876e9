/** Entries in a browser: listed newest first, found, and each verified step by step. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { importEntries } from "#cairnlog/engine/index.js";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { entryHash, leafHash, parsePublicKey, verifyInclusion, verifyTreeHead } from "#cairnlog/engine/verify/index.js";
import { anyEvent, sayingEvent } from "../anyevent.js";
import { newClient } from "../client/clients.js";
import { chain } from "../log/history/entries.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { expectReadable, expectReadableEverywhere, Reader, TELEPHONE } from "./explorer.js";

const PER_PAGE = 25;
const COUNT = 61;

let service: TestService;
let fingerprint: string;
beforeAll(async () => {
  service = await startTestService();
  const author = newClient(service.url);
  fingerprint = author.fingerprint;
  await author.client.keys.register({ pseudonym: "Ada" });
  const content_hash = `sha256:${"ab".repeat(32)}`;
  await author.client.attest({ title: "On computable numbers", content_hash, tags: ["paper"] });
  const rest = Array.from({ length: COUNT - 2 }, (_, i) => {
    const tags = i % 10 ? ["nightly"] : ["nightly", "release"];
    return i % 2 ? anyEvent({ tags }) : sayingEvent(`build ${i + 3}`, { tags });
  });
  await service.server.registry.log.append(rest);
});

const numbers = async (page: Page) => (await page.locator(".entry-id").allInnerTexts()).map(Number);
const from = (newest: number, count: number) => Array.from({ length: count }, (_, i) => newest - i);

describe("the list", () => {
  test("fits every screen and every reader", () =>
    expectReadableEverywhere(service.url, "#/entries", "in the log: each entry's content"));

  test("is newest first, a page at a time, and every page is proven", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url, "#/entries");
    await page.getByText("All 25 are in the log").waitFor();
    expect(await numbers(page)).toEqual(from(COUNT, PER_PAGE));
    await page.getByRole("link", { name: "Next page" }).click();
    await page.getByRole("link", { name: "Page 2 of 3", exact: true }).and(page.locator("[aria-current]")).waitFor();
    await page.getByText("build 35").waitFor();
    expect(await numbers(page)).toEqual(from(COUNT - PER_PAGE, PER_PAGE));
    await page.getByRole("link", { name: "Page 3 of 3" }).click();
    await page.getByText("All 11 are in the log").waitFor();
    expect(await numbers(page)).toEqual(from(11, 11));
    await page.goBack();
    await page.getByText("build 35").waitFor();
    await reader.leave();
  });

  test("stands still while the log grows, and says that there is more", async () => {
    const growing = await startTestService();
    const append = (count: number) =>
      growing.server.registry.log.append(Array.from({ length: count }, () => anyEvent()));
    await append(30);
    const reader = await Reader.arrive();
    const page = await reader.open(growing.url, "#/entries");
    await page.getByText("All 25 are in the log").waitFor();
    await append(3);
    const more = page.getByRole("button", { name: "Show 3 newer" });
    await more.waitFor();
    await page.getByRole("link", { name: "Next page" }).click();
    await page.getByText("All 5 are in the log").waitFor();
    expect(await numbers(page)).toEqual(from(5, 5));
    await page.getByRole("link", { name: "Previous page" }).click();
    await more.click();
    await page.locator(".entry-id").first().and(page.getByText("33")).waitFor();
    await reader.leave();
  });

  test("is filtered by type, by tags, and by the beginning of a hash", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url, "#/entries");
    await page.getByLabel("Event type").fill("attestation_request_response");
    await page.getByLabel("Tags").fill("release,nightly");
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByText("6 entries", { exact: true }).waitFor();
    expect(await numbers(page)).toEqual([53, 43, 33, 23, 13, 3]);
    await page.getByText("content matches its hash. Nothing can prove").waitFor();
    await expectReadable(page);
    await page.getByRole("link", { name: "Show all" }).click();
    await page.getByText("All 25 are in the log").waitFor();
    const search = page.getByLabel("Hash, fingerprint, or number of an entry");
    await search.fill("ab".repeat(6));
    await search.press("Enter");
    await page.getByRole("link", { name: "Look for documents and keys that begin so" }).click();
    await page.getByText("On computable numbers").waitFor();
    await page.getByLabel("Hash, fingerprint, or number of an entry").fill("ffffffffffff");
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByText("No entry matches.").waitFor();
    await page.getByLabel("Hash, fingerprint, or number of an entry").fill("17");
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByRole("heading", { name: "Entry 17", level: 1 }).waitFor();
    await reader.leave();
  });

  test("of an empty log says so, and a page that it has not leads to its last", async () => {
    const empty = await startTestService();
    const reader = await Reader.arrive({ viewport: TELEPHONE });
    const page = await reader.open(empty.url, "#/entries");
    await page.getByText("Nothing has been recorded yet").waitFor();
    await expectReadable(page);
    const far = await reader.open(service.url, "#/entries?page=99");
    await far.getByRole("link", { name: "Go to the last page" }).click();
    await far.getByText("All 11 are in the log").waitFor();
    await reader.leave();
  });
});

describe("one entry", () => {
  test("fits every screen and every reader", () =>
    expectReadableEverywhere(service.url, "#/entries/2", "through it every earlier entry"));

  test("is proven on the screen: its hash, the one before it, its way to the signed root", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url, "#/entries/2");
    await page.getByText("through it every earlier entry").waitFor();
    const { body: entry } = await service.get("/log/2");
    const { body: proof } = await service.get("/log/proof/1");
    const making = page.getByRole("region", { name: "How its hash is made" });
    expect(await making.innerText()).toContain("service.log.entry.v2\\0");
    await making.getByRole("button", { name: `Copy computed hash ${entryHash(entry)}` }).waitFor();
    await making.getByText("They are equal.").waitFor();
    const tree = page.getByRole("region", { name: "Where it lies" });
    // Nothing is computed before somebody asks for it.
    expect(await tree.locator("svg").count()).toBe(0);
    await tree.getByText("Compute the way").click();
    await tree.getByText("They are equal: the entry is in the log.").waitFor();
    await tree.getByRole("button", { name: `Copy computed root ${proof.root_hash}` }).waitFor();
    expect(await tree.locator("svg .tree-box-computed").count()).toBe(7);
    expect(await tree.locator("svg .tree-box-proof").count()).toBe(6);
    await tree.getByText("Every hash on the path, as text").click();
    const leaf = leafHash(entry.entry_hash, 2);
    await tree.getByRole("button", { name: `Copy hash of level 0 ${leaf.slice(0, 12)}` }).waitFor();
    await page.getByText("All that was recorded, as JSON").click();
    await page.getByRole("link", { name: fingerprint }).waitFor();
    await page.getByRole("link", { name: "Next entry, 3" }).click();
    await page.getByRole("heading", { name: "Entry 3", level: 1 }).waitFor();
    await page.getByRole("link", { name: "Previous entry, 2" }).waitFor();
    await reader.leave();
  });

  test("climbs the tree level by level for readers who want motion", async () => {
    const reader = await Reader.arrive({ reducedMotion: "no-preference" });
    const page = await reader.open(service.url, "#/entries/61");
    const tree = page.getByRole("region", { name: "Where it lies" });
    // Nothing is computed before somebody asks for it.
    expect(await tree.locator("svg").count()).toBe(0);
    await tree.getByText("Compute the way").click();
    await tree.getByText("They are equal: the entry is in the log.").waitFor();
    // The last of 61 leaves is hashed with itself: it has no right neighbour.
    expect(await tree.locator("svg .tree-box-self").count()).toBe(2);
    await tree.getByRole("button", { name: "Compute again" }).click();
    await tree.getByText("computing…").waitFor();
    await tree.getByText("They are equal: the entry is in the log.").waitFor();
    await reader.leave();
  });

  test("gives a proof that verifies without the page", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url, "#/entries/2");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download the proof" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("entry-2.proof.json");
    const { entry, proof, tree_head, operator_key } = JSON.parse(readFileSync(await download.path(), "utf8"));
    const key = parsePublicKey(operator_key);
    expect(key.fingerprint).toBe(service.server.operatorFingerprint);
    expect(await verifyTreeHead(tree_head, key)).toBe(true);
    const { leaf_index: leafIndex, audit_path: auditPath } = proof;
    const { tree_size: treeSize, root_hash: rootHash, tree_version: treeVersion } = tree_head;
    expect(verifyInclusion({ leaf: entryHash(entry), leafIndex, treeSize, auditPath, rootHash, treeVersion })).toBe(
      true,
    );
    await reader.leave();
  });

  test("alone in its log is its root, and one that is not there leads to the newest", async () => {
    const single = await startTestService();
    await single.server.registry.log.append([sayingEvent("only")]);
    const reader = await Reader.arrive();
    const page = await reader.open(single.url, "#/entries/1");
    await page.getByText("Compute the way").click();
    await page.getByText("It is the only leaf, and so the root.").waitFor();
    await page.getByText("It is the first entry, so its hash covers no earlier entry.").waitFor();
    await page.getByText("They are equal: the entry is in the log.").waitFor();
    await page.goto(`${single.url}/#/entries/9`);
    await page.getByText("The log has no such entry.").waitFor();
    await expectReadable(page);
    await page.getByRole("link", { name: "entry 1" }).click();
    await page.getByRole("heading", { name: "Entry 1", level: 1 }).waitFor();
    await page.goto(`${single.url}/#/entries/one`);
    await page.getByText("is no number of an entry.").waitFor();
    await reader.leave();
  });

  test("of an imported history is proven by the rules of its version", async () => {
    const dataDir = temporaryFolder();
    const signer = openOperatorKey(join(dataDir, "operator.pem"));
    const history = chain([{ chain_version: null }, {}, { payload: { artifact: "old" } }, { chain_version: 2 }]);
    const lines = Buffer.from(history.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    await importEntries({ path: join(dataDir, "log"), signer, projection }, Readable.from([lines]));
    const imported = await startTestService({ SERVICE_DATA_DIR: dataDir });
    const reader = await Reader.arrive();
    const page = await reader.open(imported.url, "#/entries");
    await page.getByText("All 4 are in the log").waitFor();
    for (const [id, version, bytes] of [
      [1, 1, '{"n":0}'],
      [3, 1, `{"artifact":"old"}${history[1]!.entry_hash}`],
      [4, 2, "service.log.entry.v2\\0"],
    ] as const) {
      await page.goto(`${imported.url}/#/entries/${id}`);
      await page.getByRole("heading", { name: `Entry ${id}`, level: 1 }).waitFor();
      const making = page.getByRole("region", { name: "How its hash is made" });
      await making.getByText(`version ${version}`).waitFor();
      expect((await making.locator("pre").innerText()).startsWith(bytes)).toBe(true);
      await making.getByRole("button", { name: `Copy computed hash ${history[id - 1]!.entry_hash}` }).waitFor();
      await page.getByText("Compute the way").click();
      await page.getByText("They are equal: the entry is in the log.").waitFor();
      await page
        .getByText(version === 1 ? "In version 1, the hash covers neither" : "hash does not cover the event type")
        .waitFor();
      const words = version === 1 ? /was recorded, at a time that no hash covers/ : /was recorded on/;
      await page.locator("main .verdict", { hasText: words }).waitFor();
    }
    await reader.leave();
  });

  test("in a gap of imported ids does not exist and raises no alarm; only later entries are new", async () => {
    const dataDir = temporaryFolder();
    const signer = openOperatorKey(join(dataDir, "operator.pem"));
    const lines = chain([{ id: 3 }, { id: 10 }, { id: 20 }]).map((entry) => `${JSON.stringify(entry)}\n`);
    await importEntries({ path: join(dataDir, "log"), signer, projection }, Readable.from(lines.map(Buffer.from)));
    const imported = await startTestService({ SERVICE_DATA_DIR: dataDir });
    const reader = await Reader.arrive();
    const page = await reader.open(imported.url);
    await page.locator(".entry").nth(2).waitFor();
    expect(await page.locator(".entry-new").count()).toBe(0);
    await imported.server.registry.log.append([sayingEvent("joined")]);
    await page.locator(".entry-new").getByText("joined").waitFor();
    expect(await page.locator(".entry-new").count()).toBe(1);
    // Before a gap, in it, and past the number of leaves.
    for (const id of [1, 4, 15]) {
      await page.goto(`${imported.url}/#/entries/${id}`);
      await page.getByRole("heading", { name: `No entry ${id}` }).waitFor();
      await page.getByRole("link", { name: "entry 21" }).waitFor();
    }
    expect(await page.getByRole("alert").count()).toBe(0);
    await reader.leave();
  });

  test("beside which the service lists others than those of the tree is caught", async () => {
    const reader = await Reader.arrive();
    await reader.context.route(/\/api\/v1\/log\?/, async (route) => {
      const response = await route.fetch();
      const page = await response.json();
      // Valid entries in another order.
      await route.fulfill({ response, json: { ...page, entries: page.entries.reverse() } });
    });
    const page = await reader.open(service.url, "#/entries/7");
    await page
      .getByRole("alert", { name: "Alarm" })
      .getByText("The service lists an entry 7 that differs from the one that it shows.")
      .waitFor();
    await reader.leave();
  });

  test("with changed content is detected, in the list and on its own page", async () => {
    for (const address of ["#/entries", "#/entries/2"]) {
      const reader = await Reader.arrive();
      await reader.context.route(/\/api\/v1\/log(?:\?|\/2$)/, async (route) => {
        const response = await route.fetch();
        const body = (await response.text())
          .replaceAll("build 59", "build 59O")
          .replaceAll("On computable", "Un computable");
        await route.fulfill({ response, body });
      });
      const page = await reader.open(service.url, address);
      const alarm = page.getByRole("alert", { name: "Alarm" });
      await alarm.getByText("does not hash to its entry_hash").waitFor();
      expect(await page.getByText(/build 59O|Un computable/).count()).toBe(0);
      await reader.leave();
    }
  });
});

test("a payload that is withheld is listed and shown as withheld, by a few requests", async () => {
  const own = await startTestService();
  const { receipt } = await newClient(own.url).client.attest({
    title: "Quittengelee",
    content_hash: `sha256:${"cd".repeat(32)}`,
  });
  const said = { reason: "An order.", basis: null };
  const { log_entry_id: by } = await withhold(own.server.registry, receipt.log_entry_id, said);
  const reader = await Reader.arrive();
  const page = await reader.open(own.url, "#/entries");
  let asked = 0;
  page.on("request", () => asked++);
  await page.getByText("All 3 are in the log").waitFor();
  await page.getByText(`Withheld by the operator, as entry ${by} says`).waitFor();
  await page.goto(`${own.url}/#/entries/${receipt.log_entry_id}`);
  await page.locator("main .verdict-open").getByText(`withholds what it says: entry ${by}.`).waitFor();
  expect(asked).toBeLessThan(60);
  await reader.leave();
});

test("a name that is withheld is shown nowhere, and what else is shown of its entry is the operator's word", async () => {
  const own = await startTestService();
  const holder = newClient(own.url);
  const { log_entry_id: id } = await holder.client.keys.register({ pseudonym: "Zwetschgenkuchen" });
  const said = { reason: "Asked by its holder.", basis: null, member: "pseudonym" } as const;
  const { log_entry_id: by } = await withhold(own.server.registry, id, said);
  const reader = await Reader.arrive();
  const page = await reader.open(own.url, `#/entries/${id}`);
  await page
    .locator("main .verdict-open")
    .getByText(`withholds the name in it; all else is his word: entry ${by}.`)
    .waitFor();
  await page.getByText("has the hash of all that is shown here").waitFor();
  await page.goto(`${own.url}/#/keys/${holder.fingerprint}`);
  await page.locator("main .verdict-open").getByText(`The operator withholds the name of this key`).waitFor();
  for (const address of [`#/entries/${id}`, `#/keys/${holder.fingerprint}`, "#/keys", "#/entries"]) {
    await page.goto(`${own.url}/${address}`);
    await page.locator("main h1").waitFor();
    await page
      .getByText(/withh(?:eld|olds)/i)
      .first()
      .waitFor();
    expect(await page.getByText("Zwetschgenkuchen").count(), address).toBe(0);
    expect(await page.locator("main .verdict-bad").count(), address).toBe(0);
  }
  await reader.leave();
});
