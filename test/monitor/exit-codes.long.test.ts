/** Exit codes of `cairnlog monitor`, as documented in `docs/monitor.md`, and what it prints and posts before. */
import { lstatSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { TreeHead } from "#cairnlog/engine/verify/index.js";
import { Monitor } from "#cairnlog/server/monitor/monitor.js";
import { anyEvent } from "../anyevent.js";
import { begin, cairnlog, interrupt } from "../cli/harness.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner, registration, type TestSigner } from "../server/signers.js";
import { receiver } from "./receiver.js";

let service: TestService;
let proxy: LyingProxy;
/** The operator key, and somebody else's key. */
let key: string;
let otherKey: string;
let alice: TestSigner;
beforeAll(async () => {
  service = await startTestService();
  alice = newSigner();
  for (const [signer, name] of [
    [alice, "Alice"],
    [newSigner(), "Bob"],
  ] as const)
    expect((await service.post("/keys/register", registration(signer, name))).status).toBe(200);
  const folder = temporaryFolder();
  [key, otherKey] = [join(folder, "operator.pub.pem"), join(folder, "other.pub.pem")];
  writeFileSync(key, (await service.get("/log/operator-key")).body.public_key);
  writeFileSync(otherKey, newSigner().publicKey);
});
beforeEach(async () => {
  proxy = await LyingProxy.before(service.url);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const monitor = (state: string, ...more: string[]) => cairnlog(["monitor", proxy.url, "--state", state, ...more]);
const once = (state: string, ...more: string[]) => monitor(state, "--once", "--json", ...more);
const lines = (stdout: string) =>
  stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
const newest = async (): Promise<TreeHead> => (await service.get("/log/sth")).body;

/** Sets this machine's clock to this number of milliseconds after the newest head. */
async function setClock(afterHead: number): Promise<number> {
  const now = Date.parse((await newest()).timestamp) + afterHead;
  vi.useFakeTimers({ toFake: ["Date"], now });
  return now;
}

/** An entry that only names the key in another member: an alert about it. */
async function nameAlice(): Promise<object> {
  const alert = { endorser_key_fingerprint: "sha256:0", compromised_fingerprint: alice.fingerprint, reason: "lost" };
  await service.server.registry.log.append(anyEvent(alert));
  return alert;
}

/** The state of a monitor that knows the log except an entry about Alice. */
async function acquainted(): Promise<string> {
  const state = temporaryFolder();
  expect((await once(state)).code).toBe(0);
  await nameAlice();
  return state;
}
/** The files of a monitor's state that this process has open. */
const openIn = (state: string): string[] =>
  readdirSync("/proc/self/fd")
    .map((fd) => join("/proc/self/fd", fd))
    // The list itself was open while it was read.
    .filter((link) => lstatSync(link, { throwIfNoEntry: false }))
    .map((link) => readlinkSync(link))
    .filter((path) => path.startsWith(`${state}/`));

/** What a round asks for after it took what is new. */
const isAudit = (path: string) => path.startsWith("/log/heads?from=1&");

const lieAboutNewest = () => {
  proxy.lie = (path, answer) => (path === "/log/sth" ? { ...answer, root_hash: "0".repeat(64) } : answer);
};

describe("0", () => {
  test("everything is verified; the next run continues from there", async () => {
    const state = temporaryFolder();
    const first = await once(state, "--operator-key", key);
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(openIn(state)).toEqual([]);
    const head = await newest();
    expect(lines(first.stdout)).toEqual([{ verified: head.tree_size, head }]);
    proxy.asked.length = 0;
    expect(await monitor(state, "--once")).toEqual({
      code: 0,
      stdout: `verified: ${head.tree_size} entries, root ${head.root_hash}, head of ${head.timestamp}\n`,
      stderr: "",
    });
    // The only page is the sampled one.
    expect(proxy.asked.filter((asked) => asked.startsWith("GET /log?"))).toHaveLength(1);
  });

  test("the log is empty", async () => {
    const empty = await startTestService();
    proxy.upstream = empty.url;
    const state = temporaryFolder();
    expect(await monitor(state, "--once")).toEqual({ code: 0, stdout: "The log has no tree head yet.\n", stderr: "" });
    expect(lines((await once(state)).stdout)).toEqual([{ verified: 0, head: null }]);
  });

  test.each(["SIGINT", "SIGTERM"] as const)("it is interrupted between two rounds by %s", async (signal) => {
    const run = begin(["monitor", proxy.url, "--state", temporaryFolder(), "--json"]);
    await run.prints(/\n/);
    await interrupt(signal);
    expect(await run.ended).toMatchObject({ code: 0, stderr: "" });
  });

  test.each([[["--once"]], [[]]])("it is interrupted in a round, %j", async (more) => {
    const asked = new Promise<void>((resolve) => {
      proxy.seize = (path) => {
        if (path === "/log/sth") resolve();
        return path === "/log/sth";
      };
    });
    const { ended } = begin(["monitor", proxy.url, "--state", temporaryFolder(), ...more]);
    await asked;
    await interrupt();
    expect(await ended).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});

/** Errors that nobody foresaw, and one of the engine that a log might cause. */
const UNFORESEEN: readonly (readonly [string, () => unknown])[] = [
  ["RangeError", () => new RangeError("Invalid string length")],
  ["TypeError", () => new TypeError("x is not a function")],
  ["an error of the engine about data", () => new CairnlogError("not-i-json", "The number is not exact.")],
];

describe("an exception that nobody foresaw", () => {
  test.each(UNFORESEEN)("%s: the round failed, and the next goes on from the disk", async (_, error) => {
    const state = temporaryFolder();
    expect((await once(state)).code).toBe(0);
    const round = vi.spyOn(Monitor.prototype, "round");
    round.mockRejectedValueOnce(error());
    const failed = await once(state);
    expect([failed.code, failed.stdout]).toEqual([1, ""]);
    expect(failed.stderr).toContain("Please report it: ");
    round.mockRejectedValueOnce(error()).mockRejectedValueOnce(error());
    const run = begin(["monitor", proxy.url, "--state", state, "--interval", "1", "--json"]);
    await run.prints(/"verified"/);
    await interrupt();
    expect((await run.ended).code).toBe(0);
    expect(openIn(state)).toEqual([]);
  });

  test("is silence, which --max-silence counts", async () => {
    const state = temporaryFolder();
    expect((await once(state)).code).toBe(0);
    await setClock(100_000);
    vi.spyOn(Monitor.prototype, "round").mockRejectedValue(new RangeError("Invalid string length"));
    const stalled = await once(state, "--max-silence", "60");
    expect(stalled.code).toBe(5);
    expect(lines(stalled.stdout)).toEqual([expect.objectContaining({ alarm: "stalled" })]);
  });

  test.each(["storage-failed", "storage-full", "corrupt-log"] as const)(
    "but %s of its own folder ends it",
    async (code) => {
      vi.spyOn(Monitor.prototype, "round").mockRejectedValue(new CairnlogError(code, "The disk is broken."));
      const run = await monitor(temporaryFolder());
      expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining("The disk is broken.") });
    },
  );
});

describe("1", () => {
  test("the server is not a log", async () => {
    proxy.seize = (_, response) => Boolean(response.end("<h1>It works!</h1>"));
    const lost = await once(temporaryFolder());
    expect(lost).toMatchObject({ code: 1, stdout: "" });
    expect(lost.stderr).toMatch(/^http:\S+ answered \/log\/operator-key with something else than promised\.\n$/);
  });

  test("the log was known under another key, and no round makes it better", async () => {
    const state = temporaryFolder();
    await once(state);
    // Without --once, it must also end.
    for (const more of [["--once"], []]) {
      const { code, stdout, stderr } = await monitor(state, "--operator-key", otherKey, ...more);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toMatch(/^cairnlog: The pinned operator key is sha256:\w+, but so far the log was known under/);
    }
  });

  test.each([
    ["state.json", "{"],
    ["state.json", '{"operator_key": 1}'],
    ["told.json", '{"entries": -1}'],
    ["told.json", "7"],
  ])("%s is damaged: %s", async (name, content) => {
    const state = temporaryFolder();
    await once(state);
    writeFileSync(join(state, name), content);
    const { code, stdout, stderr } = await once(state);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toBe(
      `cairnlog: ${join(state, name)} is damaged. Begin anew in another directory, and keep this one: what it holds may be evidence.\n`,
    );
  });

  test("the folder cannot be written, or the operator key not be read", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "file"), "");
    expect(await once(join(folder, "file"))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^cairnlog: .*\(E[A-Z]+\)\./),
    });
    expect(await once(temporaryFolder(), "--operator-key", join(folder, "none"))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^cairnlog: There is no file/),
    });
  });
});

