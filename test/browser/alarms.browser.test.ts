/** Several alarms in one browser: each that says something new is shown, kept with its evidence, and dismissed by itself. */
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { Evidence } from "#cairnlog/server/client/index.js";
import { sayingEvent } from "../anyevent.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { expectReadable, Reader } from "./explorer.js";

const append = ({ server }: TestService, count: number, what: string) =>
  server.registry.log.append(Array.from({ length: count }, (_, i) => sayingEvent(`${what} ${i + 1}`)));

let honest: TestService;
/** Another log under the same key. */
let forked: TestService;
/** One under another key. */
let stranger: TestService;
beforeAll(async () => {
  const [one, other] = [temporaryFolder(), temporaryFolder()];
  honest = await startTestService({ SERVICE_DATA_DIR: one });
  copyFileSync(join(one, "operator.pem"), join(other, "operator.pem"));
  forked = await startTestService({ SERVICE_DATA_DIR: other });
  stranger = await startTestService();
  await append(honest, 5, "true");
  await append(forked, 8, "rewritten");
  await append(stranger, 9, "strange");
});

/** From now on, another service answers the paths that match. */
async function turn(reader: Reader, path: RegExp, { url }: TestService): Promise<void> {
  await reader.context.route("**/api/v1/**", async (route) => {
    const { pathname, search } = new URL(route.request().url());
    if (!path.test(pathname.replace("/api/v1", ""))) return route.fallback();
    return route.fulfill({ response: await route.fetch({ url: url + pathname + search }) });
  });
}
const KEY = /^\/log\/operator-key$/;
const HEADS = /^\/log\/(?:sth|consistency|head)$/;

const alarms = (page: Page) => page.getByRole("alert", { name: "Alarm" });
const FORK = "is not shown to be the beginning of that of";
const OTHER_KEY = "The operator key has changed";

/** The page looks for a new head when the browser is online again. */
const lookNow = (page: Page) => page.evaluate(() => window.dispatchEvent(new Event("online")));

/** A page of a reader who knows the log. */
async function known(): Promise<{ readonly reader: Reader; readonly page: Page }> {
  const reader = await Reader.arrive();
  const page = await reader.open(honest.url);
  await page.getByText("First visit.").waitFor();
  return { reader, page };
}

async function evidenceOf(page: Page, words: string): Promise<Evidence> {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    alarms(page).filter({ hasText: words }).getByRole("button", { name: "Save the evidence" }).click(),
  ]);
  return JSON.parse(readFileSync(await download.path(), "utf8")) as Evidence;
}

/** Both are shown, also after a reload, each with its evidence. */
async function expectBoth(page: Page): Promise<void> {
  for (const again of [false, true]) {
    if (again) await page.reload();
    for (const words of [FORK, OTHER_KEY]) await alarms(page).getByText(words).waitFor();
    expect(await alarms(page).count()).toBe(2);
  }
  await expectReadable(page);
  expect((await evidenceOf(page, FORK)).shown).toMatchObject({ key_id: honest.server.operatorFingerprint });
  expect((await evidenceOf(page, FORK)).proof).not.toBeNull();
  expect(await alarms(page).filter({ hasText: OTHER_KEY }).innerText()).toContain(stranger.server.operatorFingerprint);
}

test("a fork, and then another operator key", async () => {
  const { reader, page } = await known();
  await turn(reader, HEADS, forked);
  await lookNow(page);
  await alarms(page).getByText(FORK).waitFor();
  await turn(reader, KEY, stranger);
  await lookNow(page);
  await expectBoth(page);
  await reader.leave();
});

test("another operator key, and then a fork", async () => {
  const { reader, page } = await known();
  await turn(reader, KEY, stranger);
  await page.reload();
  await alarms(page).getByText(OTHER_KEY).waitFor();
  await turn(reader, HEADS, forked);
  await lookNow(page);
  await expectBoth(page);
  await reader.leave();
});

test("of another log, whose key signs its heads, there is one alarm: the one that names both keys", async () => {
  const { reader, page } = await known();
  await turn(reader, /^/, stranger);
  await lookNow(page);
  await alarms(page).getByText(OTHER_KEY).waitFor();
  await append(stranger, 1, "stranger");
  await page.reload();
  await page.getByText("The newest head could not be verified").waitFor();
  expect(await alarms(page).count()).toBe(1);
  await reader.leave();
});

