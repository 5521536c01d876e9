/** No process opens a log's environment while a transaction of its writer runs, and none begins while one opens it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs, {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { container } from "#cairnlog/engine/base/process.js";
import type { JournalPosition } from "#cairnlog/engine/store/changeset.js";
import { OpeningGate, openAtGate } from "#cairnlog/engine/store/lmdb/opening-gate.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, temporaryFolder } from "../log/harness.js";

/** Another process, which says "in" when it may open, opens until a line comes, and then says "out". */
const OPENER = `
import { readSync } from "node:fs";
import { openAtGate } from ${JSON.stringify(import.meta.resolve("#cairnlog/engine/store/lmdb/opening-gate.js"))};
console.log("asks");
openAtGate(process.argv[1], () => {
  console.log("in");
  readSync(0, Buffer.alloc(1));
});
console.log("out");
`;

function startOpener(path: string) {
  const child: ChildProcess = spawn(process.execPath, ["--input-type=module", "--eval", OPENER, path], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const said: string[] = [];
  createInterface({ input: child.stdout! }).on("line", (line) => said.push(line));
  return {
    said,
    says: (word: string) => expect.poll(() => said).toContain(word),
    finish: () => child.stdin!.end("\n"),
    async kill() {
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

/** A gate, and a transaction that runs until it is told to end. */
function openGate(path = temporaryFolder()) {
  const gate = new OpeningGate(path);
  onTestFinished(() => gate.close());
  const begin = () => {
    let end = () => {};
    const state = { hasBegun: false, end: () => end(), ended: Promise.resolve() };
    state.ended = gate.pass(() => {
      state.hasBegun = true;
      return new Promise<void>((resolve) => (end = resolve));
    });
    return state;
  };
  return { path, begin };
}

const turns = () => new Promise((resolve) => setTimeout(resolve, 50));

describe("between a writer and another process", () => {
  test("a transaction begins only when the other has opened", async () => {
    const { path, begin } = openGate();
    const opener = startOpener(path);
    await opener.says("in");
    const transaction = begin();
    await turns();
    expect([transaction.hasBegun, opener.said]).toEqual([false, ["asks", "in"]]);
    opener.finish();
    await opener.says("out");
    await expect.poll(() => transaction.hasBegun).toBe(true);
    transaction.end();
    await transaction.ended;
    expect(existsSync(join(path, "opening"))).toBe(false);
  });

  test("the other opens only when the transaction has ended", async () => {
    const { path, begin } = openGate();
    const transaction = begin();
    expect(transaction.hasBegun).toBe(true);
    const opener = startOpener(path);
    await opener.says("asks");
    await turns();
    expect(opener.said).toEqual(["asks"]);
    transaction.end();
    await transaction.ended;
    await opener.says("in");
    opener.finish();
    await opener.says("out");
  });

  test("one that is killed while it opens does not keep the writer, nor the next one", async () => {
    const { path, begin } = openGate();
    const killed = startOpener(path);
    await killed.says("in");
    await killed.kill();
    expect(existsSync(join(path, "opening"))).toBe(true);
    const transaction = begin();
    await expect.poll(() => transaction.hasBegun).toBe(true);
    transaction.end();
    await transaction.ended;
    const again = startOpener(path);
    await again.says("in");
    await again.kill();
    const next = startOpener(path);
    await next.says("in");
    next.finish();
    await next.says("out");
    expect(readdirSync(path).filter((name) => name.startsWith("opening"))).toEqual([]);
  });

  test("one that was killed when the clock was ahead keeps neither the writer nor the next one", async () => {
    const { path, begin } = openGate();
    const leave = () => {
      // No process has this number.
      writeFileSync(join(path, "opening"), `${2 ** 30}`);
      utimesSync(join(path, "opening"), Date.now(), Date.now() / 1000 + 86_400);
    };
    leave();
    const transaction = begin();
    await expect.poll(() => transaction.hasBegun).toBe(true);
    transaction.end();
    await transaction.ended;
    leave();
    const next = startOpener(path);
    await expect.poll(() => next.said).toContain("in");
    next.finish();
    await next.says("out");
  });

  test.each<[who: string, sign: readonly number[]]>([
    // No process has this number (pid_max is 2^22 at most).
    ["a writer", [2 ** 30]],
    ["one of the same number in another container", [process.pid, container() ^ 1]],
  ])("%s that was killed in a transaction keeps nobody", async (_, sign) => {
    const path = temporaryFolder();
    writeSign(path, sign);
    expect(openAtGate(path, () => "open")).toBe("open");
  });
});

/** As a writer gives it: its number, and its container unless it is an earlier version. */
const writeSign = (path: string, numbers: readonly number[]) =>
  writeFileSync(join(path, "running"), Uint32Array.from(numbers));

test.each<[who: string, sign: readonly number[], isWaitedFor: boolean]>([
  ["this process", [process.pid, container()], false],
  ["an earlier version, which may be this process", [process.pid], false],
  ["another process of this number, in another container", [process.pid, container() ^ 1], true],
  ["another process of this container", [process.ppid, container()], true],
  ["another process, of an earlier version", [process.ppid], true],
])("a transaction of %s", (_, sign, isWaitedFor) => {
  const path = temporaryFolder();
  writeSign(path, sign);
  const { readSync } = fs;
  let looks = 0;
  const looking = vi.spyOn(fs, "readSync").mockImplementation(((...given: Parameters<typeof readSync>) => {
    if (++looks === 10) writeSign(path, [0, 0]);
    return readSync(...given);
  }) as typeof readSync);
  syncBuiltinESMExports();
  try {
    const isRunning = openAtGate(path, () => readFileSync(join(path, "running")).some((byte) => byte !== 0));
    expect(isRunning).toBe(!isWaitedFor);
  } finally {
    looking.mockRestore();
    syncBuiltinESMExports();
  }
});

test.each(["ENOSPC", "EDQUOT"])("a log is opened also where the disk does not take the sign: %s", async (code) => {
  const { path, begin } = openGate();
  const { writeFileSync: write } = fs;
  // The file is made, and nothing is written into it.
  const writing = vi.spyOn(fs, "writeFileSync").mockImplementation((file, _, options) => {
    write(file, "", options);
    throw Object.assign(new Error(code), { code, syscall: "write" });
  });
  syncBuiltinESMExports();
  const openers: string[] = [];
  try {
    expect(openAtGate(path, () => openers.push(readFileSync(join(path, "opening"), "utf8")))).toBe(1);
  } finally {
    writing.mockRestore();
    syncBuiltinESMExports();
  }
  expect(openers).toEqual([""]);
  expect(readdirSync(path).filter((name) => name.startsWith("opening"))).toEqual([]);
  // A writer waits for such a sign as for any other.
  write(join(path, "opening"), "");
  const transaction = begin();
  await turns();
  expect(transaction.hasBegun).toBe(false);
  rmSync(join(path, "opening"));
  await expect.poll(() => transaction.hasBegun).toBe(true);
  transaction.end();
  await transaction.ended;
});

test("what is left of a sign that cannot be made is removed", () => {
  const { path } = openGate();
  const { writeFileSync: write } = fs;
  const writing = vi.spyOn(fs, "writeFileSync").mockImplementation((file, _, options) => {
    write(file, "", options);
    throw Object.assign(new Error("EIO"), { code: "EIO", syscall: "write" });
  });
  syncBuiltinESMExports();
  try {
    expect(() => openAtGate(path, () => "open")).toThrow("EIO");
  } finally {
    writing.mockRestore();
    syncBuiltinESMExports();
  }
  expect(readdirSync(path).filter((name) => name.startsWith("opening"))).toEqual([]);
});

test("the threads of the writer's process do not wait for its transaction", async () => {
  const { path, begin } = openGate();
  const transaction = begin();
  expect(openAtGate(path, () => "open")).toBe("open");
  transaction.end();
  await transaction.ended;
});

test("commits go on, each on the one before, while other processes open the log and are killed", async () => {
  const path = temporaryFolder();
  const store = openStore({ path, mapSize: MAP_SIZE });
  const commit = async () => {
    const { sequence } = store.position();
    const position: JournalPosition = { sequence: sequence + 1, epoch: 0, hash: Buffer.alloc(32) };
    const rows = [{ table: "userNames" as const, key: `${sequence}`, row: { user_id: "x" } }];
    await store.commit({ after: sequence, position, batches: [], tiles: [], rows });
  };
  await commit();
  const code = `
import { openStore } from ${JSON.stringify(import.meta.resolve("#cairnlog/engine/store/store.js"))};
const store = openStore({ path: process.argv[1], mapSize: ${MAP_SIZE}, readOnly: true });
console.log(store.position().sequence);
setInterval(() => {}, 1000);
`;
  let opened = 0;
  let isDone = false;
  const open = async () => {
    while (opened < 12) {
      const child = spawn(process.execPath, ["--input-type=module", "--eval", code, path], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
      expect(Number(line)).toBeGreaterThan(0);
      opened++;
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  };
  const opening = Promise.all([open(), open()]).finally(() => {
    isDone = true;
  });
  let commits = 1;
  while (!isDone) {
    await commit();
    commits++;
  }
  await opening;
  expect(store.position().sequence).toBe(commits);
  await store.close();
});

describe("the sign of a writer", () => {
  const signIn = (path: string) => readFileSync(join(path, "running")).readUInt32LE();

  test("stands between transactions that follow at once, and is taken back when none does", async () => {
    const { path, begin } = openGate();
    expect(signIn(path)).toBe(0);
    const transaction = begin();
    await expect.poll(() => transaction.hasBegun).toBe(true);
    expect(signIn(path)).toBe(process.pid);
    transaction.end();
    await transaction.ended;
    expect(signIn(path)).toBe(process.pid);
    await expect.poll(() => signIn(path)).toBe(0);
  });

  test("is taken back while it waits for one that opens: both would wait for each other", async () => {
    const { path, begin } = openGate();
    writeFileSync(join(path, "opening"), `${process.pid}`);
    const transaction = begin();
    await expect.poll(() => signIn(path), { interval: 1 }).toBe(0);
    expect(transaction.hasBegun).toBe(false);
    rmSync(join(path, "opening"));
    await expect.poll(() => transaction.hasBegun).toBe(true);
    expect(signIn(path)).toBe(process.pid);
    transaction.end();
    await transaction.ended;
  });

  test("that cannot be taken back ends nothing, and the next transaction runs", async () => {
    const { path, begin } = openGate();
    const first = begin();
    await expect.poll(() => first.hasBegun).toBe(true);
    // From now on the gate's descriptor can only be read.
    const file = readdirSync("/proc/self/fd").find((fd) => targetOf(fd) === join(path, "running"))!;
    closeSync(Number(file));
    expect(openSync(join(path, "running"), "r")).toBe(Number(file));
    first.end();
    await first.ended;
    await turns();
    expect(signIn(path)).toBe(process.pid);
    const second = begin();
    await expect.poll(() => second.hasBegun).toBe(true);
    second.end();
    await second.ended;
  });
});

function targetOf(fd: string): string | null {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    // The one that listed them.
    return null;
  }
}
