/**
 * A service that lies to the reader: each lie is reported, no false data is shown as verified, and the saved evidence
 * proves the lie offline.
 */

import { generateKeyPairSync, sign } from "node:crypto";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import {
  checkEntry,
  type Entry,
  entryHash,
  type InclusionProof,
  parsePublicKey,
  type TreeHead,
  treeHeadMessage,
  verifyInclusion,
  verifyTreeHead,
} from "#cairnlog/engine/verify/index.js";
import type { Evidence } from "#cairnlog/server/client/index.js";
import { sayingEvent } from "../anyevent.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { expectReadable, Reader } from "./explorer.js";

const COUNT = 30;

const append = ({ server }: TestService, artifact: string, count = COUNT) =>
  server.registry.log.append(Array.from({ length: count }, (_, i) => sayingEvent(`${artifact} ${i + 1}`)));

let honest: TestService;
/** A log with the same operator key and size, and other entries. */
let twin: TestService;
beforeAll(async () => {
  const [one, other] = [temporaryFolder(), temporaryFolder()];
  honest = await startTestService({ SERVICE_DATA_DIR: one });
  copyFileSync(join(one, "operator.pem"), join(other, "operator.pem"));
  twin = await startTestService({ SERVICE_DATA_DIR: other });
  await append(honest, "true");
  await append(twin, "forged");
});

// biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
type Json = any;

/** Changes the answers of the API whose path (with its query) matches. */
async function lie(reader: Reader, path: RegExp, change: (answer: Json) => Json): Promise<void> {
  await reader.context.route("**/api/v1/**", async (route) => {
    const { pathname, search } = new URL(route.request().url());
    if (!path.test(pathname.replace("/api/v1", "") + search)) return route.fallback();
    const response = await route.fetch();
    return route.fulfill({ response, json: change(await response.json()) });
  });
}

/** Makes the service answer 404. */
const deny = (reader: Reader, path: string) =>
  reader.context.route(`**/api/v1${path}`, (route) =>
    route.fulfill({
      status: 404,
      contentType: "application/problem+json",
      json: { type: "about:blank", title: "Not found", status: 404, code: "not-found", detail: "There is none." },
    }),
  );

/** Waits for an alarm with the text `words`. @returns the evidence that the reader saves from it */
async function evidenceOf(page: Page, words: string): Promise<Evidence> {
  const alarm = page.getByRole("alert", { name: "Alarm" });
  await alarm.getByText(words).waitFor();
  expect(await page.getByRole("banner").innerText()).toContain("Log not verified");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    alarm.getByRole("button", { name: "Save the evidence" }).click(),
  ]);
  return JSON.parse(readFileSync(await download.path(), "utf8")) as Evidence;
}

/** Asserts that nothing in the page is shown as verified. */
const expectNoTick = async (page: Page) =>
  expect(
    await page.locator("main .check-good, main .verdict-good").allInnerTexts(),
    await page.locator("main").innerText(),
  ).toEqual([]);

/** An entry with other content and the hashes of that content. */
function rewritten(entry: Entry): Entry {
  const changed = { ...entry, payload: { ...entry.payload, reason: "forged" } };
  const hash = entryHash(changed);
  return {
    ...changed,
    entry_hash: hash,
    entry_hashes: [{ algorithm: "sha2-256", digest_hex: hash, is_primary: true }],
  };
}

/** Whether the head is signed and the proof leads to it. */
async function holds({ operatorKey: pem, shown }: Evidence, proof: InclusionProof): Promise<boolean> {
  const { leaf_index: leafIndex, audit_path: auditPath, entry_hash: leaf } = proof;
  const { tree_size: treeSize, root_hash: rootHash, tree_version: treeVersion } = shown!;
  return (
    (await verifyTreeHead(shown!, parsePublicKey(pem))) &&
    verifyInclusion({ leaf, leafIndex, treeSize, auditPath, rootHash, treeVersion })
  );
}

