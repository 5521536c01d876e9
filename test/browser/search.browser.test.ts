/** The search box in a browser: anything that a reader may know of an entry or a key leads to it. */
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { newClient } from "../client/clients.js";
import { startTestService, type TestService } from "../server/harness.js";
import { expectReadable, expectReadableEverywhere, Reader } from "./explorer.js";

const HASH = "ab12".repeat(16);

let service: TestService;
let ada: string;
beforeAll(async () => {
  service = await startTestService();
  const author = newClient(service.url);
  ada = author.fingerprint;
  await author.client.keys.register({ pseudonym: "Ada Lovelace" });
  await author.client.attest({ title: "Annual Report 2026.pdf", content_hash: HASH, tags: ["finance", "release"] });
  await author.client.attest({ title: "notes/engine.txt", content_hash: "cd".repeat(32), tags: [] });
});

const box = (page: Page) => page.getByRole("combobox", { name: "Search the log" });
const option = (page: Page, text: string | RegExp) => page.getByRole("option").filter({ hasText: text });

async function found(page: Page, text: string, shown: string | RegExp): Promise<void> {
  await box(page).fill(text);
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.getByRole("main").getByText(shown).first().waitFor();
}

test("suggests entries and keys while somebody types, and the keyboard chooses", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url);
  await page.getByText("the signature was checked in this page").waitFor();
  await box(page).pressSequentially("ann rep");
  await option(page, "Annual Report 2026.pdf").waitFor();
  await expectReadable(page);
  await box(page).fill("lovel");
  await option(page, /^Key\s*Ada Lovelace/).waitFor();
  await page.keyboard.press("ArrowDown");
  expect(await box(page).getAttribute("aria-activedescendant")).toBe(
    await page.getByRole("option", { selected: true }).getAttribute("id"),
  );
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Ada Lovelace", level: 1 }).waitFor();
  await page.goBack();
  await box(page).fill("2");
  await option(page, "Entry 2").click();
  await page.getByRole("heading", { name: "Entry 2", level: 1 }).waitFor();
  await reader.leave();
});

test("keeps what is typed the moment that it appears", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/search");
  await page.getByRole("heading", { name: "Search", level: 1 }).waitFor();
  await page.evaluate(() => {
    new MutationObserver((_, observer) => {
      const typed = document.querySelector<HTMLInputElement>("[role=combobox]");
      if (!typed || !document.querySelector("h1")?.textContent?.startsWith("Head")) return;
      observer.disconnect();
      typed.focus();
      typed.value = "engine";
      typed.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }).observe(document.body, { childList: true, subtree: true });
    window.location.hash = "#/";
  });
  await option(page, "engine.txt").waitFor();
  expect(await box(page).evaluate((typed) => document.activeElement === typed)).toBe(true);
  await reader.leave();
});

test("closes its suggestions on Escape, and when the focus leaves it", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url);
  for (const leave of [() => page.keyboard.press("Escape"), () => page.getByRole("link", { name: "API" }).focus()]) {
    await box(page).fill("");
    await box(page).fill("engine");
    await option(page, "engine.txt").waitFor();
    await leave();
    await page.getByRole("listbox").waitFor({ state: "hidden" });
  }
  await reader.leave();
});

test.each([
  ["a file name", "annual report 2026.pdf", "By title or name"],
  ["a word of a title", "ENGINE", "notes/engine.txt"],
  ["a part of a name", "lovel", "Ada Lovelace"],
  ["a hash", HASH, "Annual Report 2026.pdf"],
  ["the beginning of a hash", HASH.slice(0, 6), "Annual Report 2026.pdf"],
  ["a number", "3", "Entry 3"],
  ["a tag", "finance", "With this tag"],
  ["a kind", "key regist", "All entries of the kind “Key registered”"],
  ["one of the known predicates", "authorship", "All entries of the kind “Authorship”"],
])("finds by %s", async (_, text, shown) => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/search");
  await found(page, text, shown);
  await reader.leave();
});

test("finds a key by its fingerprint and by the beginning of it, beside the entries about it", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/search");
  for (const text of [ada, ada.slice(0, "sha256:".length + 10), ada.slice("sha256:".length, "sha256:".length + 10)]) {
    await found(page, text, "By hash");
    const keys = page.getByRole("region", { name: "Keys" });
    await keys.getByRole("link", { name: "Ada Lovelace" }).waitFor();
    await page.getByRole("region", { name: "Entries", exact: true }).getByText("registered a key").waitFor();
  }
  await reader.leave();
});

test("says when nothing was found, and what is not searched", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/search?q=nothing%20like%20it");
  await page.getByText("Nothing was found.").first().waitFor();
  await reader.context.route(/title=/, (route) =>
    route.fulfill({
      status: 503,
      contentType: "application/problem+json",
      json: { type: "about:blank", title: "x", status: 503, code: "indexing", detail: "Titles are being filed." },
    }),
  );
  await found(page, "lovelace", "Titles are being filed.");
  await page.getByRole("region", { name: "Keys" }).getByText("Ada Lovelace").first().waitFor();
  await reader.leave();
});

test("fits every screen and every reader", () =>
  expectReadableEverywhere(service.url, "#/search?q=ada%20rep", "Nothing was found."));

test("results fit every screen and every reader", () =>
  expectReadableEverywhere(service.url, "#/search?q=ada", "By title or name"));
