/** `cairnlog monitor` as people run it: exit codes, alarms and where they go, timers, kills, and a log that was tampered with. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parsePublicKey, type TreeHead } from "#cairnlog/engine/verify/index.js";
import { Mirror } from "#cairnlog/server/monitor/mirror.js";
import { cairnlog } from "../cli/harness.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner, registration, type TestSigner } from "../server/signers.js";
import { MAIN, startService } from "../service.js";

const text = (name: string) => readFileSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), "utf8");
const manual = text("docs/monitor.md");
const run = promisify(execFile);

let service: TestService;
let proxy: LyingProxy;
let key: string;
let known: TestSigner;
beforeAll(async () => {
  service = await startTestService();
  known = await register("Alice");
  await register("Bob");
  key = join(temporaryFolder(), "operator.pub.pem");
  writeFileSync(key, (await service.get("/log/operator-key")).body.public_key);
  proxy = await LyingProxy.before(service.url);
});

const servers: Server[] = [];
const children: ChildProcess[] = [];
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections();
  for (const child of children) child.kill("SIGKILL");
});

async function register(pseudonym: string): Promise<TestSigner> {
  const signer = newSigner();
  expect((await service.post("/keys/register", registration(signer, pseudonym))).status).toBe(200);
  return signer;
}

/** The code block of `docs/monitor.md` that follows this marker. */
function marked(name: string): string {
  const [, block] = new RegExp(`<!-- ${name} -->\\s*\`\`\`\\w+\\n([\\s\\S]*?)\`\`\``).exec(manual)!;
  return block!;
}

const once_ = (state: string, ...more: string[]) =>
  cairnlog(["monitor", proxy.url, "--state", state, "--once", "--json", ...more]);
const lines = (stdout: string) =>
  stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