test("what takes long is said on stderr: what is verified, and with --audit what is compared", async () => {
  const long = await startTestService();
  await long.server.registry.log.append(Array(201).fill(anyEvent()));
  proxy.upstream = long.url;
  let now = await setClock(0);
  const state = temporaryFolder();
  proxy.lie = (path, answer) => {
    if (path.startsWith("/log?")) {
      now += 5_000;
      vi.setSystemTime(now);
    }
    return answer;
  };
  const [verified, compared] = ["verified", "compared"].map((what) => `${what} 201 of 201 (100 %)\n`);
  expect(await monitor(state, "--once")).toMatchObject({ code: 0, stderr: verified });
  expect(await monitor(state, "--once", "--audit")).toMatchObject({ code: 0, stderr: compared });
});

test("the longest interval that a timer can wait is not taken for none", async () => {
  const warned = vi.spyOn(process, "emitWarning");
  const state = temporaryFolder();
  const run = begin(["monitor", proxy.url, "--state", state, "--interval", String(2 ** 31)]);
  await run.prints(/^verified/);
  // The timer is set in the next turn of the event loop.
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  await interrupt();
  const { code, stdout } = await run.ended;
  expect(code).toBe(0);
  expect(stdout.match(/^verified/gm)).toHaveLength(1);
  expect(warned.mock.calls.map(([, name]) => name)).not.toContain("TimeoutOverflowWarning");
});

