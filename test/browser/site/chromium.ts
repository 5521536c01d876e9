/** A Chromium for tests, with its own profile, which is deleted afterwards. */
import { type Browser, chromium } from "playwright-core";
import { afterAll } from "vitest";

/** Debian's Chromium, or the one in the environment. */
const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Root in a container cannot use the sandbox. Only the tests' own pages are opened. */
const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

let browser: Promise<Browser> | undefined;
afterAll(async () => {
  await (await browser)?.close();
});

/** The browser for this file's tests. It is started on first use and closed after them. */
export function openBrowser(): Promise<Browser> {
  browser ??= chromium.launch({ executablePath: EXECUTABLE, args: ARGUMENTS });
  return browser;
}