describe("about the head", () => {
  const forger = generateKeyPairSync("ed25519").privateKey;
  const forgeries: [string, (head: TreeHead) => TreeHead][] = [
    ["with another root", (head) => ({ ...head, root_hash: "ab".repeat(32) })],
    ["with another size", (head) => ({ ...head, tree_size: head.tree_size + 1 })],
    [
      "signed by another key",
      (head) => ({
        ...head,
        signature: sign(null, treeHeadMessage(head.root_hash, head.tree_size, head.timestamp), forger).toString(
          "base64",
        ),
      }),
    ],
  ];
  test.each(forgeries)("%s: it is not accepted, on the first visit or later", async (_, forge) => {
    const reader = await Reader.arrive();
    await lie(reader, /^\/log\/sth$/, forge);
    const page = await reader.open(honest.url);
    const { known, shown, operatorKey: pem } = await evidenceOf(page, "is not signed by the pinned operator key");
    expect(known).toBeNull();
    expect(parsePublicKey(pem).fingerprint).toBe(honest.server.operatorFingerprint);
    expect(await verifyTreeHead(shown!, parsePublicKey(pem))).toBe(false);
    await page.getByText("No head of this log has been verified before.").waitFor();
    await page.getByText("Nothing is listed during an alarm.").waitFor();
    await expectNoTick(page);
    expect(await page.locator("main").innerText()).not.toContain(shown!.root_hash);
    await page.getByRole("link", { name: "Entries", exact: true }).click();
    await page.getByText("Nothing is listed during an alarm.").waitFor();
    await expectNoTick(page);
    // A button under the pointer has other colours.
    for (const name of ["Save the evidence", "Dismiss the alarm"]) {
      await page.getByRole("button", { name }).hover();
      await expectReadable(page);
    }
    await reader.leave();
  });

  test("of the same size as the last one seen, signed by the same key: the two convict the operator", async () => {
    const reader = await Reader.arrive();
    const first = await reader.open(honest.url);
    await first.getByText("First visit.").waitFor();
    await first.close();
    const { body: other } = await twin.get("/log/sth");
    await lie(reader, /^\/log\/sth$/, () => other);
    const page = await reader.open(honest.url);
    const { operatorKey: pem, known, shown } = await evidenceOf(page, `two different tree heads of size ${COUNT}`);
    expect([known!.tree_size, shown!.tree_size]).toEqual([COUNT, COUNT]);
    expect(known!.root_hash).not.toBe(shown!.root_hash);
    for (const head of [known!, shown!]) expect(await verifyTreeHead(head, parsePublicKey(pem))).toBe(true);
    await page.getByText("This is the last head that was verified.").waitFor();
    await expectNoTick(page);
    expect(await page.locator("main").innerText()).not.toContain(shown!.root_hash);
    await reader.leave();
  });
});

describe("about its key", () => {
  test("shown beside heads of the old one: both are named, and both are in the evidence", async () => {
    const stranger = await startTestService();
    const reader = await Reader.arrive();
    const first = await reader.open(honest.url);
    await first.getByText("First visit.").waitFor();
    await first.close();
    const { body: other } = await stranger.get("/log/operator-key");
    await lie(reader, /^\/log\/operator-key$/, () => other);
    const page = await reader.open(honest.url);
    const { operatorKey: pem, known, shown } = await evidenceOf(page, "an operator key that is not the one");
    expect(parsePublicKey(pem).fingerprint).toBe(honest.server.operatorFingerprint);
    expect(await page.getByRole("alert", { name: "Alarm" }).innerText()).toContain(other.fingerprint);
    for (const head of [known!, shown!]) {
      expect(await verifyTreeHead(head, parsePublicKey(pem))).toBe(true);
      expect(await verifyTreeHead(head, parsePublicKey(other.public_key))).toBe(false);
    }
    await reader.leave();
  });
});

/** Tells a lie about entry 7 in a list. */
const listing =
  (change: (entry: Entry) => Entry) =>
  (answer: Json): Json => ({
    ...answer,
    entries: answer.entries.map((entry: Entry) => (entry.id === 7 ? change(entry) : entry)),
  });
const without7 = (answer: Json): Json => ({
  ...answer,
  entries: answer.entries.filter(({ id }: Entry) => id !== 7),
});

