/** A Chromium for tests, with its own profile, which is deleted afterwards. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { afterAll } from "vitest";

/** Debian's Chromium without a window, which takes half the CPU of the one with windows. */
const SHELL = "/usr/bin/chromium-headless-shell";
/** The one in the environment, or Debian's. */
const EXECUTABLE = process.env.CHROMIUM ?? (existsSync(SHELL) ? SHELL : "/usr/bin/chromium");

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

/** No compiler and no WebAssembly, as some browsers are for safety: Safari in Lockdown Mode, Tor, Edge in its strict mode. */
const WITHOUT_WASM = "--js-flags=--jitless";

const browsers = new Map<boolean, Promise<Browser>>();
afterAll(async () => {
  for (const browser of browsers.values()) await (await browser).close();
});

/** The browser for this file's tests. It is started on first use and closed after them. */
export function openBrowser({ hasWasm = true } = {}): Promise<Browser> {
  const args = hasWasm ? ARGUMENTS : [...ARGUMENTS, WITHOUT_WASM];
  const browser = browsers.get(hasWasm) ?? chromium.launch({ executablePath: EXECUTABLE, args });
  browsers.set(hasWasm, browser);
  return browser;
}
