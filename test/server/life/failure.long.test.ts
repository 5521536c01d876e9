/** A write that fails in the middle: nothing false is said afterwards, the process ends by itself, and the next one goes on. */
import { existsSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { FAILED_EXIT_CODE } from "#cairnlog/server/failure.js";
import { tamper } from "../../log/tamper.js";
import { cairnlog, childOf, scratchFolder, startService } from "../../service.js";
import { newSigner, submission } from "../signers.js";

const DIST = new URL("../../../dist", import.meta.url).href;
const folder = scratchFolder();
afterAll(() => folder.remove());

const attest = (url: string): Promise<Response> =>
  fetch(`${url}/api/v1/attestations`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(submission(newSigner())),
  });

/**
 * Makes the service treat its log as failed when it gets SIGUSR2, as after a write that LMDB could not complete. A real
 * failure would damage the process's memory, and the later behaviour of the process would be undefined.
 */
const HOOK = `
import { StoreHealth } from "#cairnlog/engine/store/lmdb/health.js";
const { check } = StoreHealth.prototype;
let health;
StoreHealth.prototype.check = function () {
  health ??= this;
  check.call(this);
};
process.on("SIGUSR2", () => health.judge(Object.assign(new Error("Input/output error"), { code: 5 })));
`;

test.each([
  ["alone", false],
  ["with its parent", true],
])(
  "a write that fails ends the service (%s) with its own exit code, and the next start checks what is there",
  async (name, hasParent) => {
    const data = join(folder.path, name);
    const hook = `data:text/javascript,${encodeURIComponent(HOOK.replaceAll("#cairnlog", DIST))}`;
    const env = { LOG_LEVEL: "silent", NODE_OPTIONS: `--import=${hook}` };
    const service = await startService(data, env, { hasParent });
    const acknowledged: { log_entry_id: number; entry_hash: string }[] = [];
    for (let n = 0; n < 5; n++) acknowledged.push(await (await attest(service.url)).json());
    process.kill(hasParent ? childOf(service) : service.process.pid!, "SIGUSR2");
    while ((await fetch(`${service.url}/livez`)).ok);
    // Its answers until it ends. It must never say that the log is empty.
    const said = [];
    for (const path of ["/livez", "/readyz", "/api/v1/log/head", "/api/v1/log/999", "/api/v1/log"]) {
      const answer = await fetch(service.url + path);
      said.push([path, answer.status, (await answer.json()).detail]);
    }
    const refused = await attest(service.url);
    expect([refused.status, (await refused.json()).code]).toEqual([503, "storage-failed"]);
    expect(said.map(([path, status]) => [path, status])).toEqual(said.map(([path]) => [path, 503]));
    expect(said[0]![2]).toContain("Input/output error");
    expect(await service.exited).toBe(FAILED_EXIT_CODE);
    const record = join(data, "failure.json");
    expect(JSON.parse(readFileSync(record, "utf8"))).toMatchObject({ code: "storage-failed" });

    const next = await startService(data);
    expect(existsSync(record)).toBe(false);
    for (const { log_entry_id, entry_hash } of acknowledged)
      expect(await (await fetch(`${next.url}/api/v1/log/${log_entry_id}`)).json()).toMatchObject({ entry_hash });
    expect((await attest(next.url)).status).toBe(200);
    expect(await next.stop()).toBe(0);
  },
);

test("a file that may not grow is a full disk: appends are refused, reads go on, and nothing is harmed", async () => {
  const data = join(folder.path, "limited");
  // Blocks of 1 KiB; an empty log has some 500 of them.
  const wrapper = ["bash", "-c", `ulimit -f 2500; exec "$@"`, "bash"];
  const service = await startService(data, { LOG_LEVEL: "silent" }, { wrapper });
  const refusals = new Set<string>();
  let acknowledged = 0;
  while (!refusals.size)
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const answer = await attest(service.url);
        if (answer.status === 200) acknowledged++;
        else refusals.add(`${answer.status} ${(await answer.json()).code}`);
      }),
    );
  expect(refusals).toEqual(new Set(["503 storage-full"]));
  expect(acknowledged).toBeGreaterThan(0);
  const entries = await (await fetch(`${service.url}/api/v1/log?per_page=1`)).json();
  const verified = await (await fetch(`${service.url}/api/v1/log/verify`, { method: "POST" })).json();
  expect(verified).toMatchObject({ valid: true, entry_count: entries.total });
  expect((await fetch(`${service.url}/livez`)).status).toBe(200);
  expect(await service.stop()).toBe(0);
  const free = await startService(data);
  expect((await attest(free.url)).status).toBe(200);
  expect(await free.stop()).toBe(0);
});

