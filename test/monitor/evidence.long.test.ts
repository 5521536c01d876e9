/**
 * `cairnlog monitor`, run as users run it: evidence that others can check, timers, kills, and a log that was tampered
 * with.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { anyEvent } from "../anyevent.js";
import { cairnlog } from "../cli/harness.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner, registration } from "../server/signers.js";
import { MAIN, startService } from "../service.js";
import { receiver } from "./receiver.js";

const text = (name: string) => readFileSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), "utf8");
const manual = text("docs/monitor.md");
const run = promisify(execFile);

let service: TestService;
let proxy: LyingProxy;
beforeAll(async () => {
  service = await startTestService();
  await register("Alice");
  await register("Bob");
  proxy = await LyingProxy.before(service.url);
});

const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

async function register(pseudonym: string): Promise<void> {
  expect((await service.post("/keys/register", registration(newSigner(), pseudonym))).status).toBe(200);
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

test("3: the log lies: reported, posted, and saved as evidence that openssl alone can check", async () => {
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
  // The service tells the truth again, and no false data was stored.
  expect((await once_(state, "--audit")).code).toBe(0);
});

test("3: two heads of one size: the manual's check detects a fork, and only a fork", async () => {
  const state = temporaryFolder();
  const other = await startTestService({ SERVICE_OPERATOR_KEY: join(service.server.dataDir, "operator.pem") });
  expect((await once_(state)).code).toBe(0);
  await other.server.registry.log.append([1, 2, 3, 4, 5, 6, 7].map((n) => anyEvent({ n })));
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
  const said: any[] = [];
  /** Of what it has said, too: on a busy machine the silence behind a head may be told before its round has ended. */
  const until = async (isIt: (line: (typeof said)[number]) => boolean): Promise<void> => {
    while (!said.some(isIt)) {
      const { value, done } = await told.next();
      if (done) throw new Error("the monitor ended");
      said.push(JSON.parse(value));
    }
  };
  await until(({ alarm }) => alarm === "stalled");
  const { tree_size } = (await service.get("/log/sth")).body;
  await register("Carol");
  await until(({ verified }) => verified === tree_size + 1);
  // A service that does not answer has stalled, too.
  proxy.seize = () => true;
  await until(({ alarm, head }) => alarm === "stalled" && head?.tree_size === tree_size + 1);
  proxy.repent();
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

test("the README's dishonest operator: a monitor that knew the log notices, and so does a new one", async () => {
  const home = temporaryFolder();
  const dataDir = join(home, "data");
  const state = temporaryFolder();
  const first = await startService(dataDir);
  const signer = newSigner();
  const body = JSON.stringify(registration(signer, "Ada"));
  const registered = await fetch(`${first.url}/api/v1/keys/register`, { method: "POST", body });
  expect(registered.status).toBe(200);
  // The service itself looks at its newest entry when it starts.
  const later = JSON.stringify(registration(newSigner(), "Bob"));
  expect((await fetch(`${first.url}/api/v1/keys/register`, { method: "POST", body: later })).status).toBe(200);
  // The front keeps its address when the service comes back on another port.
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
});
