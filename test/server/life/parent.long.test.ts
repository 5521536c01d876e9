/** `cairnlog serve` as users run it: a parent process that names the signal that ended the service, and passes signals on. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { FAILED_EXIT_CODE } from "#cairnlog/server/failure.js";
import { childOf, MAIN, type RunningService, type ServiceOptions, scratchFolder, startService } from "../../service.js";
import { newSigner, submission } from "../signers.js";
import { until } from "../sockets.js";

const TERMINAL = fileURLToPath(new URL("./terminal.py", import.meta.url));
const folder = scratchFolder();
afterAll(() => folder.remove());

interface Watched extends RunningService {
  readonly child: number;
  readonly stderr: Promise<string>;
}

async function start(
  dataDir: string,
  environment: NodeJS.ProcessEnv = {},
  options: ServiceOptions = {},
): Promise<Watched> {
  let stderr = Promise.resolve("");
  const started: ServiceOptions["started"] = (process) => {
    stderr = text(process.stderr!);
  };
  const whole: ServiceOptions = { hasParent: true, stderr: "pipe", started, ...options };
  const service = await startService(dataDir, environment, whole);
  return { ...service, child: childOf(service), stderr };
}

const attest = (url: string): Promise<Response> =>
  fetch(`${url}/api/v1/attestations`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(submission(newSigner())),
  });

/** Also one whose end the system's first process has not taken note of yet. */
const hasEnded = (pid: number) => () => {
  const status = `/proc/${pid}/status`;
  return !existsSync(status) || /^State:\s+Z/m.test(readFileSync(status, "utf8"));
};

test.each([
  ["SIGSEGV", "a fault in native code"],
  ["SIGFPE", "a fault in native code"],
  ["SIGBUS", "a mapped file could not be read: a broken disk, or a file that was made shorter"],
  ["SIGABRT", "its own code or a library gave up"],
  ["SIGKILL", "(?:somebody has killed it|the kernel has killed a process because memory was short)"],
] as const)("%s of the service: a sentence, a record for the next start, exit code 74", async (signal, meaning) => {
  const data = join(folder.path, signal);
  const record = join(data, "failure.json");
  const service = await start(data);
  const { log_entry_id, entry_hash } = await (await attest(service.url)).json();
  process.kill(service.child, signal);
  expect(await service.exited).toBe(FAILED_EXIT_CODE);
  const sentence = `The service was ended by ${signal} \\(${meaning}\\)\\. What it had acknowledged is on disk\\.`;
  expect(await service.stderr).toMatch(
    new RegExp(`^cairnlog: ${sentence} The next start checks the newest entries \\(${record}\\)\\.\n$`),
  );
  expect(statSync(record).mode & 0o777).toBe(0o600);
  expect(JSON.parse(readFileSync(record, "utf8"))).toEqual({
    failed_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    code: "ended-by-signal",
    message: expect.stringMatching(new RegExp(`^${sentence}$`)),
    signal,
    last_words: [],
  });

  const next = await start(data, { LOG_LEVEL: "warn" });
  expect(existsSync(record)).toBe(false);
  expect(await (await fetch(`${next.url}/api/v1/log/${log_entry_id}`)).json()).toMatchObject({ entry_hash });
  expect(await next.stop()).toBe(0);
  expect(await next.stderr).toContain("the service was ended by a failure; the newest entries verify");
});

