/** Payloads that are withheld after they were published: taken out of bundles and index, whatever the publisher's end. */
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { beforeAll, expect, test } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { openStaticLog } from "#cairnlog/server/client/static/log.js";
import { cairnlog } from "../cli/harness.js";
import { startTestService, temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner, sha256, type TestManifest } from "../server/signers.js";
import { expectEntries } from "./entries.js";
import { expectWhole, LiveLog, served } from "./logs.js";

const TITLE = "Zwetschgenkuchen";
const NAME = "Holundergelee";
const ada = newSigner();
const content = "What a court has ordered to be taken back.";
const manifest: TestManifest = {
  document: { title: TITLE, content_hash: `sha256:${sha256(content)}` },
  attestations: [],
};
const secret = manifest.document.content_hash.slice("sha256:".length);

let log: LiveLog;
/** The log with the payload, and the same folder after it was withheld. */
const [before, after] = [temporaryFolder(), temporaryFolder()];
let withheld: number;
/** What somebody has kept of its receipt: the entry. */
let receipt: { readonly entry: Entry };
const reader = (folder: string) => (path: string) => readFile(join(folder, path)).catch(() => undefined);
const publish = (target: string, ...args: string[]) => cairnlog(["publish", log.url, target, "--entries", ...args]);

beforeAll(async () => {
  log = await LiveLog.start(200);
  await log.register(ada, NAME);
  withheld = await log.attest(ada, manifest);
  receipt = { entry: log.service.server.registry.log.entry(withheld)! };
  await log.attest(ada, newManifest("Another"));
  await log.grow(250);
  expect(await publish(before)).toMatchObject({ code: 0 });
  await log.grow(300);
  expect(await publish(before)).toMatchObject({ code: 0 });
  cpSync(before, after, { recursive: true });
  const said = { reason: "An order.", basis: null };
  const { registry } = log.service.server;
  expect((await withhold(registry, withheld, said)).log_entry_id).toBe(301);
  expect((await withhold(registry, 201, { ...said, member: "pseudonym" })).log_entry_id).toBe(302);
  await log.service.checkpointed(302);
  expect(await publish(after)).toMatchObject({ code: 0, stderr: "" });
});

/** Files below a folder, as their readers see them, that say something of what is withheld. */
function showing(folder: string, path = ""): string[] {
  return readdirSync(join(folder, path)).flatMap((name) => {
    const file = join(path, name);
    if (statSync(join(folder, file)).isDirectory()) return showing(folder, file);
    const bytes = readFileSync(join(folder, file));
    const text = file.startsWith("entries/") ? gunzipSync(bytes).toString() : bytes.toString("hex");
    return [TITLE, NAME, secret].some((one) => text.includes(one)) ? [file] : [];
  });
}

test("no file shows it afterwards, and all of them are those of the log", async () => {
  expect(showing(before)).toEqual(["entries/000", "entries/000.p/250", "index/0-256/0"]);
  expect(showing(after)).toEqual([]);
  await expectWhole(reader(after), 302);
  await expectEntries(reader(after), log.service, 302);
  const checked = await cairnlog(["fsck", after, "--vkey", await log.vkey()]);
  expect(checked, checked.stdout + checked.stderr).toMatchObject({ code: 0 });
  const again = await publish(after, "--audit", "--json");
  expect([again.code, JSON.parse(again.stdout)]).toEqual([0, expect.objectContaining({ made: 0 })]);
});

test("a reader has it proven that it is withheld, and believes no file that only lacks it", async () => {
  const url = await served(after);
  const trusted = await log.vkey();
  const { entry } = await (await openStaticLog({ log: url, trusted })).entry(withheld);
  expect(entry).toMatchObject({ payload: null, withheld_by: 301 });
  for await (const { entry } of (await openStaticLog({ log: url, trusted })).about(secret))
    expect.fail(`entry ${entry.id} is found`);
  expect(await (await openStaticLog({ log: url, trusted })).key(ada.fingerprint)).toMatchObject({
    ...{ pseudonym: "withheld", public_key: ada.publicKey, status: "active" },
  });
  const lying = temporaryFolder();
  cpSync(after, lying, { recursive: true });
  const text = gunzipSync(readFileSync(join(lying, "entries/000"))).toString();
  writeFileSync(join(lying, "entries/000"), text.replace('"withheld_by":301', '"withheld_by":299'));
  const refused = (await openStaticLog({ log: await served(lying), trusted })).entry(withheld);
  await expect(refused).rejects.toMatchObject({ code: "log-misbehaved" });
  const checked = await cairnlog(["fsck", lying, "--vkey", trusted]);
  expect([checked.code, checked.stdout]).toEqual([1, expect.stringContaining("does not withhold it")]);
  // A mirror of it would serve what nobody answers for.
  const restored = await cairnlog(["restore", lying, "--to", temporaryFolder(), "--vkey", trusted]);
  expect([restored.code, restored.stderr]).toEqual([1, expect.stringContaining("does not withhold it")]);
  // Nothing but the name may be other than it was.
  writeFileSync(join(lying, "entries/000"), text.replace('"key_algorithm":"ed25519"', '"key_algorithm":"rsa-2048"'));
  const other = (await openStaticLog({ log: await served(lying), trusted })).key(ada.fingerprint);
  await expect(other).rejects.toMatchObject({
    code: "log-misbehaved",
    detail: expect.stringContaining("does not withhold it"),
  });
});

