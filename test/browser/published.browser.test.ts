/** The explorer beside published entries, from a plain web server that knows no ranges: what it proves, and what it cannot do. */
import { copyFileSync, cpSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { asSigner, newClient } from "../client/clients.js";
import { LiveLog, listening } from "../publishing/logs.js";
import { startTestService, temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner, sha256 } from "../server/signers.js";
import { cairnlog } from "../service.js";
import { newNoteSigner } from "../verify/note/notes.js";
import { expectReadable, expectReadableEverywhere, Reader } from "./explorer.js";

const [ada, bob] = [newSigner(), newSigner("ecdsa-p256")];
const CONTENT = "a report that two have signed";
const ABOUT = { ...newManifest(), document: { title: "A report", content_hash: `sha256:${sha256(CONTENT)}` } };
const TYPES: Readonly<Record<string, string>> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

/** Serves a folder below a path, as `python3 -m http.server` does: no ranges, no headers but the type. */
async function served(folder: string, asked: string[] = []): Promise<string> {
  const below = "/copies/of/logs/";
  const url = await listening(
    createServer((request, response) => {
      const path = request.url!.startsWith(below) ? request.url!.slice(below.length) || "index.html" : "/";
      asked.push(path);
      readFile(join(folder, path)).then(
        (bytes) => response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "image/svg+xml" }).end(bytes),
        () => response.writeHead(404).end(),
      );
    }),
  );
  return url + below.slice(0, -1);
}

const publish = async (log: Pick<LiveLog, "url">, target: string, ...more: string[]) =>
  expect(await cairnlog(["publish", log.url, target, "--entries", ...more])).toMatchObject({ code: 0 });
const copyOf = (folder: string) => {
  const copy = temporaryFolder();
  cpSync(folder, copy, { recursive: true });
  return copy;
};
const verdict = (page: Page, kind: string) => page.locator(`main .verdict-${kind}`);

let log: LiveLog;
let folder: string;
let vkey: string;
let ids: readonly number[];
const [directory, other] = [temporaryFolder(), temporaryFolder()];
beforeAll(async () => {
  log = await LiveLog.start(3, { SERVICE_DATA_DIR: directory });
  await log.register(ada, "Ada");
  const first = await log.attest(ada, ABOUT);
  await log.grow(290);
  ids = [first, await log.attest(bob, ABOUT)];
  await log.grow(300);
  vkey = await log.vkey();
  folder = temporaryFolder();
  await publish(log, folder);
});

test("the pages fit every screen and every reader", async () => {
  const url = await served(folder);
  await expectReadableEverywhere(url, "#/", "The log of 300 entries is verified");
  await expectReadableEverywhere(url, `#/entries/${ids[0]}`, "and the signature fits");
  await expectReadableEverywhere(url, `#/keys/${ada.fingerprint}`, "The log proves that this key was recorded");
});

test("entries are listed, newest first, and each is proven by the checkpoint, with the files of the folder alone", async () => {
  const asked: string[] = [];
  const reader = await Reader.arrive();
  const page = await reader.open(await served(folder, asked), "#/entries");
  await verdict(page, "good").getByText("and each is in the tree of the signed checkpoint").waitFor();
  const shown = () => page.locator(".entry-id").allInnerTexts();
  expect(await shown()).toEqual(Array.from({ length: 25 }, (_, i) => String(300 - i)));
  await page.getByRole("link", { name: "Page 12 of 12" }).click();
  await page.getByText(`Entry ${ids[0]}: `).waitFor({ state: "attached" });
  expect(await shown()).toEqual(Array.from({ length: 25 }, (_, i) => String(25 - i)));
  await page.locator(".entry-subject", { hasText: `Entry ${ids[0]}: ` }).click();
  await verdict(page, "good").getByText("and the signature fits").waitFor();
  expect(await verdict(page, "good").innerText()).toContain("attested A report as author.");
  await page.getByText("Compute the way from this entry up to the signed root").click();
  await page.getByText("They are equal: the entry is in the log.").waitFor();
  await page.getByText("Its hash covers that of entry 4").waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download for other tools (.tlog-proof)" }).click(),
  ]);
  const report = join(temporaryFolder(), "report");
  writeFileSync(report, CONTENT);
  const proof = await download.path();
  expect(await cairnlog(["verify", report, "--proof", proof, "--vkey", vkey])).toMatchObject({ code: 0 });
  await page.getByRole("link", { name: "every entry about it" }).click();
  await expect.poll(shown).toEqual(ids.map(String).reverse());
  await page.goto(`${page.url().split("#")[0]}#/entries/301`);
  await verdict(page, "open").getByText("says that there is no entry 301. Nothing proves that.").waitFor();
  expect(
    asked.filter((path) => !/^(index\.html|explorer\/.*|checkpoint|vkey|(tile|entries|index|log)\/.*)$/.test(path)),
  ).toEqual([]);
  await reader.leave();
});