describe("about an entry", () => {
  test("rewritten under its old hash: its content is not shown, and anybody can hash it again", async () => {
    const reader = await Reader.arrive();
    await lie(
      reader,
      /^\/log\?/,
      listing((entry) => ({ ...entry, payload: { ...entry.payload, reason: "forged" } })),
    );
    const page = await reader.open(honest.url, "#/entries/7");
    const { entry } = await evidenceOf(page, "does not hash to its entry_hash");
    expect(checkEntry(entry!).length).toBeGreaterThan(0);
    expect(entry!.payload).toMatchObject({ reason: "forged" });
    await expectNoTick(page);
    expect(await page.locator("main").innerText()).not.toContain("forged");
    await reader.leave();
  });

  test("rewritten with its hash: no proof leads from it to the signed root", async () => {
    const reader = await Reader.arrive();
    await lie(reader, /^\/log\?/, listing(rewritten));
    const page = await reader.open(honest.url, "#/entries/7");
    const evidence = await evidenceOf(page, "Entry 7, as the service lists it, is not in the signed tree.");
    const { entry, proof } = evidence as { entry: Entry; proof: InclusionProof };
    expect(checkEntry(entry)).toEqual([]);
    expect(await holds(evidence, { ...proof, entry_hash: entry.entry_hash })).toBe(false);
    expect(await holds(evidence, proof)).toBe(true);
    await expectNoTick(page);
    expect(await page.locator("main").innerText()).not.toContain("forged");
    await reader.leave();
  });

  test("denied although it is listed, once it is asked for alone: the page proves that it exists", async () => {
    const reader = await Reader.arrive();
    await deny(reader, "/log/7");
    await lie(reader, /^\/log\?.*per_page=(?!1&)/, without7);
    const page = await reader.open(honest.url, "#/entries/7");
    const evidence = await evidenceOf(page, "The service says that entry 7 does not exist, but it is in its log.");
    const { entry, proof } = evidence as { entry: Entry; proof: InclusionProof };
    expect([entry.id, proof.leaf_index, proof.entry_hash]).toEqual([7, 6, entryHash(entry)]);
    expect(await holds(evidence, proof)).toBe(true);
    expect(await page.getByText("The log has no such entry.").count()).toBe(0);
    await expectReadable(page);
    await reader.leave();
  });

  test("denied before it was recorded and shown afterwards: this is not a lie", async () => {
    const growing = await startTestService();
    await append(growing, "true", 2);
    const reader = await Reader.arrive();
    let recorded: Promise<unknown> | undefined;
    // The page requests the entry and its proof together. Neither is answered before the entry exists.
    await reader.context.route(/\/log\/3(?:\/proof)?$/, async (route) => {
      const response = await route.fetch();
      if (response.status() === 404) {
        recorded ??= append(growing, "late", 1);
        await recorded;
      }
      await route.fulfill({ response });
    });
    const page = await reader.open(growing.url, "#/entries/3");
    await page.getByRole("region", { name: "Verified in this page" }).getByText("It is leaf 2").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    await reader.leave();
  });

  test("denied in the list too: the list has fewer than the tree", async () => {
    const reader = await Reader.arrive();
    await deny(reader, "/log/7");
    await lie(reader, /^\/log\?/, without7);
    const page = await reader.open(honest.url, "#/entries/7");
    const evidence = await evidenceOf(page, "The service lists fewer entries than the signed tree has leaves.");
    const proof = evidence.proof as InclusionProof;
    expect([proof.leaf_index, evidence.entry]).toEqual([6, null]);
    expect(await holds(evidence, proof)).toBe(true);
    await reader.leave();
  });
});

describe("about a list", () => {
  const LISTS: [string, (entries: Entry[]) => Entry[], string][] = [
    ["from whose middle an entry is missing", (all) => all.toSpliced(9, 1), "does not follow the entry before it."],
    ["whose newest is missing", (all) => all.slice(0, -1), "fewer entries than the signed tree has leaves"],
    ["in which one stands for another", (all) => all.toSpliced(9, 1, all[12]!), "does not follow the entry before it."],
  ];
  test.each(LISTS)("%s", async (_, change, words) => {
    const reader = await Reader.arrive();
    await lie(reader, /^\/log\?/, (answer) => ({ ...answer, entries: change(answer.entries) }));
    const page = await reader.open(honest.url, "#/entries");
    const evidence = await evidenceOf(page, words);
    const proof = evidence.proof as InclusionProof;
    expect(await holds(evidence, proof)).toBe(true);
    // The listed entry claims a place at which the tree has another one.
    expect(evidence.entry!.entry_hash).not.toBe(proof.entry_hash);
    await expectNoTick(page);
    expect(await page.locator(".entry").count()).toBe(0);
    await reader.leave();
  });

  test("of another log of the same key, whole in itself: it does not end where the tree does", async () => {
    const reader = await Reader.arrive();
    await reader.context.route(/\/api\/v1\/log\?/, async (route) => {
      const { pathname, search } = new URL(route.request().url());
      await route.fulfill({ response: await route.fetch({ url: twin.url + pathname + search }) });
    });
    for (const address of ["#/entries", "#/"]) {
      const page = await reader.open(honest.url, address);
      const evidence = await evidenceOf(page, "are not in the signed tree");
      const proof = evidence.proof as InclusionProof;
      expect(checkEntry(evidence.entry!)).toEqual([]);
      expect(await holds(evidence, proof)).toBe(true);
      expect(evidence.entry!.entry_hash).not.toBe(proof.entry_hash);
      expect(await page.getByText("forged").count()).toBe(0);
      await page.close();
    }
    await reader.leave();
  });

  test("of neighbours: the entry before is not the one that the hash covers", async () => {
    const reader = await Reader.arrive();
    await lie(reader, /^\/log\?/, (answer) => ({
      ...answer,
      entries: answer.entries.map((entry: Entry) => (entry.id === 6 ? rewritten(entry) : entry)),
    }));
    const page = await reader.open(honest.url, "#/entries/7");
    const evidence = await evidenceOf(page, "Entry 7 does not follow the entry before it.");
    const { entry, proof } = evidence as { entry: Entry; proof: InclusionProof };
    expect([entry.id, proof.leaf_index]).toEqual([6, 5]);
    expect(await holds(evidence, proof)).toBe(true);
    expect(entry.entry_hash).not.toBe(proof.entry_hash);
    await page.locator("main .check-bad").getByText("Entry 7 does not follow").waitFor();
    await reader.leave();
  });
});
