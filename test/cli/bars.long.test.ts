/** The bars that long work draws on a terminal: what they say, and that each is removed before anything else is shown. */
import { mkdirSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import timers from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { anyEvent } from "../anyevent.js";
import { LyingProxy } from "../client/proxy.js";
import { chain } from "../log/history/entries.js";
import { startTestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { begin, cairnlog, interrupt } from "./harness.js";

/** Removes what the line shows. */
const CLEAR = "\r\x1b[K";
const bar = (text: string, filled = 30) => `${CLEAR}[${"#".repeat(filled)}${"-".repeat(30 - filled)}] ${text}`;

/** stderr is a terminal, and each look at the clock is a tenth of a second after the one before. */
let wasTerminal: boolean;
let now: number;
let step: number;
beforeEach(() => {
  wasTerminal = process.stderr.isTTY;
  process.stderr.isTTY = true;
  now = Date.now();
  step = 101;
  vi.spyOn(Date, "now").mockImplementation(() => {
    now += step;
    return now;
  });
});
afterEach(() => {
  process.stderr.isTTY = wasTerminal;
  vi.restoreAllMocks();
});

test("a bar is gone before the result is printed", async () => {
  const folder = temporaryFolder();
  const at = (name: string) => join(folder, name);
  writeFileSync(
    at("history"),
    chain([{}, {}])
      .map((entry) => `${JSON.stringify(entry)}\n`)
      .join(""),
  );
  for (const args of [
    ["import", at("history"), "--data", at("data")],
    ["backup", "--data", at("data"), "--to", at("backup")],
    ["restore", at("backup"), "--to", at("again"), "--may-fork"],
    ["fsck", "--data", at("again")],
  ]) {
    const run = begin(args);
    expect(await run.ended).toMatchObject({ code: 0 });
    // The line is empty when the result begins, and no bar comes after it.
    const result = run.shown.slice(run.shown.lastIndexOf(CLEAR) + CLEAR.length);
    expect(run.shown).toContain("[");
    expect(result, args[0]).toMatch(/^(?:imported|\d+ entries)/);
  }
});

test("import, backup, restore and fsck", async () => {
  const folder = temporaryFolder();
  const at = (name: string) => join(folder, name);
  writeFileSync(
    at("history"),
    chain([{}, {}, {}])
      .map((entry) => `${JSON.stringify(entry)}\n`)
      .join(""),
  );
  const imported = await cairnlog(["import", at("history"), "--data", at("data")]);
  expect(imported.code).toBe(0);
  const [, size] = /of (\S+ KB) \(100 %\)/.exec(imported.stderr)!;
  expect(imported.stderr.startsWith(CLEAR)).toBe(true);
  expect(imported.stderr.endsWith(bar(`imported ${size} of ${size} (100 %)`) + CLEAR)).toBe(true);

  const backedUp = await cairnlog(["backup", "--data", at("data"), "--to", at("backup")]);
  expect(backedUp).toMatchObject({ code: 0, stderr: bar("Backing up: 0 of 3 (0 %)", 0) + CLEAR });

  const restored = await cairnlog(["restore", at("backup"), "--to", at("again"), "--may-fork"]);
  expect(restored).toMatchObject({ code: 0, stderr: bar("Restoring: 3 of 3 (100 %)") + CLEAR });

  const checked = await cairnlog(["fsck", "--data", at("data")]);
  const stages = ["Deriving: 3 of 3 (100 %)", "Verifying: 3 of 3 (100 %)"];
  expect(checked).toMatchObject({ code: 0, stderr: stages.map((text) => bar(text) + CLEAR).join("") });
});

test("backup and export have one bar, which is drawn again after a tenth of a second", async () => {
  const { url, server } = await startTestService();
  for (let half = 0; half < 2; half++) await server.registry.log.append(Array(600).fill(anyEvent()));
  const proxy = await LyingProxy.before(url);
  step = 0;
  proxy.lie = (path, answer) => {
    if (path.startsWith("/audit/export")) now += 100;
    return answer;
  };
  const folder = temporaryFolder();
  const at = (name: string) => join(folder, name);
  const exported = await cairnlog(["export", "--server", proxy.url, "--out", at("log")]);
  const drawn = bar("Exporting: 1200 of 1200 (100 %)") + CLEAR;
  expect(exported).toMatchObject({ code: 0, stderr: `${drawn}1200 entries in ${at("log")}\n` });

  expect(await cairnlog(["import", at("log"), "--data", at("data")])).toMatchObject({ code: 0 });
  step = 60;
  const { code, stderr } = await cairnlog(["backup", "--data", at("data"), "--to", at("backup")]);
  expect(code).toBe(0);
  expect(stderr.replaceAll(CLEAR, "")).toMatch(/^\[#+-+\] Backing up: [1-9]\d* of 1200 \(\d+ %\)$/);
});

test("attest and export", async () => {
  const { url, server } = await startTestService();
  const folder = temporaryFolder();
  const at = (name: string) => join(folder, name);
  for (const name of ["a", "b", "c"]) writeFileSync(at(name), name);
  mkdirSync(at("b.attestation.json"));
  const key = join(temporaryFolder(), "me.pem");
  writeFileSync(key, newSigner().privateKey);
  const files = ["a", "b", "c"].map(at);
  const { code, stderr } = await cairnlog(["attest", ...files, "--key", key, "--server", url]);
  expect(code).toBe(1);
  const hashing = (i: number) =>
    bar(`Hashing ${files[i]}: 1 bytes of 1 bytes (100 %)`) +
    CLEAR +
    (i === 1 ? "" : bar(`Hashed: ${i + 1} of 3 (${i ? 100 : 33} %)`, 10 * (i + 1)));
  const [, pinned] = /(The operator key of .*\n)/.exec(stderr)!;
  const [, fault] = /(cairnlog: No receipt of .*EISDIR.*\n)/.exec(stderr)!;
  expect(stderr).toBe(
    [
      bar("Hashed: 0 of 3 (0 %)", 0), // Before the first file is read.
      ...[hashing(0), hashing(1), CLEAR, fault, hashing(2), CLEAR, pinned],
      ...[bar("Attested: 1 of 3 (33 %)", 10), CLEAR, bar("Attested: 2 of 3 (66 %)", 20), CLEAR],
      "1 of 3 files are not attested.\n",
    ].join(""),
  );

  await server.registry.log.append(Array(999).fill(anyEvent()));
  const exported = await cairnlog(["export", "--server", url, "--out", at("log")]);
  const pages = bar("Exporting: 1000 of 1002 (99 %)") + bar("Exporting: 1002 of 1002 (100 %)");
  expect(exported).toMatchObject({ code: 0, stderr: `${pages}${CLEAR}1002 entries in ${at("log")}\n` });
});

test("bench, in six equal parts", async () => {
  // Its log believes no clock that runs ahead. Each part takes longer than a bar waits.
  vi.mocked(Date.now).mockRestore();
  const { code, stderr } = await cairnlog(["bench", "--seconds", "1", "--json"]);
  expect(code).toBe(0);
  const shares = [...stderr.matchAll(/Measuring: ([01]) s of 1 s \((\d+) %\)/g)].map(([, , share]) => Number(share));
  // The parts are not exact in binary numbers.
  expect(shares).toEqual([16, 33, 50, 66, 83, expect.toSatisfy((last: number) => last === 99 || last === 100)]);
  expect(stderr.endsWith(CLEAR)).toBe(true);
});

describe("monitor", () => {
  test("shows what is verified, then what is compared, and removes the bar for an alarm", async () => {
    const { url, server } = await startTestService();
    const { fingerprint } = newSigner();
    await server.registry.log.append([...Array(201).fill(anyEvent()), anyEvent({ fingerprint })]);
    const round = ["monitor", url, "--state", temporaryFolder(), "--once", "--audit", "--watch", fingerprint];
    const some = (what: string) => String.raw`(?:\r\x1b\[K\[[#-]{30}\] ${what} \d+ of \d+ \(\d+ %\))+`;
    const clear = String.raw`\r\x1b\[K`;
    const first = await cairnlog(round);
    expect(first.stderr).toMatch(new RegExp(`^${some("verified")}${clear}ALARM watched: Entry 202 [^\r\n]*\n`));
    await server.registry.log.append(anyEvent());
    const { stderr } = await cairnlog(round);
    expect(stderr).toMatch(new RegExp(`^${some("verified")}${clear}${some("compared")}${clear}$`));
  });
});

test("monitor waits longer after each round that fails, up to ten minutes, and as usual after one that does not", async () => {
  const { url } = await startTestService();
  const proxy = await LyingProxy.before(url);
  proxy.seize = (_, response) => Boolean(response.end("<h1>It works!</h1>"));
  const pauses: unknown[] = [];
  const { setTimeout: sleep } = timers;
  timers.setTimeout = (async (ms: number) => {
    pauses.push(ms);
    if (pauses.length === 6) proxy.repent();
    if (pauses.length === 8) await interrupt();
  }) as typeof sleep;
  syncBuiltinESMExports();
  try {
    const run = begin(["monitor", proxy.url, "--state", temporaryFolder(), "--interval", "50"]);
    expect(await run.ended).toMatchObject({ code: 0 });
  } finally {
    timers.setTimeout = sleep;
    syncBuiltinESMExports();
  }
  expect(pauses).toEqual([100, 200, 400, 600, 600, 600, 50, 50].map((seconds) => seconds * 1000));
});
