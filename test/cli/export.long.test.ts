/** `cairnlog export` of more entries than one request can reach. */

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { anyEvent } from "../anyevent.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { begin, cairnlog, interrupt } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
let service: TestService;
const ENTRIES = 23_456;

beforeAll(async () => {
  service = await startTestService();
  const { log } = service.server.registry;
  // Hundreds of entries share a timestamp, so that windows begin within such a group.
  for (let n = 0; n < ENTRIES; n += 700)
    await log.append(Array.from({ length: Math.min(700, ENTRIES - n) }, (_, i) => anyEvent({ n: n + i })));
});

test("NDJSON contains every entry once, in order, as the log serves it", async () => {
  const run = await cairnlog(["export", "--server", service.url, "--out", at("log.ndjson")]);
  expect(run).toMatchObject({ code: 0, stdout: "" });
  expect(run.stderr).toContain(`${ENTRIES} entries in`);
  const lines = readFileSync(at("log.ndjson"), "utf8").trimEnd().split("\n");
  expect(lines).toHaveLength(ENTRIES);
  lines.forEach((line, i) => {
    if (JSON.parse(line).id !== i + 1) throw new Error(`line ${i + 1} holds ${line}`);
  });
  expect(lines[12_345]).toBe((await service.get("/log/12346")).text);
});

test("CSV has one header and a line for each entry", async () => {
  const run = await cairnlog(["export", "--server", service.url, "--out", at("log.csv"), "--format", "csv"]);
  expect(run.code).toBe(0);
  const lines = readFileSync(at("log.csv"), "utf8").split("\r\n");
  expect(lines[0]).toMatch(/^id,timestamp,/);
  expect(lines).toHaveLength(ENTRIES + 2);
  expect(lines.filter((line) => line.startsWith("id,"))).toHaveLength(1);
});

test("each filter is asked for by its name, and no other", async () => {
  const proxy = await LyingProxy.before(service.url);
  const asked = async (...filters: string[]) => {
    const run = await cairnlog(["export", "--server", proxy.url, "--out", "-", ...filters]);
    expect(run).toMatchObject({ code: 0, stderr: "" });
    const [request, ...more] = proxy.asked.splice(0);
    expect(more).toEqual([]);
    return Object.fromEntries(new URLSearchParams(request!.replace("GET /audit/export?", "")));
  };
  const fingerprint = `sha256:${"a".repeat(64)}`;
  const hash = `sha256:${"b".repeat(64)}`;
  const dates = { start_date: "2020-01-01", end_date: "2020-12-31" };
  const every = ["--scope", "keys", "--fingerprint", fingerprint, "--document-hash", hash];
  const page_size = expect.stringMatching(/^\d+$/);
  expect(await asked(...every, "--start-date", dates.start_date, "--end-date", dates.end_date)).toEqual({
    ...dates,
    scope: "keys",
    fingerprint,
    document_hash: hash,
    page_size,
  });
  expect(await asked("--fingerprint", fingerprint)).toEqual({ fingerprint, page_size });
});

test("one that is broken off leaves no file, and can be repeated", async () => {
  const proxy = await LyingProxy.before(service.url);
  const run = () =>
    cairnlog(["export", "--server", proxy.url, "--out", at("broken.ndjson"), "--start-date", "2020-01-01"]);
  proxy.seize = (path, response) => {
    const isLater = path.includes("after_id=2000");
    if (isLater) response.writeHead(400, { "content-type": "application/problem+json" }).end("{}");
    return isLater;
  };
  expect(await run()).toMatchObject({ code: 1, stdout: "" });
  expect(existsSync(at("broken.ndjson"))).toBe(false);
  proxy.repent();
  expect(await run()).toMatchObject({ code: 0 });
  expect(readFileSync(at("broken.ndjson"), "utf8").trimEnd().split("\n")).toHaveLength(ENTRIES);
});

/** What is to become of the page behind some entry: it never comes, it is an error, or it is short. */
const SPOILED: Readonly<Record<string, (proxy: LyingProxy) => void>> = {
  "never comes"(proxy) {
    proxy.seize = (path) => path.includes("after_id=2000");
  },
  "is an error"(proxy) {
    proxy.seize = (path, response) => {
      const isLater = path.includes("after_id=2000");
      if (isLater) response.writeHead(503, { "content-type": "application/problem+json" }).end("{}");
      return isLater;
    };
  },
  "has fewer entries than there are"(proxy) {
    proxy.lie = (path, answer) =>
      path.includes("after_id=2000") ? { ...answer, entries: answer.entries.slice(0, 9) } : answer;
  },
};

test.each(Object.keys(SPOILED))("of one whose page %s no file is left, nor anything that import takes", async (how) => {
  const proxy = await LyingProxy.before(service.url);
  SPOILED[how]!(proxy);
  const before = readdirSync(folder);
  const isAsked = () => proxy.asked.some((path) => path.includes("after_id=2000"));
  const run = begin(["export", "--server", proxy.url, "--out", at("spoiled.ndjson")]);
  await expect.poll(isAsked).toBe(true);
  if (how === "never comes") await interrupt("SIGINT");
  expect(await run.ended).toMatchObject({ code: 1, stdout: "" });
  expect(readdirSync(folder)).toEqual(before);

  proxy.asked.length = 0;
  const piped = begin(["export", "--server", proxy.url, "--out", "-"]);
  // A signal would end the process that writes to standard output as it is.
  if (how === "never comes") await expect.poll(isAsked).toBe(true);
  else expect(await piped.ended).toMatchObject({ code: 1 });
  const scratch = temporaryFolder();
  writeFileSync(join(scratch, "cut.ndjson"), piped.stdout);
  const { code, stderr } = await cairnlog(["import", join(scratch, "cut.ndjson"), "--data", join(scratch, "data")]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/Line 20\d\d: .*Nothing was imported/s) });
});

test("filters narrow it, and files are never overwritten", async () => {
  const { timestamp } = (await service.get("/log/20000")).body;
  const args = ["export", "--server", service.url, "--out", at("part.ndjson"), "--start-date", timestamp];
  expect((await cairnlog(args)).code).toBe(0);
  const first = JSON.parse(readFileSync(at("part.ndjson"), "utf8").split("\n")[0]!);
  expect(first.timestamp).toBe(timestamp);
  const before = readFileSync(at("part.ndjson"));
  expect((await cairnlog(args)).code).toBe(1);
  expect(readFileSync(at("part.ndjson")).equals(before)).toBe(true);
  expect((await cairnlog(["export", "--server", service.url, "--out", at("no"), "--format", "xml"])).code).toBe(2);
  expect(existsSync(at("no"))).toBe(false);
});
