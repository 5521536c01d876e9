/** Commands that go on until they are interrupted: how long they wait, and what a round leaves to the next. No test waits. */
import { existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import timers from "node:timers/promises";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { freeze } from "#cairnlog/engine/log/operator/entries.js";
import { LEFT_FOR_MS } from "#cairnlog/server/publishing/target.js";
import { anyEvent } from "../anyevent.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import type { Finished } from "../service.js";
import { cairnlog } from "./harness.js";

let service: TestService;
let proxy: LyingProxy;
beforeAll(async () => {
  service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  await append(200);
  proxy = await LyingProxy.before(service.url);
});

async function append(count: number): Promise<void> {
  await service.server.registry.log.append(Array.from({ length: count }, () => anyEvent()));
  await service.checkpointed(service.server.registry.log.size);
}

const { setTimeout: wait } = timers;
afterEach(() => {
  timers.setTimeout = wait;
  syncBuiltinESMExports();
  vi.restoreAllMocks();
  proxy.repent();
});

/** Moves the clock that nobody sets. */
let elapsed = 0;
function ownClock(): void {
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + elapsed);
}

/**
 * Runs a command whose rounds go as they are told.
 * @param rounds called before each of its rounds; it is interrupted after the last
 * @returns how it ended, and the milliseconds for which it wanted to wait after each round
 */
async function running(args: readonly string[], rounds: readonly (() => void)[]) {
  const pauses: number[] = [];
  timers.setTimeout = (async (ms: number) => {
    pauses.push(ms);
    const next = rounds[pauses.length];
    if (next) next();
    else process.emit("SIGTERM");
    await new Promise((resolve) => setImmediate(resolve));
  }) as typeof timers.setTimeout;
  syncBuiltinESMExports();
  rounds[0]!();
  const run: Finished = await cairnlog(args);
  return { ...run, pauses };
}

const up = () => proxy.repent();
/** Every request is refused, at once and without a word of patience. */
const down = () => {
  proxy.repent();
  proxy.seize = (_, response) => {
    response.writeHead(404, { "content-type": "application/problem+json" }).end("{}");
    return true;
  };
};
const older = async () => {
  const head = (await service.get("/log/sth/100")).body;
  return () => {
    proxy.repent();
    proxy.lie = (path, answer) => (path === "/log/sth" ? head : answer);
  };
};
const later = (ms: number, then: () => void) => () => {
  elapsed += ms;
  then();
};

const monitor = (...more: string[]) => ["monitor", proxy.url, "--state", temporaryFolder(), ...more];
const publish = (target: string, ...more: string[]) => ["publish", `${proxy.url}/tlog`, target, ...more];

test.each([
  ["monitor", 600, (interval: string) => monitor("--interval", interval)],
  ["publish", 60, (interval: string) => publish(temporaryFolder(), "--follow", "--interval", interval)],
] as const)(
  "%s waits longer after each round that fails, up to %d s, and as long as it is told after one that does not",
  async (_, longest, args) => {
    const rounds = [up, down, down, down, up, up, down];
    const grown = await running(args("3"), rounds);
    expect([grown.code, grown.pauses]).toEqual([0, [3, 6, 12, 24, 3, 3, 6].map((seconds) => seconds * 1000)]);
    const long = await running(args(`${longest - 1}`), [down, down, up]);
    expect(long.pauses).toEqual([longest, longest, longest - 1].map((seconds) => seconds * 1000));
    const longer = await running(args(`${longest + 7}`), [up, down]);
    expect(longer.pauses).toEqual([longest + 7, longest + 7].map((seconds) => seconds * 1000));
  },
);

test("a monitor accuses a log that has shown nothing but older heads for longer than it may be silent", async () => {
  ownClock();
  const old = await older();
  const args = ["--max-silence", "1000", "--patience", "0", "--interval", "1"];
  const ms = 1_000_001;
  // A head that is new ends it.
  const patient = await running(monitor(...args), [up, old, later(ms / 2, old), later(ms / 4, up), later(ms, old), up]);
  expect([patient.code, patient.pauses.length, patient.stderr]).toEqual([0, 6, expect.not.stringContaining("ALARM")]);
  // A round that fails otherwise does not.
  const ended = await running(monitor(...args), [up, old, later(ms / 2, down), later(ms / 2, old), up]);
  expect([ended.code, ended.pauses.length, ended.stderr]).toEqual([3, 3, expect.stringContaining("ALARM")]);
});