test("after a failure, newest entries that do not verify are not served", async () => {
  const data = join(folder.path, "damaged");
  const service = await startService(data);
  for (let n = 0; n < 3; n++) expect((await attest(service.url)).status).toBe(200);
  expect(await service.stop()).toBe(0);
  await tamper(join(data, "log"), "batches", async (db) => {
    const key = [...db.getKeys()].at(-1)!;
    const bytes = Buffer.from(db.get(key) as Buffer);
    // In the payload: the record is still an entry, with other content.
    bytes.write("ed25518", bytes.lastIndexOf("ed25519"));
    await db.put(key, bytes);
  });
  writeFileSync(join(data, "failure.json"), "{}");
  const env = { ...process.env, PORT: "0", SERVICE_DATA_DIR: data };
  const { code, stderr } = await cairnlog(["serve"], { env });
  expect([code, stderr]).toEqual([1, expect.stringContaining("do not verify")]);
  expect(existsSync(join(data, "failure.json"))).toBe(true);
});

test("a newest entry that is no JSON is named at the start", async () => {
  const data = join(folder.path, "cut");
  const service = await startService(data);
  expect((await attest(service.url)).status).toBe(200);
  expect(await service.stop()).toBe(0);
  await tamper(join(data, "log"), "batches", async (db) => {
    const key = [...db.getKeys()].at(-1)!;
    const bytes = Buffer.from(db.get(key) as Buffer);
    bytes[bytes.length - 1]! ^= 1;
    await db.put(key, bytes);
  });
  const env = { ...process.env, PORT: "0", SERVICE_DATA_DIR: data };
  const { code, stderr } = await cairnlog(["serve"], { env });
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^cairnlog: The newest entry of the log cannot be read\..*restore/),
  ]);
});

test("without room on the disk, appends are refused with storage-full, and reads go on", async () => {
  const data = join(folder.path, "full");
  const before = await startService(data);
  expect((await attest(before.url)).status).toBe(200);
  expect(await before.stop()).toBe(0);
  const service = await startService(data, { SERVICE_MIN_FREE_BYTES: "999999999999999" });
  const refused = await attest(service.url);
  expect([refused.status, refused.headers.get("retry-after"), (await refused.json()).code]).toEqual([
    503,
    "10",
    "storage-full",
  ]);
  expect((await fetch(`${service.url}/api/v1/log/1`)).status).toBe(200);
  expect((await fetch(`${service.url}/livez`)).status).toBe(200);
  const ready = await fetch(`${service.url}/readyz`);
  expect([ready.status, (await ready.json()).detail]).toEqual([503, expect.stringContaining("MiB are free")]);
  expect(await service.stop()).toBe(0);
});

test.each(["failure.json", "log/data.mdb"])("%s that cannot be looked at is not taken for absent", async (name) => {
  const data = join(folder.path, `loop-${name.replace("/", "-")}`);
  const service = await startService(data);
  expect((await attest(service.url)).status).toBe(200);
  expect(await service.stop()).toBe(0);
  const path = join(data, name);
  if (existsSync(path)) renameSync(path, join(data, "kept"));
  // Not even root can look at what a link names that leads to itself.
  symlinkSync(path, path);
  const env = { ...process.env, PORT: "0", SERVICE_DATA_DIR: data };
  const { code, stderr } = await cairnlog(["serve"], { env });
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^cairnlog: .*ELOOP/)]);
});
