/**
 * The explorer in Chromium: the time until a first visit shows a verified head, and the longest task of the page, during
 * which the page cannot answer the reader: when each view is opened, and while 1000 entries arrive.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, webCryptoSigner } from "cairnlog/client";
import { type RunningServer, startServer } from "cairnlog/server";
import { parsePublicKey } from "cairnlog/verify";
import { type Browser, chromium, type Page } from "playwright-core";
import { claim } from "./claim.js";
import { median, spread } from "./stats.js";
import type { Suite } from "./suite.js";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const VISITS = 5;
const ENTRIES = 1000;
/** They arrive over about ten seconds, so that the page polls several times. */
const BATCH = 10;
const PAUSE_MS = 100;
const VIEWS = ["#/", "#/entries"];
/** Keys in the graph of endorsements. */
const PEOPLE = 40;
/** The tick beside "signed": the head is shown, and its signature was verified. */
const PROVEN = ".head-verdicts .verdict-good";

const append = ({ registry }: RunningServer, count: number, what: string) =>
  registry.writer.append(Array.from({ length: count }, (_, i) => claim(`${what} ${i}.tar.gz`)));

/** Runs in the page: records when the head is verified, and every long task from the beginning on. */
const observer = `
  globalThis.longTasks = [];
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) globalThis.longTasks.push(duration);
  }).observe({ type: "longtask", buffered: true });
  new MutationObserver((_, self) => {
    if (!document.querySelector("${PROVEN}")) return;
    performance.mark("proven");
    self.disconnect();
  }).observe(document, { childList: true, subtree: true });`;

/** Opens an address with an empty cache and an empty memory. */
async function visit(browser: Browser, url: string): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  await context.addInitScript(observer);
  const page = await context.newPage();
  await page.goto(url);
  return page;
}

const startOf = (page: Page, name: string): Promise<number> =>
  page.evaluate((name) => performance.getEntriesByName(name)[0]!.startTime, name);

const longestTask = async (page: Page): Promise<number> =>
  Math.max(0, ...(await page.evaluate(() => (globalThis as unknown as { longTasks: number[] }).longTasks)));

/** Milliseconds from the start of the navigation. */
async function firstViews(browser: Browser, { url }: RunningServer) {
  const [painted, proven, longest]: [number[], number[], number[]] = [[], [], []];
  for (let i = 0; i < VISITS; i++) {
    const page = await visit(browser, `${url}/#/`);
    await page.locator(PROVEN).first().waitFor();
    painted.push(await startOf(page, "first-contentful-paint"));
    proven.push(await startOf(page, "proven"));
    longest.push(await longestTask(page));
    await page.context().close();
  }
  return { painted, proven, longest };
}

interface Person {
  readonly fingerprint: string;
  readonly client: ReturnType<typeof createClient>;
}

async function newPerson({ url }: RunningServer, pseudonym: string): Promise<Person> {
  const pair = (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
  const signer = await webCryptoSigner(pair);
  const client = createClient({ server: url, signer });
  await client.keys.register({ pseudonym });
  return { fingerprint: parsePublicKey(signer.publicKeyPem).fingerprint, client };
}

/** One endorses many, each of whom has attested a document. @returns the fingerprint of that one */
async function people(server: RunningServer): Promise<string> {
  const first = await newPerson(server, "First of the graph");
  for (let i = 0; i < PEOPLE; i++) {
    const { fingerprint, client } = await newPerson(server, `Person ${i}`);
    const offer = { endorsed_fingerprint: fingerprint, category: "x-service:human_attestation" } as const;
    await client.endorsements.accept((await first.client.endorsements.offer(offer)).entry.id, "Thank you.");
    await client.attest({ title: `Report ${i}.pdf`, content_hash: String(i).padStart(64, "0"), tags: ["bench"] });
  }
  return first.fingerprint;
}

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds, and those of them in which the thread had a processor. */
  readonly dur?: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

/**
 * Opens a view on a first visit, and what it computes only when it is asked to.
 * @returns the longest task of the page's thread, in milliseconds of time and of CPU; other work on the machine lengthens only
 *   the first
 */
async function longestOf(browser: Browser, url: string, view: string): Promise<{ ms: number; cpu: number }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await browser.startTracing(page, { categories: ["toplevel"] });
  await page.goto(`${url}/${view}`, { waitUntil: "networkidle" });
  await page.locator("main summary").evaluateAll((all) => {
    for (const summary of all as unknown as { click(): void }[]) summary.click();
  });
  await page.waitForLoadState("networkidle");
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  await context.close();
  const pages = traceEvents.filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain");
  const tasks = traceEvents.filter(
    ({ name, ph, pid, tid }) =>
      name.endsWith("RunTask") && ph === "X" && pages.some((thread) => thread.pid === pid && thread.tid === tid),
  );
  if (!tasks.length) throw new Error(`Chromium traced no task of ${view}`);
  const longest = (member: "dur" | "tdur") => Math.max(...tasks.map((task) => task[member] ?? 0)) / 1000;
  return { ms: longest("dur"), cpu: longest("tdur") };
}

