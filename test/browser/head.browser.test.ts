/** The head of the log in a browser: verified there, remembered there, and an alarm if verification fails. */

import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { beginLog, freeze } from "#cairnlog/engine/log/operator/entries.js";
import { parsePublicKey, verifyConsistency, verifyTreeHead } from "#cairnlog/engine/verify/index.js";
import type { Evidence } from "#cairnlog/server/client/index.js";
import { sayingEvent } from "../anyevent.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { expectReadable, expectReadableEverywhere, Reader } from "./explorer.js";

const append = ({ server }: TestService, count: number, artifact = "app") =>
  server.registry.log.append(Array.from({ length: count }, (_, i) => sayingEvent(`${artifact}-${i}.tar.gz`)));

const fingerprintOf = ({ server }: TestService): string => server.operatorFingerprint;

/** Requests of the page to the API go to another service, as if the first had become it. */
const turnInto = (page: Page, other: TestService) =>
  page.context().route("**/api/v1/**", async (route) => {
    const { pathname, search } = new URL(route.request().url());
    await route.fulfill({ response: await route.fetch({ url: other.url + pathname + search }) });
  });

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ SERVICE_LOG_NAME: "log.example.org/test" });
  await append(service, 12);
});

test("it fits every screen and every reader", () => expectReadableEverywhere(service.url, "#/", "app-11.tar.gz"));

test("shows the head, the checks, and the code that made them", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url);
  const { body: head } = await service.get("/log/sth");
  await page.getByText("the signature was checked in this page").waitFor();
  const card = page.getByRole("region", { name: "The newest tree head" });
  expect(await card.innerText()).toContain("12\n");
  expect(await card.innerText()).toContain(head.root_hash);
  expect(await page.getByRole("region", { name: "Operator key" }).innerText()).toContain(fingerprintOf(service));
  expect(await page.getByRole("region", { name: "Anchoring" }).innerText()).toContain("Not anchored");
  expect(await page.getByRole("banner").innerText()).toMatch(/log\.example\.org\/test[\s\S]*Log verified/);
  await card.getByText("Which code verifies this").click();
  await card.getByText("verifyConsistency").waitFor();
  await reader.leave();
});

test("an empty log is shown as empty, and its first entry appears without a reload", async () => {
  const empty = await startTestService();
  const reader = await Reader.arrive();
  const page = await reader.open(empty.url);
  await page.getByText("Nothing has been recorded yet").waitFor();
  await expectReadable(page);
  await append(empty, 1, "first");
  await page.getByText("first-0.tar.gz").waitFor();
  await page.getByText("the signature was checked in this page").waitFor();
  await page.close();
  const later = await reader.open(empty.url);
  await later.getByText("Nothing has been rewritten").waitFor();
  await reader.leave();
});

test("a head with nothing to compare with is not shown as verified", async () => {
  const growing = await startTestService();
  const reader = await Reader.arrive();
  const first = await reader.open(growing.url);
  await first.getByText("Nothing has been recorded yet").waitFor();
  await first.close();
  await append(growing, 2);
  const second = await reader.open(growing.url);
  const since = second.locator(".check", { hasText: "at your last visit" });
  expect(await since.innerText()).toMatch(/Nothing to check yet:\s*The log was empty/);
  await reader.leave();
  const stranger = await Reader.arrive();
  const page = await stranger.open(growing.url);
  expect(await page.locator(".check", { hasText: "First visit." }).innerText()).toContain("Nothing to check yet");
  await stranger.leave();
});

test("new entries appear while the page is open, without moving the focus", async () => {
  const growing = await startTestService();
  await append(growing, 3);
  const reader = await Reader.arrive();
  const page = await reader.open(growing.url);
  await page.getByText("app-2.tar.gz").waitFor();
  await page.getByRole("link", { name: "All entries" }).focus();
  await append(growing, 1, "live");
  await page.getByText("live-0.tar.gz").waitFor();
  expect(
    await page.getByRole("link", { name: "All entries" }).evaluate((link) => link === document.activeElement),
  ).toBe(true);
  await reader.leave();
});