test("a file that is dropped shows who signed it, and one that nobody signed shows that", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(await served(folder), "#/file");
  const drop = (content: string) =>
    page
      .locator('input[type="file"]')
      .setInputFiles({ name: "report.txt", mimeType: "text/plain", buffer: Buffer.from(content) });
  await drop(CONTENT);
  await verdict(page, "good").getByText("This file was signed by").waitFor();
  const said = await verdict(page, "good").innerText();
  for (const { fingerprint } of [ada, bob]) expect(said).toContain(fingerprint.slice("sha256:".length).slice(0, 8));
  expect(said).toContain("Ada");
  await expectReadable(page);
  expect(await page.getByText("Sign it").count()).toBe(0);
  await drop("nobody");
  await verdict(page, "open").getByText("The index of these files says that nobody has signed this file").waitFor();
  await reader.leave();
});

test("a key is shown with the entries about it; what needs the service is said", async () => {
  const reader = await Reader.arrive();
  const url = await served(folder);
  const page = await reader.open(url, `#/keys/${ada.fingerprint}`);
  await verdict(page, "open").getByText("nothing there shows that its holder wanted it").waitFor();
  await page.getByText("registered a key").waitFor();
  await page.getByText("they need the service").waitFor();
  await page.goto(`${url}/#/operator`);
  await page.getByText("These files have no such page: it needs the service.").waitFor();
  expect(await page.getByRole("navigation", { name: "Views" }).getByRole("link").allInnerTexts()).toEqual([
    "Head",
    "Entries",
    "File",
  ]);
  await page.goto(`${url}/#/entries?search=report`);
  await page.getByText("Words, tags, types and beginnings of hashes need the service.").waitFor();
  await page.goto(`${url}/#/`);
  await page.getByRole("region", { name: "What these files cannot do" }).waitFor();
  await reader.leave();
});

test("a key is what the entries about it say: named by itself, succeeded, revoked", async () => {
  const own = await LiveLog.start(0);
  const [first, lost, next] = [newClient(own.service.url), newClient(own.service.url), newSigner()];
  for (const { client, signer } of [first, lost]) {
    // A stranger was faster.
    await own.register(signer, "Mallory");
    await client.keys.register({ pseudonym: "Countess" });
    await client.attest({ title: "Notes", content_hash: sha256(CONTENT) });
  }
  await first.client.keys.succeed(asSigner(next), { pseudonym: "Heir" });
  await lost.client.keys.revoke();
  await own.service.checkpointed(8);
  const target = temporaryFolder();
  await publish(own, target);
  const reader = await Reader.arrive();
  const url = await served(target);
  const page = await reader.open(url);
  for (const [fingerprint, name, finding, words] of [
    [first.fingerprint, "Countess", "open", "The index of these files says that the key is succeeded."],
    [lost.fingerprint, "Countess", "open", "The index of these files says that the key is revoked."],
    [next.fingerprint, "Heir", "holds", "its holder has signed that."],
  ] as const) {
    await page.goto(`${url}/#/keys/${fingerprint}`);
    await page.getByRole("heading", { level: 1, name }).waitFor();
    await verdict(page, finding === "holds" ? "good" : "open")
      .getByText(words)
      .waitFor();
  }
  await page.goto(`${url}/#/entries/6`);
  await verdict(page, "open").getByText("but the index of these files says that the key was revoked").waitFor();
  await reader.leave();
});

