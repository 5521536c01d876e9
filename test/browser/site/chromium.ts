/** A Chromium for tests, with a profile of its own that is deleted afterwards. */
import { type Browser, chromium } from "playwright-core";
import { afterAll } from "vitest";

/** Debian's Chromium, or the one in the environment. */
const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** A root in a container cannot have the sandbox; nothing but the tests' own pages is opened. */
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

/** The browser of this file's tests, started when it is first asked for and closed after them. */
export function openBrowser(): Promise<Browser> {
  browser ??= chromium.launch({ executablePath: EXECUTABLE, args: ARGUMENTS });
  return browser;
}
