/** The checkpoint for other tools in a browser: its key, who has cosigned it and who is late, and proof files of entries. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import {
  checkEntry,
  parsePolicy,
  parseTlogProof,
  rfc6962,
  verifyByPolicy,
  verifyTlogProof,
} from "#cairnlog/engine/verify/index.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService } from "../server/harness.js";
import { newNoteSigner } from "../verify/note/notes.js";
import { newCosignedDirectory, ORIGIN, startCosigned } from "../witness/cosigned.js";
import { startTestWitness } from "../witness/harness.js";
import { expectReadable, expectReadableEverywhere, Reader } from "./explorer.js";

/** A witness is late after ten seconds, and the page looks at least every fifteen. */
const COUNT = 5;

const append = (service: TestService, count: number) =>
  service.server.registry.log.append(Array.from({ length: count }, (_, i) => anyEvent({ i })));
const cardOf = (page: Page) => page.getByRole("region", { name: "Checkpoint and witnesses" });
const rows = (page: Page) =>
  cardOf(page)
    .locator("tbody tr")
    .evaluateAll((lines) =>
      lines.map((line) => [...line.children].slice(0, 3).map((cell) => (cell as HTMLElement).innerText)),
    );

let service: TestService;
let policy: string;
let vkey: string;
beforeAll(async () => {
  const { dataDir, signer } = newCosignedDirectory();
  const [a, b] = await Promise.all(
    (
      [
        ["a.example", "ed25519"],
        ["b.example", "ml-dsa-44"],
      ] as const
    ).map(([name, algorithm]) => startTestWitness([{ signer }], { name, algorithm })),
  );
  const dead = newNoteSigner("dead.example", 4);
  vkey = signer.vkey;
  policy = [
    `log ${vkey}`,
    `witness A ${a!.running.vkey} ${a!.url}`,
    `witness B ${b!.running.vkey} ${b!.url}`,
    `witness C ${dead.vkey} http://127.0.0.1:9`,
    "group G 2 A B C",
    "quorum G\n",
  ].join("\n");
  service = await startCosigned(dataDir, policy);
  await append(service, COUNT);
});

describe("the checkpoint", () => {
  test("fits every screen and every reader", () => expectReadableEverywhere(service.url, "#/", "2 of 3 signed"));

  test("is shown with its key, with the witnesses that signed it, and with the one that is late", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url);
    const card = cardOf(page);
    await card.locator("tbody tr").nth(2).getByText("Late").waitFor();
    expect(await rows(page)).toEqual([
      ["A", "Signed", String(COUNT)],
      ["B", "Signed", String(COUNT)],
      ["C", "Late", "–"],
    ]);
    const said = await card.innerText();
    for (const text of [ORIGIN, vkey, "as this page has verified", "2 of 3 signed"]) expect(said).toContain(text);
    await expectReadable(page);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      card.getByRole("button", { name: "Download the checkpoint" }).click(),
    ]);
    const verdict = await verifyByPolicy(readFileSync(await download.path(), "utf8"), parsePolicy(policy));
    expect(verdict).toMatchObject({ hasQuorum: true, checkpoint: { origin: ORIGIN, treeSize: COUNT } });
    await reader.leave();
  });

  test("is followed while the page is open", async () => {
    const reader = await Reader.arrive();
    const growing = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
    await append(growing, 3);
    const page = await reader.open(growing.url);
    await cardOf(page).getByText("No witness is asked").waitFor();
    await append(growing, 4);
    await cardOf(page).getByText("7", { exact: true }).waitFor();
    await reader.leave();
  });

  test("counts no signature of a witness by another key than the service names, and none whose key it cannot be told", async () => {
    const reader = await Reader.arrive();
    const other = newNoteSigner("a.example", 4).vkey;
    await reader.context.route("**/readyz", async (route) => {
      const response = await route.fetch();
      const ready = await response.json();
      ready.witnesses[0].vkey = other;
      await route.fulfill({ response, json: ready });
    });
    const page = await reader.open(service.url);
    await cardOf(page).getByText("1 of 4 signed").waitFor();
    expect((await rows(page)).map(([name, state]) => [name, state])).toEqual([
      ["A", expect.stringMatching(/^(Not yet|Late)$/)],
      ["B", "Signed"],
      ["C", expect.stringMatching(/^(Not yet|Late)$/)],
      ["a.example", "Not checked"],
    ]);
    await page.close();
    await reader.context.unroute("**/readyz");
    // The probes have an address of their own.
    await reader.context.route("**/readyz", (route) => route.fulfill({ status: 404, body: "" }));
    const apart = await reader.open(service.url);
    await cardOf(apart).getByText("2 not checked").waitFor();
    // In the order in which they signed.
    expect((await rows(apart)).map(([name, state]) => [name, state]).sort()).toEqual([
      ["a.example", "Not checked"],
      ["b.example", "Not checked"],
    ]);
    await reader.leave();
  });
});