test("the end of the log is shown, and in whose names the checkpoint is cosigned, which nobody can check here", async () => {
  const [data, target] = [temporaryFolder(), temporaryFolder()];
  const own = await LiveLog.start(5, { SERVICE_DATA_DIR: data });
  const freeze = ["operator", "freeze", "--data", data, "--server", own.service.url, "--reason", "The year is over."];
  const successor = ["--successor", "https://next.example", "--vkey", newNoteSigner("next.example").vkey];
  expect(await cairnlog([...freeze, ...successor])).toMatchObject({ code: 0 });
  await own.service.checkpointed(6);
  await publish(own, target);
  const note = readFileSync(join(target, "checkpoint"), "utf8");
  const line = `— witness.example ${Buffer.alloc(76, 7).toString("base64")}\n`;
  writeFileSync(join(target, "checkpoint"), note + line);
  const reader = await Reader.arrive();
  const page = await reader.open(await served(target));
  const end = page.getByRole("region", { name: "This log has ended" });
  await end.getByText("The year is over.").waitFor();
  await end.getByRole("link", { name: "https://next.example" }).waitFor();
  const checkpoint = page.getByRole("region", { name: "Checkpoint and witnesses" });
  await checkpoint.getByText("1 not checked").waitFor();
  await checkpoint.getByRole("row", { name: "witness.example" }).getByText("Not checked").waitFor();
  await reader.leave();
});

test("a payload that is withheld is not shown, and the entry is proven without it", async () => {
  const own = await LiveLog.start(0);
  const id = await own.attest(ada, ABOUT);
  const said = { reason: "An order of a court.", basis: null };
  const { log_entry_id: by } = await withhold(own.service.server.registry, id, said);
  await own.service.checkpointed(by);
  const target = temporaryFolder();
  await publish(own, target);
  const reader = await Reader.arrive();
  const page = await reader.open(await served(target), `#/entries/${id}`);
  await verdict(page, "open").getByText(`the operator withholds what it says: entry ${by}.`).waitFor();
  expect(await page.getByText("A report").count()).toBe(0);
  await page.getByRole("link", { name: `entry ${by}` }).click();
  await page.getByText("An order of a court.").first().waitFor();
  await reader.leave();
});