test("however much is recorded at once, the page asks for little and shows the newest few", async () => {
  const growing = await startTestService();
  await append(growing, 20);
  const reader = await Reader.arrive();
  const asked: string[] = [];
  reader.context.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith("/api/")) asked.push(pathname.replace("/api/v1", ""));
  });
  const page = await reader.open(growing.url);
  await page.getByText("app-19.tar.gz").waitFor();
  await page.getByText("Not anchored yet").waitFor();
  expect(asked.length).toBeLessThanOrEqual(12);
  asked.length = 0;
  await append(growing, 1000, "burst");
  await page.getByText("burst-999.tar.gz").waitFor();
  expect(await page.locator(".entry").count()).toBe(8);
  // A check that finds no new head requests only the head. A burst of entries may be found in two or three checks.
  for (const path of ["/log/consistency", "/log"])
    expect(asked.filter((each) => each === path).length).toBeLessThanOrEqual(3);
  await reader.leave();
});

test("the second visit proves that nothing was rewritten since the first", async () => {
  const growing = await startTestService();
  await append(growing, 5);
  const reader = await Reader.arrive();
  const first = await reader.open(growing.url);
  await first.getByText("First visit.").waitFor();
  await first.close();
  await append(growing, 4);
  const second = await reader.open(growing.url);
  const said = second.getByText("Nothing has been rewritten");
  await said.waitFor();
  expect(await said.locator("..").innerText()).toMatch(/since your last visit on .+: 4 entries were added to the 5/);
  await second.getByText("The service still shows the key that this browser pinned.").waitFor();
  await reader.leave();
});

describe("a log that was rewritten", () => {
  let honest: TestService;
  let forked: TestService;
  let emptied: TestService;
  beforeAll(async () => {
    const [one, other, third] = [temporaryFolder(), temporaryFolder(), temporaryFolder()];
    honest = await startTestService({ SERVICE_DATA_DIR: one });
    for (const folder of [other, third]) copyFileSync(join(one, "operator.pem"), join(folder, "operator.pem"));
    forked = await startTestService({ SERVICE_DATA_DIR: other });
    emptied = await startTestService({ SERVICE_DATA_DIR: third });
    await append(honest, 5);
    await append(forked, 8, "rewritten");
  });

  test("raises an alarm that stays, with evidence that convicts the operator", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(honest.url);
    await page.getByText("app-4.tar.gz").waitFor();
    await turnInto(page, forked);
    const alarm = page.getByRole("alert", { name: "Alarm" });
    await alarm.getByText("This log misbehaves").waitFor();
    await expectReadable(page);
    expect(await page.getByRole("banner").innerText()).toContain("Log not verified");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      alarm.getByRole("button", { name: "Save the evidence" }).click(),
    ]);
    const { operatorKey, known, shown, proof } = JSON.parse(readFileSync(await download.path(), "utf8")) as Evidence;
    const key = parsePublicKey(operatorKey);
    expect(key.fingerprint).toBe(fingerprintOf(honest));
    expect([known!.tree_size, shown!.tree_size]).toEqual([5, 8]);
    expect(await verifyTreeHead(known!, key)).toBe(true);
    expect(await verifyTreeHead(shown!, key)).toBe(true);
    const { peaks, extension } = proof as { peaks: string[]; extension: string[] };
    const claim = {
      fromSize: 5,
      toSize: 8,
      fromRoot: known!.root_hash,
      toRoot: shown!.root_hash,
      treeVersion: 2,
    } as const;
    expect(verifyConsistency({ ...claim, peaks, extension })).toBe(false);

    // It stays on other pages, and if the service behaves again; only the reader dismisses it.
    await page.context().unroute("**/api/v1/**");
    await page.reload();
    await alarm.waitFor();
    await page.getByText("Nothing has been rewritten").waitFor();
    await alarm.getByRole("button", { name: "Dismiss the alarm" }).click();
    await alarm.waitFor({ state: "detached" });
    await page.reload();
    await page.getByText("Nothing has been rewritten").waitFor();
    expect(await alarm.count()).toBe(0);
    await reader.leave();
  });

  test("is caught when it is shorter than it was, and when it is gone", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(forked.url);
    await page.getByText("rewritten-7.tar.gz").waitFor();
    const alarm = page.getByRole("alert", { name: "Alarm" });
    await turnInto(page, honest);
    await alarm.getByText("The log denies what it vouched for: The tree size must lie between 1 and 5.").waitFor();
    await turnInto(page, emptied);
    await alarm.getByRole("button", { name: "Dismiss the alarm" }).click();
    await alarm.getByText("The log shows no head any more.").waitFor();
    await reader.leave();
  });

  test("under another key raises an alarm with both fingerprints, and only the reader can start again", async () => {
    const stranger = await startTestService();
    await append(stranger, 6);
    const reader = await Reader.arrive({ viewport: { width: 360, height: 740 } });
    const page = await reader.open(honest.url);
    await page.getByText("First visit.").waitFor();
    await page.close();
    const again = await reader.context.newPage();
    await turnInto(again, stranger);
    await again.goto(honest.url);
    const alarm = again.getByRole("alert", { name: "Alarm" });
    await alarm.getByText("The operator key has changed").waitFor();
    expect(await alarm.innerText()).toContain(fingerprintOf(honest));
    expect(await alarm.innerText()).toContain(fingerprintOf(stranger));
    await expectReadable(again);
    again.on("dialog", (dialog) => void dialog.accept());
    await alarm.getByRole("button", { name: "Forget this log and start again" }).click();
    await again.getByText("First visit.").waitFor();
    expect(await again.getByRole("region", { name: "Operator key" }).innerText()).toContain(fingerprintOf(stranger));
    expect(await alarm.count()).toBe(0);
    await reader.leave();
  });
});