test("it is taken out where an earlier run was broken off in the middle of that", async () => {
  const target = temporaryFolder();
  cpSync(before, target, { recursive: true });
  // The part of the run was replaced, and its fence was not.
  for (const path of ["index/0-256/0", "entries/000"]) cpSync(join(after, path), join(target, path));
  expect(await publish(target)).toMatchObject({ code: 0, stderr: "" });
  expect(showing(target)).toEqual([]);
  await expectEntries(reader(target), log.service, 302);
  expect(existsSync(join(target, "index/0-256/fence"))).toBe(true);
});

test("a mirror is made of the files without it: its heads and proofs are those of the log, and every check holds", async () => {
  const [trusted, to] = [await log.vkey(), temporaryFolder()];
  expect(await cairnlog(["restore", after, "--to", to, "--vkey", trusted])).toMatchObject({ code: 0 });
  expect(await cairnlog(["fsck", "--data", to])).toMatchObject({ code: 0 });
  expect(await cairnlog(["fsck", "--data", to, "--rebuild"])).toMatchObject({ code: 0 });
  const mirror = await startTestService({ SERVICE_DATA_DIR: to, SERVICE_READ_ONLY: "on" });
  for (const path of [
    `/log/${withheld}`,
    `/keys/${ada.fingerprint}`,
    `/log/proof/${withheld - 1}?tree_size=300`,
    "/log/heads?from=190&limit=100",
    "/log/consistency?from=100&to=300",
    "/log?page=2&per_page=150",
  ])
    expect((await mirror.get(path)).text, path).toBe((await log.service.get(path)).text);
  expect((await mirror.post("/log/verify")).body).toMatchObject({ valid: true, entry_count: 302 });
  await mirror.close();
});

test("copies of published files lose it, too", async () => {
  const [old, fresh] = [temporaryFolder(), temporaryFolder()];
  cpSync(before, old, { recursive: true });
  for (const copy of [old, fresh]) {
    expect(await cairnlog(["publish", after, copy, "--entries"])).toMatchObject({ code: 0 });
    expect(showing(copy)).toEqual([]);
    await expectEntries(reader(copy), log.service, 302);
  }
});

test("verify says of the file that it is withheld, and by which entry, to whoever has kept its receipt", async () => {
  const vkey = await log.vkey();
  const papers = temporaryFolder();
  const file = join(papers, "report.txt");
  writeFileSync(file, content);
  const verify = (folder: string, ...more: string[]) =>
    cairnlog(["verify", file, "--log", folder, "--vkey", vkey, ...more]);
  const sentence = "The operator withholds this, as entry 301 says: An order.";
  // The files say nothing of it to others.
  expect(await verify(after)).toMatchObject({ code: 1, stdout: expect.stringContaining("No entry of the 302") });
  writeFileSync(`${file}.attestation.json`, "{}");
  expect(await verify(after)).toMatchObject({ code: 1 });
  writeFileSync(`${file}.attestation.2.json`, JSON.stringify(receipt));
  expect(await verify(after)).toMatchObject({ code: 3, stdout: `${file}: withheld\n  ${sentence}\n` });
  const { code, stdout } = await verify(after, "--json", "--signer", ada.fingerprint);
  expect({ code, ...JSON.parse(stdout) }).toMatchObject({
    ...{ code: 3, valid: false, verdict: "withheld", withheld_by: 301, reason: sentence, leaf_index: withheld - 1 },
    entry: { id: withheld, payload: null },
  });
  expect(await verify(after, "--signer", newSigner().fingerprint)).toMatchObject({ code: 1 });
  expect(await verify(before)).toMatchObject({ code: 0 });
  // A receipt of another file, and one whose payload the entry did not have.
  writeFileSync(file, "other");
  expect(await verify(after)).toMatchObject({ code: 1 });
  writeFileSync(file, content);
  const changed = { ...receipt.entry, payload: { ...receipt.entry.payload, document_title: "Other" } };
  writeFileSync(`${file}.attestation.2.json`, JSON.stringify({ ...receipt, entry: changed }));
  expect(await verify(after)).toMatchObject({ code: 1 });
  // An index from before names it.
  const cached = temporaryFolder();
  cpSync(after, cached, { recursive: true });
  cpSync(join(before, "index"), join(cached, "index"), { recursive: true });
  expect(await verify(cached)).toMatchObject({ code: 3, stdout: expect.stringContaining(sentence) });
});