test("a fork that grows is one alarm, with its first evidence; of two, one is dismissed by itself", async () => {
  const { reader, page } = await known();
  await turn(reader, HEADS, forked);
  await lookNow(page);
  await alarms(page).getByText(FORK).waitFor();
  const { shown } = await evidenceOf(page, FORK);
  await append(forked, 3, "rewritten again");
  await page.reload();
  await page.getByText("The newest head could not be verified").waitFor();
  expect(await alarms(page).count()).toBe(1);
  expect((await evidenceOf(page, FORK)).shown).toEqual(shown);
  // Then the log shows no head at all.
  await reader.context.route("**/api/v1/log/sth", (route) =>
    route.fulfill({
      status: 404,
      contentType: "application/problem+json",
      json: { type: "about:blank", title: "Not found", status: 404, code: "not-found", detail: "There is none." },
    }),
  );
  await lookNow(page);
  await alarms(page).getByText("The log shows no head any more.").waitFor();
  expect(await alarms(page).count()).toBe(2);
  await turn(reader, /^/, honest);
  await alarms(page).filter({ hasText: FORK }).getByRole("button", { name: "Dismiss the alarm" }).click();
  await alarms(page).filter({ hasText: FORK }).waitFor({ state: "detached" });
  await page.reload();
  await page.getByText("Nothing has been rewritten").waitFor();
  expect(await alarms(page).allInnerTexts()).toEqual([expect.stringContaining("The log shows no head any more.")]);
  await reader.leave();
});

test("tabs share their alarms: each shows those of the others, and takes no evidence away", async () => {
  const { reader, page: one } = await known();
  const other = await reader.open(honest.url);
  await other.getByText("Nothing has been rewritten").waitFor();
  // A tab that the browser has put to sleep is told nothing.
  await other.evaluate(() => {
    const asleep = (event: Event) => event.stopImmediatePropagation();
    window.addEventListener("storage", asleep, true);
    window.addEventListener("focus", () => window.removeEventListener("storage", asleep, true));
  });
  await one.route(/\/log\/(?:sth|consistency|head)(?:\?|$)/, async (route) => {
    const { pathname, search } = new URL(route.request().url());
    return route.fulfill({ response: await route.fetch({ url: forked.url + pathname + search }) });
  });
  await lookNow(one);
  await alarms(one).getByText(FORK).waitFor();
  await other.route("**/api/v1/log/sth", (route) =>
    route.fulfill({
      status: 404,
      contentType: "application/problem+json",
      json: { type: "about:blank", title: "Not found", status: 404, code: "not-found", detail: "There is none." },
    }),
  );
  const EMPTY = "The log shows no head any more.";
  await lookNow(other);
  for (const page of [other, one]) for (const words of [EMPTY, FORK]) await alarms(page).getByText(words).waitFor();
  await one.unrouteAll();
  await other.unrouteAll();
  await other.evaluate(() => window.dispatchEvent(new Event("focus")));
  await alarms(one).filter({ hasText: EMPTY }).getByRole("button", { name: "Dismiss the alarm" }).click();
  for (const page of [one, other]) await alarms(page).filter({ hasText: EMPTY }).waitFor({ state: "detached" });
  for (const page of [one, other]) {
    await page.reload();
    await page.getByText("Nothing has been rewritten").waitFor();
    expect(await alarms(page).count()).toBe(1);
    expect((await evidenceOf(page, FORK)).proof).not.toBeNull();
  }
  await reader.leave();
});

test("a log that is forgotten in one tab is forgotten in all", async () => {
  const { reader, page: one } = await known();
  const other = await reader.open(honest.url);
  await other.getByText("Nothing has been rewritten").waitFor();
  await turn(reader, /^/, stranger);
  for (const page of [one, other]) {
    await lookNow(page);
    await alarms(page).getByText(OTHER_KEY).waitFor();
  }
  one.once("dialog", (dialog) => dialog.accept());
  await alarms(one).getByRole("button", { name: "Forget this log and start again" }).click();
  const shown = (page: Page) => page.getByRole("region", { name: "Operator key" });
  for (const page of [one, other]) await shown(page).getByText(stranger.server.operatorFingerprint).waitFor();
  for (const page of [one, other]) {
    await lookNow(page);
    await page.reload();
    await page.getByText("Nothing has been rewritten").waitFor();
    expect(await alarms(page).count()).toBe(0);
  }
  await reader.leave();
});

test("a browser that has no room for what it saw last remembers that until the page is closed", async () => {
  const growing = await startTestService();
  await append(growing, 3, "first");
  const old = (await growing.get("/log/sth")).body;
  const reader = await Reader.arrive();
  const page = await reader.open(growing.url);
  await page.getByText("First visit.").waitFor();
  await page.evaluate(() => {
    Storage.prototype.setItem = () => {
      throw new DOMException("There is no room.", "QuotaExceededError");
    };
  });
  await append(growing, 4, "later");
  await lookNow(page);
  const size = page.getByRole("region", { name: "Newest entries" }).getByText("later 4");
  await size.waitFor();
  // An old head that is signed, and has entries beside it that it does not cover.
  let shown = 0;
  await reader.context.route("**/api/v1/log/sth", (route) => {
    shown++;
    return route.fulfill({ json: old });
  });
  await lookNow(page);
  await expect.poll(() => shown).toBeGreaterThan(0);
  await lookNow(page);
  await expect.poll(() => shown).toBeGreaterThan(1);
  expect(await page.locator("main .verdict").innerText()).toContain("7 entries");
  await reader.leave();
});

