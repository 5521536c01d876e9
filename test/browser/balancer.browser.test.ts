/** A page behind a balancer, whose requests go to nodes of which one has less of the log than the others have shown. */
import { beforeAll, expect, test } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { sayingEvent } from "../anyevent.js";
import { newClient } from "../client/clients.js";
import { newMonitor } from "../monitor/monitors.js";
import { startTestService, type TestService } from "../server/harness.js";
import { Reader } from "./explorer.js";

const append = ({ server }: TestService, name: string) =>
  server.registry.log.append(Array.from({ length: 30 }, (_, i) => sayingEvent(`${name} ${i + 1}`)));

/** A node that has all that `writer` has now, and stays there. */
async function mirrorOf(writer: TestService): Promise<TestService> {
  const { monitor, folder } = newMonitor(writer.url);
  await monitor.round();
  monitor.close();
  return startTestService({ SERVICE_DATA_DIR: folder.mirror, SERVICE_READ_ONLY: "on" });
}

let writer: TestService;
let mirror: TestService;
beforeAll(async () => {
  writer = await startTestService();
  await append(writer, "early");
  mirror = await mirrorOf(writer);
  await append(writer, "late");
});

/** Sends every second request for what `path` fits to a mirror, beginning with the first. @returns how many it got */
async function balance(reader: Reader, path: RegExp, mirror: TestService): Promise<() => number> {
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
  const sent = await balance(reader, /\/log\?|\/log\/head/, mirror);
  const page = await reader.open(writer.url, address);
  const alarm = page.getByRole("alert", { name: "Alarm" });
  await page.getByRole("main").getByText(text).or(alarm).first().waitFor();
  expect(await alarm.allInnerTexts()).toEqual([]);
  await page.locator(".verdict-good").waitFor();
  expect(sent()).toBeGreaterThan(0);
  await reader.leave();
});

test("what was withheld since a node has looked is no contradiction", async () => {
  const own = await startTestService();
  const { receipt } = await newClient(own.url).client.attest(
    { title: "Quince jelly", content_hash: "ab".repeat(32), tags: ["jam"] },
    { pseudonym: "Ada" },
  );
  const slow = await mirrorOf(own);
  const reader = await Reader.arrive();
  const isOf = ({ log_entry_id: id }: typeof receipt) => new RegExp(`/log/${id}(?:/proof)?$`);
  const sent = await balance(reader, isOf(receipt), slow);
  // The page has seen nothing newer than the node has.
  await reader.context.route("**/api/v1/log/sth", async (route) => {
    await route.fulfill({ response: await route.fetch({ url: `${slow.url}/api/v1/log/sth` }) });
  });
  const page = await reader.open(own.url);
  await page.locator(".verdict-good").waitFor();
  await withhold(own.server.registry, receipt.log_entry_id, { reason: "An order.", basis: null });
  await page.goto(`${own.url}/#/entries`);
  const alarm = page.getByRole("alert", { name: "Alarm" });
  await page.getByRole("main").getByText("Withheld by the operator").or(alarm).first().waitFor();
  expect(await alarm.allInnerTexts()).toEqual([]);
  expect(sent()).toBeGreaterThan(0);
  await reader.leave();
});
