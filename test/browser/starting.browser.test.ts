/** The page starts in browsers that have less than others, and below a path; where it cannot start, it says why. */
import { createHash } from "node:crypto";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { newClient } from "../client/clients.js";
import { startTestService, type TestService } from "../server/harness.js";
import { Reader } from "./explorer.js";
import { startBelow } from "./site/site.js";

const FILE = Buffer.from("Straße: a file");

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
  const { client } = newClient(service.url);
  await client.keys.register({ pseudonym: "Ada Gödel" });
  await client.attest({ title: "Straße", content_hash: createHash("sha256").update(FILE).digest("hex") });
});

/** Opens each view that computes something, and has a file checked. */
async function walk(page: Page): Promise<void> {
  await page.getByText("Log verified").waitFor();
  await page.getByRole("link", { name: "Entries", exact: true }).click();
  await page.getByText("All 2 are in the log").waitFor();
  await page.getByRole("link", { name: /Straße/ }).click();
  await page.getByText("The log proves that this was recorded").waitFor();
  await page.getByText("Compute the way").click();
  await page.getByText("They are equal: the entry is in the log.").waitFor();
  await page.getByRole("link", { name: "File", exact: true }).click();
  await page.locator("input[type=file]").first().setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: FILE });
  await page.getByText("This file was signed by").waitFor();
}

test("in a browser without WebAssembly everything is verified as in others", async () => {
  const reader = await Reader.arrive({ hasWasm: false });
  const page = await reader.open(service.url);
  expect(await page.evaluate(() => typeof WebAssembly)).toBe("undefined");
  await walk(page);
  await reader.leave();
});

test("in a browser of 2022 everything is verified as in others", async () => {
  const reader = await Reader.arrive();
  await reader.context.addInitScript(() => {
    const newer: readonly [object, readonly string[]][] = [
      [String.prototype, ["isWellFormed", "toWellFormed"]],
      [Array.prototype, ["findLast", "findLastIndex", "toReversed", "toSorted", "toSpliced", "with"]],
      [Object.getPrototypeOf(Uint8Array.prototype), ["findLast", "findLastIndex", "toReversed", "toSorted", "with"]],
      [Array, ["fromAsync"]],
      [Object, ["groupBy"]],
      [Map, ["groupBy"]],
      [Promise, ["withResolvers", "try"]],
      [AbortSignal, ["any"]],
      [Set.prototype, ["union", "intersection", "difference", "isSubsetOf", "isSupersetOf", "isDisjointFrom"]],
      [Uint8Array, ["fromBase64", "fromHex"]],
      [Uint8Array.prototype, ["toBase64", "toHex"]],
      [globalThis, ["Iterator"]],
    ];
    for (const [owner, names] of newer) for (const name of names) Reflect.deleteProperty(owner, name);
  });
  const page = await reader.open(service.url);
  await walk(page);
  await reader.leave();
});

test("below a path it is complete, and remembers its log apart from others of the address", async () => {
  const url = await startBelow("/log/", service.url);
  const reader = await Reader.arrive();
  const outside: string[] = [];
  reader.context.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("blob:")) outside.push(request.url());
  });
  const page = await reader.open(url.replace(/\/$/, ""));
  await walk(page);
  expect(await page.getByRole("link", { name: "API" }).evaluate((link: HTMLAnchorElement) => link.href)).toBe(
    `${url}docs`,
  );
  expect(
    await page.evaluate(() => Object.keys(localStorage).filter((key) => !key.startsWith("cairnlog/log."))),
  ).toEqual([]);
  expect(outside).toEqual([]);
  await reader.leave();
});

describe("before it runs, and where it does not", () => {
  const MAIN = /\/explorer\/index-[^/]+\.js$/;
  const starting = "This page proves the log in your own browser. It is starting";

  test("it says that it is starting, until it has started", async () => {
    const reader = await Reader.arrive();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await reader.context.route(MAIN, async (route) => {
      await held;
      await route.continue();
    });
    const page = await reader.context.newPage();
    await page.goto(service.url, { waitUntil: "commit" });
    await page.getByText(starting).waitFor();
    release();
    await page.getByText("Log verified").waitFor();
    expect(await page.getByText(starting).count()).toBe(0);
    await reader.leave();
  });

  test("without JavaScript it says what it takes, and what does without", async () => {
    const reader = await Reader.arrive({ javaScriptEnabled: false });
    const page = await reader.open(service.url);
    expect(await page.locator("noscript").innerText()).toContain("JavaScript, which is switched off here.");
    expect(await page.getByRole("link", { name: "api/v1/log" }).getAttribute("href")).toBe("api/v1/log");
    await reader.leave();
  });

  test.each([
    ["its script", MAIN],
    ["what its views share", /\/explorer\/shared-[^/]+\.js$/],
  ])("where %s cannot be loaded, it says so", async (_, part) => {
    const reader = await Reader.arrive();
    await reader.context.route(part, (route) => route.fulfill({ status: 404, body: "" }));
    const page = await reader.context.newPage();
    await page.goto(service.url);
    await page.getByText("This page did not start: a part of it could not be loaded.").waitFor();
    await reader.leave();
  });

  test("where the browser does not know its language, it says so", async () => {
    const reader = await Reader.arrive();
    await reader.context.route(MAIN, (route) =>
      route.fulfill({ contentType: "text/javascript", body: "let newer = #{};" }),
    );
    const page = await reader.context.newPage();
    await page.goto(service.url);
    await page.getByText("This page did not start: this browser cannot run it").waitFor();
    await reader.leave();
  });
});