describe("when the service cannot answer", () => {
  test("the page says so, keeps the verified head, and continues without a reload", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url);
    await page.getByText("app-11.tar.gz").waitFor();
    await page.context().route("**/api/v1/**", (route) => route.abort());
    await page.getByText("The service does not answer correctly.").waitFor();
    await expectReadable(page);
    expect(await page.getByRole("banner").innerText()).toContain("Log not reached");
    await page.getByText("app-11.tar.gz").waitFor();
    // It answers from the click on, not before: the page asks now and then by itself, and then the button is gone.
    await page.evaluate(() => addEventListener("click", () => Object.assign(globalThis, { clicked: true })));
    await page.context().route("**/api/v1/**", async (route) => {
      if (await page.evaluate(() => "clicked" in globalThis)) await route.continue();
      else await route.abort();
    });
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("The service does not answer correctly.").waitFor({ state: "detached" });
    await reader.leave();
  });

  test("or says nothing at all: a browser would wait for it as long as it takes", async () => {
    const reader = await Reader.arrive();
    // A half minute passes in a second.
    await reader.context.addInitScript(() => {
      const { timeout } = AbortSignal;
      AbortSignal.timeout = (milliseconds) => timeout.call(AbortSignal, milliseconds / 30);
    });
    const page = await reader.open(service.url);
    await page.getByText("app-11.tar.gz").waitFor();
    await reader.context.route("**/api/v1/**", () => {});
    const bar = page.getByText("The service does not answer correctly.");
    await bar.waitFor();
    expect(await page.getByRole("banner").innerText()).toContain("Log not reached");
    await reader.context.unroute("**/api/v1/**");
    await bar.waitFor({ state: "detached" });
    await reader.leave();
  });

  test("for the log's name alone, the page asks for it again", async () => {
    const reader = await Reader.arrive();
    let asked = 0;
    await reader.context.route("**/api/v1/log/checkpoint", (route) => (asked++ ? route.continue() : route.abort()));
    const page = await reader.open(service.url);
    await page.getByText("app-11.tar.gz").waitFor();
    await expect.poll(() => asked).toBe(2);
    const [name] = (await (await fetch(`${service.url}/api/v1/log/checkpoint`)).text()).split("\n");
    await page.getByRole("banner").getByText(name!).waitFor();
    await reader.leave();
  });

  test("from the beginning, nothing is claimed", async () => {
    const reader = await Reader.arrive();
    await reader.context.route("**/api/v1/**", (route) => route.abort());
    const page = await reader.open(service.url);
    await page.getByText("Nothing is known about the log yet").waitFor();
    expect(await page.getByText("Log verified", { exact: true }).count()).toBe(0);
    await reader.leave();
  });

  test("with a view's code, the page offers to be loaded again", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url);
    await page.getByText("app-11.tar.gz").waitFor();
    await reader.context.route("**/explorer/keys-*", (route) => route.abort());
    await page.getByRole("link", { name: "Keys", exact: true }).click();
    await page.getByText("This view could not be loaded.").waitFor();
    await expectReadable(page);
    await reader.context.unroute("**/explorer/keys-*");
    await page.getByRole("button", { name: "Load the page again" }).click();
    await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor();
    await reader.leave();
  });

  test("because too much was asked, it counts down to the next try", async () => {
    const limited = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_GENERAL: "3" });
    await append(limited, 2);
    const reader = await Reader.arrive();
    const page = await reader.open(limited.url, "#/entries/1");
    await page
      .getByText(/Trying again in \d+ s/)
      .first()
      .waitFor();
    await page.getByText("Too many requests").first().waitFor();
    await expectReadable(page);
    await reader.leave();
  });
});