describe("what was verified is remembered", () => {
  test("an empty log, which is handed to another operator key when it has grown, goes on", async () => {
    const [data, target] = [temporaryFolder(), temporaryFolder()];
    const settings = { SERVICE_DATA_DIR: data };
    const before = await LiveLog.start(0, settings);
    await before.service.checkpointed(0);
    await publish(before, target);
    const reader = await Reader.arrive();
    const page = await reader.open(await served(target));
    await verdict(page, "open").getByText("there is nothing to verify yet").waitFor();
    await expectReadable(page);
    await before.grow(3);
    await publish(before, target);
    await page.reload();
    await verdict(page, "good").getByText("The log of 3 entries is verified").waitFor();
    const first = await before.vkey();
    await before.service.close();
    const next = join(temporaryFolder(), "next.pem");
    writeFileSync(next, generatePrivateKey("ed25519"), { mode: 0o600 });
    expect(await cairnlog(["operator", "rotate", "--to", next, "--data", data])).toMatchObject({ code: 0 });
    const after = await startTestService(settings);
    await after.checkpointed(4);
    const policy = join(temporaryFolder(), "policy");
    writeFileSync(policy, `log ${first}\nlog ${(await after.send("GET", "/tlog/vkey")).text.trim()}\nquorum none\n`);
    await publish({ url: `${after.url}/tlog` }, target, "--policy", policy);
    await page.reload();
    await verdict(page, "good").getByText("The log of 4 entries is verified").waitFor();
    await page.getByText("Each key has signed that the next one follows it").waitFor();
    await page.getByText("Nothing has been rewritten").waitFor();
    await reader.leave();
  });

  test("a log that grew goes on from it; a smaller one is not shown as the newest", async () => {
    const target = copyOf(folder);
    const reader = await Reader.arrive();
    const url = await served(target);
    const page = await reader.open(url);
    await verdict(page, "good").waitFor();
    await log.grow(310);
    await publish(log, target);
    await verdict(page, "good").getByText("The log of 310 entries is verified").waitFor();
    await page.reload();
    await page.getByText("Nothing has been rewritten").waitFor();
    copyFileSync(join(folder, "checkpoint"), join(target, "checkpoint"));
    await page.reload();
    const bar = page.getByRole("region", { name: "Connection" });
    await bar.getByText("this browser has verified one of 310 before").waitFor();
    await reader.leave();
  });

  test.each([
    ["that was rewritten under its own keys", true, "it was rewritten"],
    ["of other keys", false, "another operator key than the one that this browser pinned"],
    ["whose checkpoints another key signs, as if for the same operator", false, "another key of its checkpoints"],
  ])("a log %s raises the alarm", async (_, hasItsKeys, sentence) => {
    const place = hasItsKeys ? other : temporaryFolder();
    if (hasItsKeys) copyFileSync(join(directory, "operator.pem"), join(other, "operator.pem"));
    const twin = await LiveLog.start(400, { SERVICE_DATA_DIR: place });
    const target = copyOf(folder);
    const reader = await Reader.arrive();
    const page = await reader.open(await served(target));
    await verdict(page, "good").waitFor();
    // The page looks from time to time, and keeps the first alarm: it must not see half of a change.
    const changed = temporaryFolder();
    await publish(twin, changed);
    if (sentence.includes("checkpoints")) cpSync(join(folder, "log"), join(changed, "log"), { recursive: true });
    rmSync(target, { recursive: true });
    renameSync(changed, target);
    await page.reload();
    const alarm = page.getByRole("alert", { name: "Alarm" });
    await alarm.getByText(sentence).waitFor();
    await verdict(page, "bad").waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      alarm.getByRole("button", { name: "Save the evidence" }).click(),
    ]);
    expect(JSON.parse(readFileSync(await download.path(), "utf8"))).toMatchObject({
      known: { tree_size: 300, vkey, checkpoint: readFileSync(join(folder, "checkpoint"), "utf8") },
    });
    await reader.leave();
  });
});

test("a number that a web server leaves out is not proven to be none", async () => {
  const target = copyOf(folder);
  const path = join(target, "entries", "000");
  const lines = gunzipSync(readFileSync(path)).toString();
  // The next bundle begins with this number.
  writeFileSync(path, gzipSync(lines.replace('{"id":256,', '{"id":257,')));
  const reader = await Reader.arrive();
  const page = await reader.open(await served(target), "#/entries/256");
  await page.getByRole("heading", { name: "No entry 256", level: 1 }).waitFor();
  await page.locator("main .verdict").waitFor();
  expect(await verdict(page, "good").allInnerTexts()).toEqual([]);
  await reader.leave();
});

test("an entry that is not the one in the tree is not shown: the page raises the alarm", async () => {
  const target = copyOf(folder);
  const path = join(target, "entries", "000");
  writeFileSync(path, gzipSync(gunzipSync(readFileSync(path)).toString().replace('"A report"', '"A retort"')));
  const reader = await Reader.arrive();
  const page = await reader.open(await served(target), `#/entries/${ids[0]}`);
  await page.getByRole("alert", { name: "Alarm" }).waitFor();
  await verdict(page, "bad").waitFor();
  expect(await page.getByText("A retort").count()).toBe(0);
  await reader.leave();
});
