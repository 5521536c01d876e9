/** The page at /docs in a browser: it fits the screen, opens the target of a link, searches, and is accessible. */
import axe from "axe-core";
import type { BrowserContextOptions } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { startTestService, type TestService } from "../server/harness.js";
import { openBrowser } from "./site/chromium.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

async function opened(options: BrowserContextOptions) {
  const context = await (await openBrowser()).newContext({ ...options, reducedMotion: "reduce" });
  const tab = await context.newPage();
  const asked: string[] = [];
  tab.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await tab.goto(`${service.url}/docs#post_keys_register`);
  return { context, tab, asked };
}

test.each([1280, 380])(
  "%i pixels wide and without scripts, it fits, and opens the section of a link",
  async (width) => {
    const { context, tab, asked } = await opened({ viewport: { width, height: 800 }, javaScriptEnabled: false });
    expect(asked).toEqual(["/docs", "/docs/style.css"]);
    const operation = tab.locator("details.operation[open]", { has: tab.locator("#post_keys_register") });
    await expect.poll(() => operation.count()).toBe(1);
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(width);
    await context.close();
  },
);

test("without scripts, it finds operations, and leads back to the log", async () => {
  const { context, tab } = await opened({ viewport: { width: 380, height: 800 }, javaScriptEnabled: false });
  await tab.getByRole("searchbox", { name: "Search operations" }).fill("reveal claim");
  await tab.getByRole("button", { name: "Search" }).click();
  await tab.waitForURL("**/docs?search=reveal+claim");
  expect(await tab.locator("details.operation:not(.schema) .path").allTextContents()).toEqual([
    "/api/v1/claims/{entry_id}/reveal",
  ]);
  expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(380);
  await tab.getByRole("link", { name: "The log" }).click();
  await tab.waitForURL(`${service.url}/`);
  await context.close();
});

test.each(["light", "dark"] as const)("%s, it is accessible", async (colorScheme) => {
  const { context, tab } = await opened({ viewport: { width: 380, height: 800 }, colorScheme });
  await tab.evaluate(axe.source);
  const found = await tab.evaluate(`axe.run({ include: ["header", "nav", "details.operation[open]"] })`);
  const { violations, passes } = found as axe.AxeResults;
  expect(passes.map(({ id }) => id)).toContain("color-contrast");
  expect(violations.map(({ id, nodes }) => [id, nodes[0]!.html])).toEqual([]);
  await context.close();
});