test("a log that has ended is silent while no round ends well, and only then", async () => {
  ownClock();
  const ended = await startTestService();
  await ended.server.registry.log.append([anyEvent()]);
  await freeze(ended.server.registry.log, { reason: "The year is over.", successor: null });
  const { upstream } = proxy;
  proxy.upstream = ended.url;
  try {
    let check = () => {};
    const { setInterval } = globalThis;
    vi.spyOn(globalThis, "setInterval").mockImplementation(((work: () => void, ms: number, ...given: []) => {
      if (ms === 1000) check = work;
      return setInterval(work, ms, ...given);
    }) as never);
    const checked = (ms: number, then: () => void) => () => {
      elapsed += ms;
      check();
      then();
    };
    const ms = 1_000_001;
    const args = ["--max-silence", "1000", "--patience", "0", "--interval", "1"];
    const silent = [checked(ms, down), checked(ms / 2, down), checked(ms, down), checked(0, up), checked(ms, up)];
    const { code, stderr } = await running(monitor(...args), [up, ...silent]);
    expect([code, stderr.match(/ALARM .*/g)]).toEqual([
      0,
      ["ALARM stalled: The log has ended, and no round was finished for more than 1000 s."],
    ]);
    // For a timer, a round that fails at once is unfinished, and one that takes too long is silence.
    const state = monitor("--once", "--max-silence", "1000", "--patience", "0");
    expect(await running(state, [up])).toMatchObject({ code: 0 });
    expect(await running(state, [down])).toMatchObject({ code: 1, stderr: expect.not.stringContaining("ALARM") });
    const slowly = () => {
      down();
      const refuse = proxy.seize!;
      proxy.seize = (path, response) => {
        // The round has opened the copy by then.
        if (path !== "/log/sth") return false;
        elapsed += ms;
        return refuse(path, response);
      };
    };
    expect(await running(state, [slowly])).toMatchObject({ code: 5, stderr: expect.stringContaining("ALARM stalled") });
  } finally {
    proxy.upstream = upstream;
  }
});

test("what a round of publishing could not do is left to the next: the audit, and what is removed once a day", async () => {
  ownClock();
  const target = temporaryFolder();
  const at = (path: string) => join(target, path);
  const PARTIAL = "tile/0/000.p/200";
  expect(await cairnlog(publish(target))).toMatchObject({ code: 0 });
  const partial = readFileSync(at(PARTIAL));
  await append(100);
  expect(await cairnlog(publish(target))).toMatchObject({ code: 0 });
  const FULL = "tile/0/000";
  const full = readFileSync(at(FULL));
  rmSync(at(FULL));
  const audited = await running(publish(target, "--follow", "--audit", "--json"), [down, up, up, up]);
  expect(readFileSync(at(FULL)).equals(full)).toBe(true);
  // Only the round that made it has a line.
  expect(
    audited.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toMatchObject([{ made: 1, is_new: false, removed: 0 }]);

  const yesterday = Date.now() / 1000 - 2 * (LEFT_FOR_MS / 1000);
  const age = () => utimesSync(at(FULL), yesterday, yesterday);
  const isThere: boolean[] = [];
  const look = (then: () => void) => () => {
    isThere.push(existsSync(at(PARTIAL)));
    mkdirSync(dirname(at(PARTIAL)), { recursive: true });
    writeFileSync(at(PARTIAL), partial);
    then();
  };
  age();
  const day = later(LEFT_FOR_MS + 1, up);
  await running(publish(target, "--follow", "--keep-partial"), [up, look(day), look(up)]);
  expect(isThere.splice(0)).toEqual([true, true]);
  await running(publish(target, "--follow"), [down, look(up), look(up), look(day), look(up), look(up)]);
  // The first round failed, the second removed it, the third and the last came within the day.
  expect(isThere).toEqual([true, false, true, false, true]);
});