describe("a cosignature", () => {
  const x = newNoteSigner("x.example", 4);
  const now = () => Math.floor(Date.now() / 1000);
  const older = (text: string) => text.replace(`\n${COUNT}\n`, `\n${COUNT - 1}\n`);
  test.each<[string, (text: string) => string, number | null, string, string]>([
    ["of now is counted", (text) => x.line(text, now()), null, "Signed", "1 of 1 signed"],
    ["of an older checkpoint is not", (text) => x.line(older(text), now()), null, "Not yet", "0 of 1 signed"],
    ["of tomorrow is late", (text) => x.line(text, now() + 86_400), null, "Late", "0 of 1 signed, 1 late"],
    ["of no time that there is, is late", (text) => x.line(text, 2 ** 53 - 1), null, "Late", "0 of 1 signed, 1 late"],
    ["that the service dates to no such time is late", () => "", 2 ** 53 - 1, "Late", "0 of 1 signed, 1 late"],
    ["that the service dates to before all times is late", () => "", -(2 ** 53 - 1), "Late", "0 of 1 signed, 1 late"],
  ])("%s", async (_, line, cosigned_at, state, words) => {
    const newest = async () => (await service.send("GET", "/tlog/checkpoint")).text;
    await expect.poll(newest).toContain(`\n${COUNT}\n`);
    const note = await newest();
    const [text, own] = [note.slice(0, note.indexOf("\n\n") + 1), note.split("\n").find((one) => one.startsWith("—"))!];
    const reader = await Reader.arrive();
    await reader.context.route("**/tlog/checkpoint", (route) =>
      route.fulfill({ body: `${text}\n${own}\n${line(text)}`, contentType: "text/plain; charset=utf-8" }),
    );
    await reader.context.route("**/readyz", async (route) => {
      const response = await route.fetch();
      const ready = await response.json();
      const told = { name: "X", vkey: x.vkey, tree_size: COUNT, cosigned_at, late: false };
      ready.witnesses = [{ ...ready.witnesses[0], ...told }];
      await route.fulfill({ response, json: ready });
    });
    const page = await reader.open(service.url);
    await cardOf(page).getByText(words).waitFor();
    expect((await rows(page)).map(([name, shown]) => [name, shown])).toEqual([["X", state]]);
    await reader.leave();
  });
});

describe("a witness that dies", () => {
  test("is late, although the checkpoint that is shown has its signature; the page says what is not witnessed yet", async () => {
    const { dataDir, signer } = newCosignedDirectory();
    const start = (name: string) => startTestWitness([{ signer }], { name });
    const [a, b] = await Promise.all([start("a.example"), start("b.example")]);
    const lines = [
      `log ${signer.vkey}`,
      `witness A ${a.running.vkey} ${a.url}`,
      `witness B ${b.running.vkey} ${b.url}`,
      "group G 2 A B",
      "quorum G\n",
    ];
    const dying = await startCosigned(dataDir, lines.join("\n"));
    await append(dying, COUNT);
    const reader = await Reader.arrive();
    const page = await reader.open(dying.url);
    const verdict = page.locator("main .verdict");
    await verdict.getByText("The log of 5 entries is verified. Witnessed by A and B.").waitFor();
    expect(await verdict.getAttribute("class")).toContain("verdict-good");
    await a.running.close();
    await append(dying, 12);
    await verdict.getByText("12 newest entries not witnessed yet; A is late.").waitFor();
    expect(await verdict.getAttribute("class")).toContain("verdict-open");
    // Of the checkpoint that has both signatures.
    expect(await rows(page)).toEqual([
      ["A", "Late", String(COUNT)],
      ["B", "Signed", "17"],
    ]);
    expect(await cardOf(page).innerText()).toContain("1 of 2 signed, 1 late");
    const bar = page.getByRole("region", { name: "The newest tree head" });
    await bar.getByText(`Witnessed up to entry ${COUNT}`, { exact: true }).waitFor();
    const meter = bar.getByRole("meter", { name: "Entries that are witnessed" });
    expect(await meter.evaluate(({ value, max }: HTMLMeterElement) => [value, max])).toEqual([COUNT, 17]);
    await expectReadable(page);
    await reader.leave();
  });

  test("is late when it has not signed for a quarter of an hour, even if the service does not say so", async () => {
    const reader = await Reader.arrive();
    await reader.context.addInitScript(() => {
      const { now } = Date;
      Date.now = () => now() + 20 * 60_000;
    });
    await reader.context.route("**/readyz", async (route) => {
      const response = await route.fetch();
      const ready = await response.json();
      for (const witness of ready.witnesses) witness.late = false;
      await route.fulfill({ response, json: ready });
    });
    const page = await reader.open(service.url);
    await page.locator("main .verdict-open").getByText("A and B are late by the clock of this browser.").waitFor();
    await reader.leave();
  });
});

test("the proof file of an entry holds by the policy, with what its witnesses signed", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/entries/3");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download for other tools (.tlog-proof)" }).click(),
  ]);
  expect(download.suggestedFilename()).toBe("3.tlog-proof");
  const proof = parseTlogProof(readFileSync(await download.path(), "utf8"));
  const entry = JSON.parse(new TextDecoder().decode(proof.extra!));
  expect([entry.id, checkEntry(entry)]).toEqual([3, []]);
  const leafHash = rfc6962.leafHash(new TextEncoder().encode(entry.entry_hash));
  const verdict = await verifyTlogProof(proof, leafHash, parsePolicy(policy));
  expect(verdict).toMatchObject({ isValid: true, hasQuorum: true });
  await reader.leave();
});

test("no proof file is made from tiles that do not make the root: the page raises an alarm", async () => {
  const reader = await Reader.arrive();
  await reader.context.route("**/tlog/tile/**", async (route) => {
    const response = await route.fetch();
    const body = await response.body();
    body[0]! ^= 1;
    await route.fulfill({ response, body });
  });
  const page = await reader.open(service.url, "#/entries/3");
  await page.getByRole("button", { name: "Download for other tools (.tlog-proof)" }).click();
  await page.getByRole("alert", { name: "Alarm" }).getByText("This log misbehaves").waitFor();
  await reader.leave();
});