describe("2: the command makes no sense", () => {
  const state = ["--state", "x"];
  test.each([
    [[], /name the URL of a log/],
    [["ftp://log", ...state], /^cairnlog: URL must be an address such as https:\/\/log\.example, not ftp:\/\/log/],
    [["http://", ...state], /URL must be an address/],
    [["xhttp://log", ...state], /URL must be an address/],
    [["http://log"], /--state is missing/],
    [["http://log", "again", ...state], /again is one argument too many/],
    [["http://log", ...state, "--watch", "me"], /--watch must be a fingerprint/],
    [["http://log", ...state, "--webhook", "alerts"], /--webhook must be an address/],
    [["http://log/#/entry/5", ...state], /URL ends before \? and #/],
    [["http://u:p@log", ...state], /URL has a user or password before @, to whom nothing is sent: leave that out\n/],
    [["http://log", ...state, "--webhook", "https://u:p@alerts/?x=1"], /--webhook has a user or password/],
    [["http://log", ...state, "--interval", "soon"], /--interval must be a whole number/],
    [["http://log", ...state, "--max-silence", "1.5"], /--max-silence must be a whole number/],
    [["http://log", ...state, "--sometimes"], /unknown option '--sometimes'/],
  ])("%j", async (argv, sentence) => {
    const { code, stdout, stderr } = await cairnlog(["monitor", ...argv]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(sentence);
    expect(stderr).toMatch(/\nTry: cairnlog monitor --help\n$/);
  });
});

describe("3: the log lies", () => {
  test.each([[["--once"]], [[]]])("%j", async (more) => {
    const state = temporaryFolder();
    await once(state);
    lieAboutNewest();
    const { code, stdout, stderr } = await monitor(state, ...more);
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    const [file] = readdirSync(join(state, "evidence"));
    expect(stderr).toBe(
      `ALARM bad-signature: The tree head is not signed by the pinned operator key. The evidence is in ${join(state, "evidence", file!)}; keep it.\n`,
    );
    expect(file).toMatch(/^\d{4}-\d\d-\d\dT\d{6}\.\d{3}Z-bad-signature-[0-9a-f]{8}\.json$/);
  });

  test("whether or not the alarm can be posted", async () => {
    const state = temporaryFolder();
    await once(state);
    lieAboutNewest();
    const hook = await receiver(9);
    const { code, stderr } = await once(state, "--webhook", hook.url);
    expect(code).toBe(3);
    expect(stderr).toMatch(/; keep it\.\nThe alarm could not be posted to the webhook: it answered 500\.\n$/);
    expect(hook.asked()).toBe(4);
  });

  test.each([[[]], [["--json"]]])("whether or not the evidence can be written, %j", async (more) => {
    const state = temporaryFolder();
    await once(state);
    writeFileSync(join(state, "evidence"), "in the way");
    lieAboutNewest();
    const hook = await receiver();
    const { code, stdout, stderr } = await monitor(state, "--once", "--webhook", hook.url, ...more);
    expect(code).toBe(3);
    const [posted] = hook.received;
    expect(posted).toMatchObject({ alarm: "bad-signature", evidence: { shown: { root_hash: "0".repeat(64) } } });
    const said =
      /^ALARM bad-signature: The tree head is not signed by the pinned operator key\. The evidence could not be written \(.* \(EEXIST\)\): take it from the JSON of this alarm\.\n/;
    expect(stderr).toMatch(said);
    // The evidence could not be stored, so it is printed with the alarm.
    expect(JSON.parse(more.length ? stdout : stderr.replace(said, ""))).toEqual(posted);
    expect(more.length ? stderr.replace(said, "") : stdout).toBe("");
  });

  test("also when a watched key was named, and the log is stalled", async () => {
    const state = await acquainted();
    await setClock(10_000);
    proxy.lie = (path, answer) => (isAudit(path) ? { heads: answer.heads.slice(1) } : answer);
    const { code, stdout } = await once(state, "--watch", alice.fingerprint, "--max-silence", "1", "--patience", "0");
    expect(lines(stdout).map(({ alarm }) => alarm)).toEqual(["watched", "missing-head"]);
    expect(code).toBe(3);
  });
});

describe("an older head, as an honest cache may keep it", () => {
  /** A monitor's folder; from now on the log shows the head that it had before the newest entry. */
  async function outdated(): Promise<string> {
    const older = (await service.get("/log/sth")).body;
    await service.server.registry.log.append([anyEvent()]);
    const state = temporaryFolder();
    await once(state);
    proxy.lie = (path, answer) => (path === "/log/sth" ? older : answer);
    return state;
  }

  test("is a round that is not finished", async () => {
    const { code, stdout, stderr } = await monitor(await outdated(), "--once", "--patience", "0");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^The tree head has \d+ leaves, .* It is of the same log, and older\.\n$/);
  });

  test("is asked for again while the monitor is patient", async () => {
    const state = await outdated();
    const { lie } = proxy;
    let asked = 0;
    proxy.lie = (path, answer, query) => (path === "/log/sth" && asked++ ? answer : lie!(path, answer, query));
    expect(await monitor(state, "--once", "--patience", "20")).toMatchObject({ code: 0, stderr: "" });
  });

  test("is an alarm when nothing else came for longer than the log may be silent", async () => {
    const state = await outdated();
    const quick = ["--patience", "0", "--interval", "1", "--max-silence", "1", "--json"];
    const { code, stdout } = await monitor(state, ...quick);
    expect(code).toBe(3);
    expect(lines(stdout).at(-1)).toMatchObject({ alarm: "shrunken", evidence_file: expect.any(String) });
  });
});

test("what a node denies that is behind is asked for again while the monitor is patient", async () => {
  const state = temporaryFolder();
  await once(state);
  let asked = 0;
  proxy.lie = (path, answer) => (isAudit(path) && !asked++ ? { heads: answer.heads.slice(1) } : answer);
  expect(await monitor(state, "--once", "--patience", "20")).toMatchObject({ code: 0, stderr: "" });
  expect(asked).toBeGreaterThan(1);
});

describe("4: a watched key is named", () => {
  test("with --once, and once", async () => {
    const state = temporaryFolder();
    const hook = await receiver();
    const fingerprint = alice.fingerprint.toUpperCase().replace("SHA256", "sha256");
    const watch = ["--watch", fingerprint, "--webhook", hook.url];
    const first = await once(state, ...watch);
    expect(first.code).toBe(4);
    const alarms = lines(first.stdout);
    const verified = alarms.pop();
    expect(alarms[0]).toEqual({
      alarm: "watched",
      detail: expect.stringMatching(/^Entry 1 \(key_registration, .*Z\) names sha256:[0-9a-f]{64}\.$/),
      fingerprint: alice.fingerprint,
      entry: (await service.get("/log/1")).body,
      server: proxy.url,
      observed_at: expect.stringMatching(/^\d{4}-.*Z$/),
      head: await newest(),
    });
    expect(verified).toMatchObject({ verified: expect.any(Number) });
    expect(first.stderr).toBe(alarms.map(({ detail }) => `ALARM watched: ${detail}\n`).join(""));
    expect(hook.received).toEqual(alarms);
    expect(readdirSync(state)).not.toContain("evidence");
    expect((await once(state, ...watch)).code).toBe(0);
    const alert = await nameAlice();
    const third = await once(state, ...watch);
    expect(third.code).toBe(4);
    expect(lines(third.stdout)[0]).toMatchObject({ entry: { payload: alert } });
  });

  test("not when the round could not be finished: 1", async () => {
    const state = await acquainted();
    proxy.lie = (path, answer) => (isAudit(path) ? "<html>" : answer);
    const { code, stdout } = await once(state, "--watch", alice.fingerprint);
    expect(lines(stdout)).toMatchObject([{ alarm: "watched" }]);
    expect(code).toBe(1);
  });

  test("not without --once: 0 when it is interrupted", async () => {
    const run = begin(["monitor", proxy.url, "--state", temporaryFolder(), "--watch", alice.fingerprint]);
    await run.prints(/^verified/);
    await interrupt();
    expect(await run.ended).toMatchObject({ code: 0, stderr: expect.stringContaining("ALARM watched") });
  });
});

describe("5: the log is stalled", () => {
  test("by seconds, and not before they are over", async () => {
    const state = temporaryFolder();
    await setClock(30_000);
    expect(await once(state, "--max-silence", "30")).toMatchObject({ code: 0, stderr: "" });
    const now = await setClock(30_001);
    const head = await newest();
    const stalled = await once(state, "--max-silence", "30");
    expect(stalled.code).toBe(5);
    expect(lines(stalled.stdout)).toEqual([
      { verified: head.tree_size, head },
      {
        alarm: "stalled",
        detail: `No tree head newer than that of ${head.timestamp} was seen, for more than 30 s.`,
        server: proxy.url,
        observed_at: new Date(now).toISOString(),
        head,
      },
    ]);
    expect(await once(state)).toMatchObject({ code: 0, stderr: "" });
  });

  test("also when nothing answers, or a watched key was named", async () => {
    const state = temporaryFolder();
    await setClock(10_000);
    const both = await once(state, "--max-silence", "1", "--watch", alice.fingerprint);
    expect(both.code).toBe(5);
    expect(lines(both.stdout).map(({ alarm }) => alarm)).toContain("watched");
    proxy.seize = (_, response) => Boolean(response.end("<h1>It works!</h1>"));
    expect(await once(state, "--max-silence", "1")).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/something else than promised\.\nALARM stalled: No tree head newer than/),
    });
  });

  test("where there never was a head: since it was started", async () => {
    const empty = await startTestService();
    proxy.upstream = empty.url;
    const now = await setClock(0);
    expect(await once(temporaryFolder(), "--max-silence", "1")).toMatchObject({ code: 0, stderr: "" });
    proxy.lie = (path, answer) => {
      if (path === "/log/sth") vi.setSystemTime(now + 1_001);
      return answer;
    };
    expect(await once(temporaryFolder(), "--max-silence", "1")).toMatchObject({
      code: 5,
      stderr: "ALARM stalled: No tree head was seen for more than 1 s.\n",
    });
  });

  test("not without --once: reported once for each silence, and 0 when it is interrupted", async () => {
    await setClock(10_000);
    const args = ["--interval", "1", "--max-silence", "1"];
    const run = begin(["monitor", proxy.url, "--state", temporaryFolder(), ...args]);
    await run.prints(/(^verified.*\n){4}/m);
    await interrupt();
    const { code, stderr } = await run.ended;
    expect(code).toBe(0);
    expect(stderr.match(/ALARM stalled/g)).toHaveLength(1);
  });
});
