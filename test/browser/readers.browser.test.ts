/** What readers are told: who did what, who runs the log, which key is which; and how few requests that takes. */
import { beforeAll, expect, test } from "vitest";
import { sayingEvent } from "../anyevent.js";
import { newClient } from "../client/clients.js";
import { startTestService, type TestService } from "../server/harness.js";
import { expectReadable, Reader } from "./explorer.js";

const BASE = "https://predicates.example.org";

let service: TestService;
let first: string;
let second: string;
beforeAll(async () => {
  service = await startTestService({
    SERVICE_PREDICATE_BASE: BASE,
    SERVICE_OPERATOR_NAME: 'Library of "Babel" <b>& Sons</b>',
    SERVICE_LOG_DESCRIPTION: "Every book that there may be",
  });
  const [ada, other] = [newClient(service.url), newClient(service.url)];
  [first, second] = [ada.fingerprint, other.fingerprint];
  await ada.client.keys.register({ pseudonym: "Ada Lovelace" });
  await other.client.keys.register({ pseudonym: "ADA  Lovelace" });
  const content_hash = "ab".repeat(32);
  await ada.client.attest({ title: "README.md", content_hash, tags: ["docs"] }, { intent: "I wrote it." });
  const types = ["https://evil.example/authorship/v1", `${BASE}.evil.example/authorship/v1`];
  for (const type of types) await other.client.attest({ title: "README.md", content_hash }, { type });
  const rest = Array.from({ length: 40 }, (_, i) => sayingEvent(`build ${i}`));
  await service.server.registry.log.append(rest);
});

const digits = (fingerprint: string) => fingerprint.slice("sha256:".length, "sha256:".length + 8);

test("the first page introduces itself, and shows when entries were recorded", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url);
  const said =
    'Every book that there may be. Kept by Library of "Babel" <b>& Sons</b>. Entries are only ever added to it';
  await page.getByText(said).waitFor();
  const activity = page.getByRole("img", { name: "45 entries in 48 equal periods" });
  await activity.waitFor();
  expect(await activity.locator("rect").count()).toBe(48);
  await expectReadable(page);
  await reader.leave();
});

test("rows and pages of entries say who did what to what, with the keys they mean", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/entries?title=readme");
  const rows = page.locator(".entry");
  await rows.nth(2).waitFor();
  const said = (await rows.nth(2).innerText()).replace(/\s+/g, " ");
  expect(said).toContain(`Ada Lovelace ${digits(first)} attested README.md as author`);
  await page.getByText("Who did what (names are self-declared)").waitFor();
  await rows.nth(2).getByRole("link").click();
  const content = page.getByRole("region", { name: "What it says" });
  await content.getByText("attested README.md as author").waitFor();
  await content.getByText("I wrote it.", { exact: true }).waitFor();
  await content.getByText("Names are self-declared").waitFor();
  await content.getByRole("link", { name: `Ada Lovelace ${digits(first)}` }).waitFor();
  expect(await content.getByLabel("Content as JSON").isVisible()).toBe(false);
  await content.getByText("All that was recorded, as JSON").click();
  await content.getByLabel("Content as JSON").waitFor();
  await reader.leave();
});

test("only the service's own predicates have their badges; others show their hosts", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/entries?title=readme");
  const badges = page.locator(".entry .badge");
  await badges.nth(2).waitFor();
  expect(await badges.allInnerTexts()).toEqual(["…cates.example.org.evil.example", "evil.example", "Authorship"]);
  expect(await page.getByText("as author").count()).toBe(1);
  await reader.leave();
});

test("two keys of one name are told apart, in lists and on their pages", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/keys");
  const alike = page.getByText("compare the fingerprints. No keys endorse this one.");
  await alike.nth(1).waitFor();
  expect(await alike.count()).toBe(2);
  await expectReadable(page);
  await page.goto(`${service.url}/#/keys/${second}`);
  await page.getByText("Self-declared name: nobody has checked who holds this key.").waitFor();
  const others = page.getByRole("region", { name: "Other keys have this name" });
  await others
    .getByRole("button", {
      name: `Copy fingerprint of Ada Lovelace ${first.slice("sha256:".length, "sha256:".length + 6)}`,
    })
    .waitFor();
  await expectReadable(page);
  await reader.leave();
});

test("forty entry pages, one after the other, stay below the limit of requests", async () => {
  const limited = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_GENERAL: "100" });
  await limited.server.registry.log.append(Array.from({ length: 45 }, (_, i) => sayingEvent(`build ${i}`)));
  const reader = await Reader.arrive();
  const asked: string[] = [];
  reader.context.on("request", (request) => asked.push(request.url().replace(limited.url, "")));
  const page = await reader.open(limited.url, "#/entries/45");
  for (let id = 44; id > 4; id--) {
    await page.getByRole("link", { name: `Previous entry, ${id}` }).click();
    await page.getByText(`It is leaf ${id - 1},`).waitFor();
  }
  // A proof for each, and now and then a list of the entries around it.
  const ofPages = asked.filter((path) => path.startsWith("/api/v1/log?") || path.includes("/log/proof/"));
  expect(ofPages.length, ofPages.join("\n")).toBeLessThanOrEqual(46);
  expect(await page.getByText("Too many requests").count()).toBe(0);
  await reader.leave();
});

test("an entry's page that is opened by its address asks four times, so that two dozen a minute stay below the limit", async () => {
  const limited = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_GENERAL: "100" });
  await limited.server.registry.log.append(Array.from({ length: 45 }, (_, i) => sayingEvent(`build ${i}`)));
  // The log's name stands in its first checkpoint. A browser remembers it from its first visit.
  await expect.poll(async () => (await fetch(`${limited.url}/api/v1/log/checkpoint`)).status).toBe(200);
  const reader = await Reader.arrive();
  const first = await reader.open(limited.url);
  await first.getByText("First visit.").waitFor();
  await expect.poll(() => first.evaluate(() => localStorage.getItem("cairnlog.name"))).toBeTruthy();
  await first.close();
  let counted: string[] = [];
  reader.context.on("response", (response) => {
    if (response.url().includes("/api/v1/")) counted.push(response.url());
  });
  for (const id of [45, 20, 3]) {
    counted = [];
    const page = await reader.open(limited.url, `#/entries/${id}`);
    await page.getByText(`It is leaf ${id - 1},`).waitFor();
    // One more, if it looks for a newer head meanwhile.
    const asked = counted.filter((url, i) => !(url.endsWith("/log/sth") && counted.indexOf(url) < i));
    expect(asked.length, asked.join("\n")).toBeLessThanOrEqual(4);
    await page.close();
  }
  await reader.leave();
});

test("an empty log leaves no error in the console", async () => {
  const empty = await startTestService();
  const reader = await Reader.arrive();
  const failed: string[] = [];
  reader.context.on("response", (response) => {
    if (response.status() >= 400) failed.push(`${response.status()} ${response.url()}`);
  });
  for (const address of ["#/", "#/entries", "#/keys", "#/search?q=ada", "#/file"]) {
    const page = await reader.open(empty.url, address);
    await page.getByRole("banner").getByText("Empty").waitFor();
    await page.waitForLoadState("networkidle");
    await page.close();
  }
  expect(failed).toEqual([]);
  await reader.leave();
});