test("colours follow the system until the reader chooses, and then the choice", async () => {
  const colour = (page: Page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const reader = await Reader.arrive({ colorScheme: "dark" });
  const page = await reader.open(service.url);
  const dark = await colour(page);
  await page.getByRole("button", { name: "Colours: like the system" }).click();
  const light = await colour(page);
  expect(light).not.toBe(dark);
  await page.reload();
  expect(await colour(page)).toBe(light);
  await page.getByRole("button", { name: "Colours: light" }).click();
  expect(await colour(page)).toBe(dark);
  await page.getByRole("button", { name: "Colours: dark" }).click();
  await page.emulateMedia({ colorScheme: "light" });
  expect(await colour(page)).toBe(light);
  await reader.leave();
});

test("by keyboard: past the header, to a view, and a hash onto the clipboard", async () => {
  const reader = await Reader.arrive({ permissions: ["clipboard-read", "clipboard-write"] });
  const page = await reader.open(service.url);
  await page.getByText("app-11.tar.gz").waitFor();
  const focused = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent);
  await page.keyboard.press("Tab");
  expect(await focused()).toBe("Skip to content");
  await page.keyboard.press("Enter");
  expect(await focused()).toBe("main");
  await page.getByRole("button", { name: "Copy root hash" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("The root hash was copied.").waitFor({ state: "attached" });
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
    (await service.get("/log/sth")).body.root_hash,
  );
  await page.getByRole("link", { name: "Entries", exact: true }).press("Enter");
  await page.getByRole("heading", { name: "Entries", level: 1 }).waitFor();
  expect(await focused()).toBe("Entries");
  expect(await page.title()).toMatch(/^Entries/);
  await reader.leave();
});

test("the policy allows nothing else: no inline scripts and no requests elsewhere", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url);
  await page.getByText("app-11.tar.gz").waitFor();
  const blocked = await page.evaluate(async () => {
    const violations: string[] = [];
    document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) =>
      violations.push(effectiveDirective),
    );
    const script = document.createElement("script");
    script.textContent = "globalThis.injected = true";
    document.head.append(script);
    await fetch("http://127.0.0.1:9/").catch(() => {});
    await new Promise((resolve) => setTimeout(resolve));
    return { violations, injected: "injected" in globalThis };
  });
  expect(blocked.violations).toContain("script-src-elem");
  expect(blocked.violations).toContain("connect-src");
  expect(blocked.injected).toBe(false);
  await reader.context.close();
});

test("a log that has ended says so, proven, and where it goes on", async () => {
  const ended = await startTestService();
  await append(ended, 2);
  const vkey = (await ended.send("GET", "/tlog/vkey")).text.trim();
  const successor = { url: "https://next.example", vkey };
  const reader = await Reader.arrive();
  const page = await reader.open(ended.url);
  await page.getByText("the signature was checked in this page").waitFor();
  expect(await page.getByText("This log has ended").count()).toBe(0);
  await freeze(ended.server.registry.log, { reason: "The year is over.", successor });
  const card = page.getByRole("region", { name: "This log has ended" });
  await card.getByText("The year is over.").waitFor();
  expect(await card.getByRole("link", { name: successor.url }).getAttribute("href")).toBe(successor.url);
  await page.getByText("The operator ended the log").waitFor();
  await expectReadable(page);

  const { public_key: operator_key } = (await ended.get("/log/operator-key")).body;
  const predecessor = { url: ended.url, operator_key, tree_head: ended.server.registry.log.treeHead()! };
  const next = await startTestService();
  await next.server.registry.log.execute(beginLog, { predecessor });
  const second = await reader.open(next.url);
  const before = second.getByRole("region", { name: "This log goes on from another one" });
  await before.getByRole("link", { name: ended.url }).waitFor();
  await expectReadable(second);
  await reader.leave();
});