test("a signal that no table explains is named, too; what native code said last is in both", async () => {
  const data = join(folder.path, "words");
  const hook = `import { writeSync } from "node:fs";
process.on("SIGUSR2", () => { writeSync(2, "corrupted size vs. prev_size\\n"); process.kill(process.pid, "SIGILL"); });`;
  const service = await start(data, { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` });
  process.kill(service.child, "SIGUSR2");
  expect(await service.exited).toBe(FAILED_EXIT_CODE);
  const words = "corrupted size vs. prev_size";
  expect(await service.stderr).toMatch(
    /^corrupted size vs\. prev_size\ncairnlog: The service was ended by SIGILL\. Its last words: corrupted size vs\. prev_size What/,
  );
  expect(JSON.parse(readFileSync(join(data, "failure.json"), "utf8"))).toMatchObject({ last_words: [words] });
});

test("the parent was killed: the service ends at once, and the next one starts on its data directory", async () => {
  const data = join(folder.path, "orphan");
  const service = await start(data);
  expect((await attest(service.url)).status).toBe(200);
  service.process.kill("SIGKILL");
  expect(await service.exited).toBe("SIGKILL");
  const next = await start(data);
  expect(hasEnded(service.child)()).toBe(true);
  expect((await attest(next.url)).status).toBe(200);
  expect(await next.stop()).toBe(0);
});

/** Who gets a signal, in turn. */
const WAYS = {
  "the parent": ["parent"],
  "the service": ["child"],
  // As a supervisor does that signals every process of a group, and `timeout`, which does both.
  "both, the service first": ["child", "parent"],
  "the service again and again": ["child", "child", "parent", "child"],
} as const;

test.each(["SIGTERM", "SIGINT"] as const)("%s to one of both processes, or to both: exit code 0", async (signal) => {
  for (const [name, receivers] of Object.entries(WAYS)) {
    const data = join(folder.path, `${signal}-${name}`);
    const service = await start(data);
    expect((await attest(service.url)).status).toBe(200);
    for (const receiver of receivers)
      process.kill(receiver === "parent" ? service.process.pid! : service.child, signal);
    expect([name, await service.exited, await service.stderr]).toEqual([name, 0, ""]);
    expect(existsSync(join(data, "failure.json"))).toBe(false);
    expect(hasEnded(service.child)()).toBe(true);
  }
});

test("a second signal ends both at once", async () => {
  const hook = `if (process.argv[1].endsWith("child.js")) process.on("SIGTERM", () => { for (;;); });`;
  const environment = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` };
  const service = await start(join(folder.path, "second"), environment);
  service.process.kill("SIGTERM");
  service.process.kill("SIGINT");
  // The kernel may deliver the second one first.
  expect(["SIGTERM", "SIGINT"]).toContain(await service.exited);
  expect(await service.stderr).toBe("");
  await until(hasEnded(service.child));
});

// The terminal has sent it to both processes, and the parent passes it on late: the service has taken down its handlers by then.
test("a signal passed on during the exit does not change the exit code", async () => {
  const late = `process.on("exit", () => process.removeAllListeners("SIGINT").kill(process.pid, "SIGINT"));`;
  const hook = `if (process.argv[1].endsWith("child.js")) ${late}`;
  const environment = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` };
  const service = await start(join(folder.path, "late"), environment);
  service.process.kill("SIGINT");
  expect(await service.exited).toBe(0);
  expect(await service.stderr).toBe("");
});

/** What a child that only speaks to its parent says, piece by piece, before it ends. */
const saying = (pieces: readonly string[], end: string) => `import { writeSync } from "node:fs";
if (process.argv[1].endsWith("child.js")) {
  for (const piece of ${JSON.stringify(pieces)}) {
    writeSync(4, piece);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  ${end};
}`;

test("reports that arrive in pieces, or several at once, are all heard", async () => {
  const data = folder.path;
  const file = (name: string) => join(data, `${name}.json`);
  const report = (what: object) => `${JSON.stringify(what)}\n`;
  const [first, second] = [report({ failureFile: file("pieces"), stopMs: 60_000 }), report({ closing: "the log" })];
  const all = first + second;
  const run = async (pieces: readonly string[], end: string) => {
    const hook = saying(pieces, end);
    const env = { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` };
    const child = spawn(process.execPath, [MAIN, "serve"], { env, stdio: ["ignore", "ignore", "pipe"] });
    const [ended, said] = await Promise.all([
      new Promise((resolve) => child.on("exit", (code, signal) => resolve(signal ?? code))),
      text(child.stderr),
    ]);
    return { ended, said };
  };
  const kill = `process.kill(process.pid, "SIGSEGV")`;
  for (const pieces of [[all], [first.slice(0, 9), first.slice(9, 20), first.slice(20) + second]]) {
    const { ended, said } = await run(pieces, kill);
    expect([ended, said]).toEqual([FAILED_EXIT_CODE, expect.stringContaining(`(${file("pieces")})`)]);
    expect(JSON.parse(readFileSync(file("pieces"), "utf8"))).toMatchObject({ signal: "SIGSEGV" });
    rmSync(file("pieces"));
  }
  // A record that the service has made itself stays, and a later report replaces only what it names.
  writeFileSync(file("own"), "own");
  const own = await run([report({ failureFile: file("own") }), report({ exit: 1 }), second], kill);
  expect([own.ended, own.said]).toEqual([FAILED_EXIT_CODE, expect.stringContaining(`(${file("own")})`)]);
  expect(readFileSync(file("own"), "utf8")).toBe("own");
  // A service that keeps none.
  const none = await run([report({ failureFile: null })], kill);
  expect(none.said).toMatch(/What it had acknowledged is on disk\.\n$/);
  // It hangs while it stops: what it said last is what hung, and its exit code counts.
  const hung = await run(
    [report({ closing: "the first", exit: 1 }), report({ closing: "the second", exit: 0, stopMs: 300 })],
    "for (;;)",
  );
  expect(hung).toEqual({
    ended: 0,
    said: "cairnlog: the service was killed while this hung: the second; nothing that it had accepted is lost\n",
  });
});