/** Longest task of a view, in milliseconds, from opening it until it has shown or announced all new entries. */
async function whileTheyArrive(browser: Browser, server: RunningServer, view: string): Promise<number> {
  const page = await visit(browser, `${server.url}/${view}`);
  await page.locator(".entry").first().waitFor();
  for (let i = 0; i < ENTRIES; i += BATCH) {
    await append(server, BATCH, `arrival ${i}`);
    await sleep(PAUSE_MS);
  }
  const size = server.registry.log.size;
  const shown = new Intl.NumberFormat("en").format(view === "#/" ? size : ENTRIES);
  await page
    .getByText(view === "#/" ? shown : `Show ${shown} newer`)
    .first()
    .waitFor();
  const longest = await longestTask(page);
  await page.context().close();
  return longest;
}

export const suite: Suite = {
  summary: "the explorer in Chromium: first view, and its longest task in each view and while entries arrive",
  async run() {
    if (!existsSync(CHROMIUM)) {
      console.log(`\nThe explorer: not measured, there is no ${CHROMIUM} (CHROMIUM names another)`);
      return null;
    }
    const dataDir = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const server = await startServer({
      port: 0,
      dataDir,
      rateLimits: false,
      logLevel: "silent",
      // So that the graph can be made at once.
      endorsementActivationDelaySeconds: 0,
      endorsementMinTrust: 0,
      endorsementBaseCapacity: PEOPLE,
    });
    const browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: ["--headless", "--no-sandbox", "--disable-gpu", "--lang=en"],
    });
    try {
      await append(server, ENTRIES, "before");
      const { painted, proven, longest } = await firstViews(browser, server);
      const arrivals: Record<string, number> = {};
      for (const view of VIEWS) arrivals[view] = await whileTheyArrive(browser, server, view);
      const key = `#/keys/${await people(server)}`;
      const views: Record<string, { ms: number; cpu: number }> = {};
      for (const view of [
        "#/",
        "#/entries",
        "#/entries/500",
        "#/keys",
        key,
        "#/search?q=report",
        "#/file",
        "#/operator",
      ])
        views[view === key ? "#/keys/… with a graph" : view] = await longestOf(browser, server.url, view);
      console.log(`\nThe explorer, ${VISITS} first visits to a log of ${ENTRIES.toLocaleString("en")} entries; ms`);
      console.table({
        "first contentful paint": { ms: spread(painted, 0) },
        "head shown and proven": { ms: spread(proven, 0) },
        "longest task until then": { ms: spread(longest, 0) },
        ...Object.fromEntries(
          Object.entries(arrivals).map(([view, ms]) => [
            `longest task of ${view} while ${ENTRIES} entries arrive`,
            { ms: ms === 0 ? "none of 50 or more" : ms.toFixed(0) },
          ]),
        ),
      });
      console.log("\nThe longest task of each view when it is opened; ms, and ms of CPU");
      console.table(
        Object.fromEntries(
          Object.entries(views).map(([view, { ms, cpu }]) => [
            view,
            { ms: ms.toFixed(0), "ms of CPU": cpu.toFixed(0) },
          ]),
        ),
      );
      return { painted: median(painted), proven: median(proven), longest: median(longest), arrivals, views };
    } finally {
      await browser.close();
      await server.close();
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
};