/** Receives alarms; the first `failures` of them it does not take. */
async function receiver(failures = 0): Promise<{ url: string; received: Record<string, unknown>[] }> {
  const received: Record<string, unknown>[] = [];
  let refused = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    if (refused++ < failures) return response.writeHead(500).end();
    received.push(JSON.parse(Buffer.concat(chunks).toString()));
    return response.writeHead(204).end();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

test("0: everything holds; then from where it was", async () => {
  const state = temporaryFolder();
  const first = await once_(state, "--operator-key", key);
  expect(first).toMatchObject({ code: 0, stderr: "" });
  const head: TreeHead = (await service.get("/log/sth")).body;
  expect(lines(first.stdout)).toEqual([{ verified: head.tree_size, head }]);
  proxy.asked.length = 0;
  expect((await once_(state)).code).toBe(0);
  // The one page is that of the sample.
  expect(proxy.asked.filter((asked) => asked.startsWith("GET /log?"))).toHaveLength(1);
});

test("1: what answers is no log; 2: the command makes no sense", async () => {
  proxy.seize = (_, response) => Boolean(response.end("<h1>It works!</h1>"));
  const lost = await once_(temporaryFolder());
  proxy.repent();
  expect(lost).toMatchObject({ code: 1, stdout: "" });
  expect(lost.stderr).toMatch(/^http:\S+ answered \/log\/operator-key with something else than promised\.\n$/);
  for (const argv of [[], ["ftp://log"], [proxy.url], [proxy.url, "--state", "x", "--watch", "me"]])
    expect((await cairnlog(["monitor", ...argv])).code, argv.join(" ")).toBe(2);
});

test("3: the log lies: told, posted, kept as evidence that convicts with openssl alone", async () => {
  const state = temporaryFolder();
  expect((await once_(state)).code).toBe(0);
  const hook = await receiver(1);
  proxy.lie = (path, answer) => (path === "/log/sth" ? { ...answer, root_hash: "0".repeat(64) } : answer);
  const caught = await once_(state, "--webhook", hook.url);
  proxy.repent();
  expect(caught.code).toBe(3);
  const [alarm] = lines(caught.stdout);
  expect(alarm).toMatchObject({ alarm: "bad-signature", server: proxy.url, head: { tree_size: 2 } });
  expect(caught.stderr).toContain(`ALARM bad-signature: ${alarm.detail} The evidence is in ${alarm.evidence_file}`);
  const evidence = JSON.parse(readFileSync(alarm.evidence_file, "utf8"));
  expect(hook.received).toEqual([evidence]);
  expect(evidence.evidence.shown.root_hash).toBe("0".repeat(64));
  // The truth is told again, and the lie has left no trace.
  expect((await once_(state, "--audit")).code).toBe(0);
});

test("3: two heads of one size: the manual's check convicts, and acquits what is no fork", async () => {
  const state = temporaryFolder();
  const other = await startTestService({ SERVICE_OPERATOR_KEY: join(service.server.dataDir, "operator.pem") });
  expect((await once_(state)).code).toBe(0);
  await other.server.registry.log.append([1, 2, 3, 4, 5, 6, 7].map((n) => ({ event_type: "note", payload: { n } })));
  proxy.upstream = other.url;
  const caught = await once_(state);
  proxy.upstream = service.url;
  expect(caught.code).toBe(3);
  const [{ alarm, evidence_file }] = lines(caught.stdout);
  expect(alarm).toBe("fork");
  const check = async (file: string) =>
    run("bash", ["-c", marked("check")], { env: { ...process.env, EVIDENCE: file }, cwd: temporaryFolder() }).then(
      ({ stdout }) => stdout,
      ({ stdout }) => stdout as string,
    );
  expect(await check(evidence_file)).toContain("CONVICTED: two signed roots of size");
  const evidence = JSON.parse(readFileSync(evidence_file, "utf8"));
  evidence.evidence.shown.root_hash = evidence.evidence.known.root_hash;
  const invented = join(state, "invented.json");
  writeFileSync(invented, JSON.stringify(evidence));
  expect(await check(invented)).not.toContain("CONVICTED");
});

test("4: a watched key is named, once", async () => {
  const state = temporaryFolder();
  const hook = await receiver();
  const watch = ["--watch", known.fingerprint.toUpperCase().replace("SHA256", "sha256"), "--webhook", hook.url];
  const first = await once_(state, ...watch);
  expect(first.code).toBe(4);
  expect(lines(first.stdout)[0]).toMatchObject({
    alarm: "watched",
    fingerprint: known.fingerprint,
    entry: { id: 1, event_type: "key_registration" },
  });
  expect(hook.received).toEqual([lines(first.stdout)[0]]);
  expect((await once_(state, ...watch)).code).toBe(0);
  // What only names the key in another member counts as well: an alert about it.
  const alert = { endorser_key_fingerprint: "sha256:0", compromised_fingerprint: known.fingerprint, reason: "lost" };
  await service.server.registry.log.append({ event_type: "note", payload: alert });
  const third = await once_(state, ...watch);
  expect(third.code).toBe(4);
  expect(lines(third.stdout)[0]).toMatchObject({ entry: { payload: alert } });
});

test("5: the log is stalled: answers without a newer head, and no answer", async () => {
  const state = temporaryFolder();
  expect((await once_(state, "--max-silence", "86400")).code).toBe(0);
  const age = Date.parse((await service.get("/log/sth")).body.timestamp);
  await expect.poll(() => Date.now() - age, { timeout: 10_000 }).toBeGreaterThan(1_000);
  const stalled = await once_(state, "--max-silence", "1");
  expect(stalled.code).toBe(5);
  expect(lines(stalled.stdout)).toMatchObject([{ verified: expect.any(Number) }, { alarm: "stalled" }]);
});

test("followed: silence and its end, new entries, SIGTERM", async () => {
  const state = temporaryFolder();
  const child = spawn(process.execPath, [
    MAIN,
    "monitor",
    proxy.url,
    "--state",
    state,
    "--json",
    "--interval",
    "1",
    "--max-silence",
    "2",
  ]);
  children.push(child);
  const told = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  // biome-ignore lint/suspicious/noExplicitAny: lines of several kinds
  const until = async (isIt: (line: any) => boolean): Promise<any> => {
    for (;;) {
      const { value, done } = await told.next();
      if (done) throw new Error("the monitor ended");
      const line = JSON.parse(value);
      if (isIt(line)) return line;
    }
  };
  await until(({ alarm }) => alarm === "stalled");
  const { tree_size } = (await service.get("/log/sth")).body;
  await register("Carol");
  await until(({ verified }) => verified === tree_size + 1);
  // No answer at all is silence, too.
  proxy.seize = () => true;
  await until(({ alarm }) => alarm === "stalled");
  proxy.repent();
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
}, 120_000);

test("killed at any moment, it goes on where it was", async () => {
  const state = temporaryFolder();
  const many = await startTestService();
  const notes = Array.from({ length: 4_000 }, (_, n) => ({ event_type: "note", payload: { n } }));
  await many.server.registry.log.append(notes);
  const before = await LyingProxy.before(many.url);
  const operatorKey = parsePublicKey((await many.get("/log/operator-key")).body.public_key);
  for (const pages of [1, 3, 4, 7]) {
    const child = spawn(process.execPath, [MAIN, "monitor", before.url, "--state", state, "--once"]);
    children.push(child);
    let asked = 0;
    await new Promise<void>((resolve) => {
      before.seize = (path) => {
        if (path.startsWith("/log?") && ++asked > pages) resolve();
        return asked > pages;
      };
    });
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }
  before.repent();
  const mirror = await Mirror.open(join(state, "mirror"), operatorKey);
  const reached = mirror.size;
  await mirror.close();
  // What came between two kills was not lost.
  expect(reached).toBeGreaterThanOrEqual(200 * (1 + 2 + 3 + 6));
  before.asked.length = 0;
  expect((await cairnlog(["monitor", before.url, "--state", state, "--once"])).code).toBe(0);
  expect(before.asked.filter((path) => path.startsWith("GET /log?")).length).toBeLessThanOrEqual(
    Math.ceil((4_000 - reached) / 200) + 2,
  );
}, 120_000);

test("the README's dishonest operator: a monitor that knew the log notices, and so does a new one", async () => {
  const home = temporaryFolder();
  const dataDir = join(home, "data");
  const state = temporaryFolder();
  const first = await startService(dataDir);
  const signer = newSigner();
  const body = JSON.stringify(registration(signer, "Ada"));
  const registered = await fetch(`${first.url}/api/v1/keys/register`, { method: "POST", body });
  expect(registered.status).toBe(200);
  // It stays where it is when the service comes back on another port.
  const front = await LyingProxy.before(first.url);
  const { url } = front;
  expect((await cairnlog(["monitor", url, "--state", state, "--once"])).code).toBe(0);
  await first.stop();
  const [, rewrite] = /^(python3 -c .*data\.mdb.*)$/m.exec(text("README.md"))!;
  await run("bash", ["-euc", rewrite!], { cwd: home });
  const second = await startService(dataDir);
  front.upstream = second.url;
  try {
    const old = await cairnlog(["monitor", url, "--state", state, "--once", "--json"]);
    expect(old.code).toBe(3);
    expect(lines(old.stdout)[0]).toMatchObject({ alarm: "changed-entry" });
    const fresh = await cairnlog(["monitor", url, "--state", temporaryFolder(), "--once", "--json"]);
    expect(fresh.code).toBe(3);
    expect(lines(fresh.stdout)[0]).toMatchObject({ alarm: "bad-entry" });
    expect(readdirSync(join(state, "evidence"))).toHaveLength(1);
  } finally {
    await second.stop();
  }
}, 120_000);
