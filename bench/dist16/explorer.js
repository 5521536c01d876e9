/**
 * The explorer in Chromium: the time until a first visit shows a verified head, and the longest task of the page,
 * during which the page cannot answer the reader, while 1000 entries arrive.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readSettings, startServer } from "cairnlog/server";
import { chromium } from "playwright-core";
import { median, spread } from "./stats.js";
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const VISITS = 5;
const ENTRIES = 1000;
/** They arrive over about ten seconds, so that the page polls several times. */
const BATCH = 10;
const PAUSE_MS = 100;
const VIEWS = ["#/", "#/entries"];
/** The tick beside "signed": the head is shown, and its signature was verified. */
const PROVEN = ".head-verdicts .verdict-good";
const append = ({ registry }, count, what) => registry.log.append(Array.from({ length: count }, (_, i) => ({ event_type: "build", payload: { artifact: `${what} ${i}.tar.gz` } })));
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
async function visit(browser, url) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    await context.addInitScript(observer);
    const page = await context.newPage();
    await page.goto(url);
    return page;
}
const startOf = (page, name) => page.evaluate((name) => performance.getEntriesByName(name)[0].startTime, name);
const longestTask = async (page) => Math.max(0, ...(await page.evaluate(() => globalThis.longTasks)));
/** Milliseconds from the start of the navigation. */
async function firstViews(browser, { url }) {
    const [painted, proven, longest] = [[], [], []];
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
/** Longest task of a view, in milliseconds, from opening it until it has shown or announced all new entries. */
async function whileTheyArrive(browser, server, view) {
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
export const suite = {
    summary: "the explorer in Chromium: first view, and its longest task while entries arrive",
    async run() {
        if (!existsSync(CHROMIUM)) {
            console.log(`\nThe explorer: not measured, there is no ${CHROMIUM} (CHROMIUM names another)`);
            return null;
        }
        const dataDir = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
        const settings = { PORT: "0", SERVICE_DATA_DIR: dataDir, SERVICE_RATE_LIMITS: "off", LOG_LEVEL: "silent" };
        const server = await startServer(readSettings(settings));
        const browser = await chromium.launch({
            executablePath: CHROMIUM,
            args: ["--headless", "--no-sandbox", "--disable-gpu", "--lang=en"],
        });
        try {
            await append(server, ENTRIES, "before");
            const { painted, proven, longest } = await firstViews(browser, server);
            const arrivals = {};
            for (const view of VIEWS)
                arrivals[view] = await whileTheyArrive(browser, server, view);
            console.log(`\nThe explorer, ${VISITS} first visits to a log of ${ENTRIES.toLocaleString("en")} entries; ms`);
            console.table({
                "first contentful paint": { ms: spread(painted, 0) },
                "head shown and proven": { ms: spread(proven, 0) },
                "longest task until then": { ms: spread(longest, 0) },
                ...Object.fromEntries(Object.entries(arrivals).map(([view, ms]) => [
                    `longest task of ${view} while ${ENTRIES} entries arrive`,
                    { ms: ms === 0 ? "none of 50 or more" : ms.toFixed(0) },
                ])),
            });
            return { painted: median(painted), proven: median(proven), longest: median(longest), arrivals };
        }
        finally {
            await browser.close();
            await server.close();
            rmSync(dataDir, { recursive: true, force: true });
        }
    },
};
//# sourceMappingURL=explorer.js.map