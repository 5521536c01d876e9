/** Helpers for the explorer in a browser, and the requirements for every view. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";
import { openBrowser } from "./site/chromium.js";

export const DESKTOP = { width: 1280, height: 900 };
export const TELEPHONE = { width: 360, height: 740 };
/** A page looks every quarter of a minute, and the machine may be busy. */
const WAIT_MS = 90_000;

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A reader with separate cookies, storage and cache. */
export class Reader {
  readonly context: BrowserContext;
  /** Unexpected errors in pages; refusals of the service are not errors. */
  readonly complaints: string[] = [];

  private constructor(context: BrowserContext) {
    this.context = context;
  }

  /** Requests reduced motion unless `options` say otherwise, so that drawings are complete at once. */
  static async arrive({
    hasWasm = true,
    ...options
  }: BrowserContextOptions & { hasWasm?: boolean } = {}): Promise<Reader> {
    const browser = await openBrowser({ hasWasm });
    const context = await browser.newContext({
      viewport: DESKTOP,
      reducedMotion: "reduce",
      locale: "en-GB",
      ...options,
    });
    context.setDefaultTimeout(WAIT_MS);
    return new Reader(context);
  }

  /** Opens an address of the explorer at `url`. */
  async open(url: string, address = "#/"): Promise<Page> {
    const page = await this.context.newPage();
    page.on("pageerror", (error) => this.complaints.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
        this.complaints.push(message.text());
    });
    await page.goto(`${url}/${address}`);
    return page;
  }

  async leave(): Promise<void> {
    // Nobody needs an answer that is still being rewritten.
    await this.context.unrouteAll({ behavior: "ignoreErrors" });
    await this.context.close();
    expect(this.complaints).toEqual([]);
  }
}

/** Asserts that axe finds no barrier and that nothing is wider than the screen. */
export async function expectReadable(page: Page): Promise<void> {
  await page.evaluate(`${AXE};0`);
  const violations = await page.evaluate(async () => {
    const axe = (globalThis as unknown as { axe: typeof import("axe-core") }).axe;
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`);
  });
  expect(violations).toEqual([]);
  const [needed, given] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  expect(needed).toBeLessThanOrEqual(given!);
}

/**
 * An address in both colour schemes, on a desktop and on a telephone. `ready` is what the view shows when it is
 * complete.
 */
export async function expectReadableEverywhere(url: string, address: string, ready: string): Promise<void> {
  for (const options of [
    { colorScheme: "light", viewport: DESKTOP },
    { colorScheme: "dark", viewport: TELEPHONE },
  ] as const) {
    const reader = await Reader.arrive(options);
    const page = await reader.open(url, address);
    await page.getByText(ready).first().waitFor();
    await expectReadable(page);
    await reader.leave();
  }
}
