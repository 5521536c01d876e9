/** A page behind a balancer, whose requests go to nodes of which one has less of the log than the others have shown. */
import { beforeAll, expect, test } from "vitest";
import { sayingEvent } from "../anyevent.js";
import { newMonitor } from "../monitor/monitors.js";
import { startTestService, type TestService } from "../server/harness.js";
import { Reader } from "./explorer.js";

const append = ({ server }: TestService, name: string) =>
  server.registry.log.append(Array.from({ length: 30 }, (_, i) => sayingEvent(`${name} ${i + 1}`)));

let writer: TestService;
let mirror: TestService;
beforeAll(async () => {
  writer = await startTestService();
  await append(writer, "early");
  const { monitor, folder } = newMonitor(writer.url);
  await monitor.round();
  monitor.close();
  mirror = await startTestService({ SERVICE_DATA_DIR: folder.mirror, SERVICE_READ_ONLY: "on" });
  await append(writer, "late");
});

/** Sends every second request for what `path` fits to the mirror, beginning with the first. @returns how many it got */
async function balance(reader: Reader, path: RegExp): Promise<() => number> {
  const turns = new Map<string, number>();
  let sent = 0;
  await reader.context.route("**/api/v1/**", async (route) => {
    const { pathname, search } = new URL(route.request().url());
    const turn = turns.get(pathname + search) ?? 0;
    turns.set(pathname + search, turn + 1);
    if (turn % 2 || !path.test(pathname + search)) return route.fallback();
    sent++;
    return route.fulfill({ response: await route.fetch({ url: mirror.url + pathname + search }) });
  });
  return () => sent;
}

test.each([
  ["the head", "#/", "late 30"],
  ["the list of entries", "#/entries", "late 30"],
  ["an entry", "#/entries/60", "late 30"],
  ["an entry that the slow node does not have, by its list", "#/entries/41", "late 11"],
])("%s: a node that is behind is asked again, and nobody accuses the log", async (_, address, text) => {
  const reader = await Reader.arrive();
  const sent = await balance(reader, /\/log\?|\/log\/head/);
  const page = await reader.open(writer.url, address);
  const alarm = page.getByRole("alert", { name: "Alarm" });
  await page.getByRole("main").getByText(text).or(alarm).first().waitFor();
  expect(await alarm.allInnerTexts()).toEqual([]);
  await page.locator(".verdict-good").waitFor();
  expect(sent()).toBeGreaterThan(0);
  await reader.leave();
});