test("a start that is told to end: the parent ends by the same signal", async () => {
  const hook = `if (process.argv[1].endsWith("child.js")) await new Promise(() => setInterval(() => {}, 2 ** 30));`;
  const env = {
    ...process.env,
    SERVICE_DATA_DIR: join(folder.path, "early"),
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}`,
  };
  const child = spawn(process.execPath, [MAIN, "serve"], { env, stdio: "ignore" });
  const children = () => readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim();
  await until(() => children() !== "");
  const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve([code, signal])));
  const pid = Number(children());
  child.kill("SIGTERM");
  expect(await ended).toEqual([null, "SIGTERM"]);
  expect(hasEnded(pid)()).toBe(true);
});

test("too few files for a child: a sentence and code 1", async () => {
  const child = spawn("bash", ["-c", 'ulimit -n 22; exec "$@"', "bash", process.execPath, MAIN, "serve"]);
  const ended = new Promise((resolve) => child.on("close", resolve));
  expect(await text(child.stderr)).toMatch(/^cairnlog: The service's process cannot be started: [^\n]*EMFILE\.\n$/);
  expect(await ended).toBe(1);
});

test("SIGHUP is passed on, and ends nothing", async () => {
  const service = await start(join(folder.path, "hup"), { LOG_LEVEL: "info" });
  let log = "";
  service.process.stderr!.on("data", (data) => {
    log += data;
  });
  service.process.kill("SIGHUP");
  await until(() => log.includes("SIGHUP: there is no certificate to read again"));
  expect(await service.stop()).toBe(0);
});

// A certificate is renewed while the machine starts, or after a failure, before the service has read anything.
test("SIGHUP before the service can take it waits for it, and ends nothing", async () => {
  const slow = `if (process.argv[1].endsWith("child.js")) await new Promise((resolve) => setTimeout(resolve, 500));`;
  const environment = { LOG_LEVEL: "info", NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(slow)}` };
  let log = "";
  const started: ServiceOptions["started"] = async (parent) => {
    parent.stderr!.on("data", (data) => {
      log += data;
    });
    const children = () => readFileSync(`/proc/${parent.pid}/task/${parent.pid}/children`, "utf8").trim();
    await until(() => children() !== "");
    parent.kill("SIGHUP");
  };
  const service = await start(join(folder.path, "hup-early"), environment, { started });
  await until(() => log.includes("SIGHUP: there is no certificate to read again"));
  expect(await service.stop()).toBe(0);
});

test.each(["interrupt", "close"])("on a terminal, %s: exit code 0", async (how) => {
  const file = join(folder.path, `${how}.file`);
  const env = { ...process.env, PORT: "0", SERVICE_DATA_DIR: join(folder.path, how) };
  const terminal = spawn("python3", [TERMINAL, file, how, process.execPath, MAIN, "serve"], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let shown = "";
  terminal.stdout.on("data", (data) => {
    shown += data;
  });
  const ended = new Promise((resolve) => terminal.on("close", resolve));
  await until(() => shown.includes("ready"));
  writeFileSync(file, "");
  expect(await ended).toBe(0);
  expect(shown.replaceAll("^C", "")).toMatch(/^ready {4}http:\/\/\S+ \(data in \S+; Ctrl\+C stops it\)\s*$/);
});

test("the parent loads no native code", async () => {
  const service = await start(join(folder.path, "small"));
  const maps = (pid: number) => readFileSync(`/proc/${pid}/maps`, "utf8");
  expect(maps(service.child)).toMatch(/\.node$/m);
  expect(maps(service.process.pid!)).not.toMatch(/\.node$/m);
  expect(await service.stop()).toBe(0);
});

test("--no-parent: the signal is what a supervisor sees", async () => {
  const data = join(folder.path, "alone");
  const service = await startService(data);
  service.process.kill("SIGSEGV");
  expect(await service.exited).toBe("SIGSEGV");
  expect(existsSync(join(data, "failure.json"))).toBe(false);
});