test("an alarm lasts, also where the log has chosen more evidence than a browser keeps", async () => {
  const { reader, page } = await known();
  await reader.context.route("**/api/v1/log?*", async (route) => {
    const response = await route.fetch();
    const { entries, ...rest } = await response.json();
    const [last] = entries.slice(-1);
    const changed = { ...last, payload: { ...last.payload, reason: "x".repeat(6_000_000) } };
    await route.fulfill({ response, json: { ...rest, entries: [...entries.slice(0, -1), changed] } });
  });
  await page.reload();
  await alarms(page).waitFor();
  const detail = await alarms(page).locator("p").first().innerText();
  expect((await evidenceOf(page, detail)).entry).toMatchObject({ id: 5 });
  await reader.context.unrouteAll({ behavior: "ignoreErrors" });
  await page.reload();
  await page.locator("main .verdict:not(.verdict-busy)").waitFor();
  expect(await alarms(page).locator("p").first().innerText()).toBe(detail);
  await reader.leave();
});

describe("a browser that has lost a part of what it remembered", () => {
  const lose = async (page: Page, name: string) => {
    await page.evaluate((name) => localStorage.removeItem(`cairnlog.${name}`), name);
    await page.reload();
  };

  test("does not say that it has compared what it cannot compare", async () => {
    const { reader, page } = await known();
    await page.reload();
    await page.getByText("Nothing has been rewritten").waitFor();
    await lose(page, "state");
    const checks = page.locator(".head-checks", { hasText: "Signed" });
    await checks.waitFor();
    expect(await checks.innerText()).toContain("First visit.");
    await reader.leave();
  });

  test("does not believe that a log which it knows is empty", async () => {
    const { reader, page } = await known();
    await turn(reader, /^\/log\/(?:sth|head)$/, await startTestService());
    await lose(page, "visit");
    await page.getByText("Log empty").or(alarms(page)).first().waitFor();
    expect(await alarms(page).allInnerTexts()).toHaveLength(1);
    await reader.leave();
  });
});

test("the log of a demonstration is not pinned: the next one at this address raises no alarm", async () => {
  const [demo, next] = [
    await startTestService({ SERVICE_OPERATOR_NAME: "cairnlog demo" }),
    await startTestService({ SERVICE_OPERATOR_NAME: "cairnlog demo" }),
  ];
  await append(demo, 3, "demo");
  await append(next, 2, "next");
  const reader = await Reader.arrive();
  const page = await reader.open(demo.url);
  const key = page.getByRole("region", { name: "Operator key" });
  await key.getByText("Not pinned").waitFor();
  await page.getByText("First visit.").waitFor();
  expect(await page.evaluate(() => Object.keys(localStorage))).toEqual([]);
  await turn(reader, /^/, next);
  await page.reload();
  await key.getByText(next.server.operatorFingerprint).waitFor();
  await page.getByText("First visit.").waitFor();
  expect(await alarms(page).count()).toBe(0);
  // Within one visit, it is another log.
  await turn(reader, /^/, demo);
  await lookNow(page);
  await alarms(page).getByText(OTHER_KEY).waitFor();
  await reader.leave();
});

test("what is no demonstration on this machine is pinned, and so is a log that says so from elsewhere", async () => {
  const demo = await startTestService({ SERVICE_OPERATOR_NAME: "cairnlog demo" });
  await append(demo, 3, "demo");
  const reader = await Reader.arrive();
  await reader.context.route("http://log.example/**", async (route) => {
    const { pathname, search } = new URL(route.request().url());
    const response = await route.fetch({ url: demo.url + pathname + search });
    // Chromium complains of it without TLS.
    const { "cross-origin-opener-policy": _, ...headers } = response.headers();
    await route.fulfill({ response, headers });
  });
  for (const url of [honest.url, "http://log.example"]) {
    const page = await reader.open(url);
    await page.getByRole("region", { name: "Operator key" }).getByText("Pinned").first().waitFor();
    await page.getByText("First visit.").waitFor();
    expect(await page.evaluate(() => Object.keys(localStorage).sort())).toContain("cairnlog.state");
    await page.close();
  }
  await reader.leave();
});
