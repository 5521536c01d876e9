/** A log that has its checkpoints cosigned: by real witnesses, and by some that are slow, dead, lying or set back. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type Policy, parsePolicy, parseVkey, verifyByPolicy } from "#cairnlog/engine/verify/index.js";
import { Cosigning } from "#cairnlog/server/cosigning/cosigning.js";
import { temporaryFolder } from "../server/harness.js";
import { waitInstead } from "../timers.js";
import { newMlDsaSigner, newNoteSigner, unknownVkey } from "../verify/note/notes.js";
import { startTestWitness } from "../witness/harness.js";
import { newTree, type WitnessedTree } from "../witness/logs.js";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A witness that answers as `answer` says. */
async function oddWitness(answer: (request: IncomingMessage, response: ServerResponse, body: string) => void) {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => answer(request, response, body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The text of the checkpoint in a request. */
const textOf = (body: string) => `${body.slice(body.indexOf("\n\n") + 2).split("\n\n")[0]}\n`;

interface Setup {
  readonly tree: WitnessedTree;
  readonly cosigning: Cosigning;
  readonly policy: Policy;
  readonly file: string;
  readonly told: (readonly [trouble: string | null, witness: string | null])[];
  /** The size and the cosigners of what is shown; null if nothing is. */
  shown(): Promise<readonly [number, ...string[]] | null>;
}

async function setUp(
  tree: WitnessedTree,
  lines: string,
  more: Partial<Parameters<typeof Cosigning.open>[0]> & { folder?: string } = {},
): Promise<Setup> {
  const policy = parsePolicy(lines);
  const told: Setup["told"] = [];
  const file = join(more.folder ?? temporaryFolder(), "cosigned.txt");
  const parts = {
    policy,
    file,
    origin: tree.origin,
    proof: (from: number, to: number) => tree.proof(from, to),
    told: (...news: readonly [string | null, string | null]) => told.push(news),
    // A machine that is busy with other things must not reach it.
    timeoutMs: 60_000,
    ...more,
  };
  const cosigning = await Cosigning.open(parts);
  closing.push(() => cosigning.stop());
  const shown = async () => {
    let note: string;
    try {
      note = cosigning.newest();
    } catch (error) {
      expect(error).toMatchObject({ code: "not-found" });
      return null;
    }
    const verdict = await verifyByPolicy(note, policy, [parseVkey(tree.signer.vkey)]);
    expect(verdict?.hasQuorum).toBe(true);
    expect(readFileSync(file, "utf8")).toBe(note);
    return [verdict!.checkpoint.treeSize, ...verdict!.cosigned.map(({ witness }) => witness.name)] as const;
  };
  return { tree, cosigning, policy, file, told, shown };
}

const offer = ({ cosigning, tree }: Setup, size: number) => cosigning.offer({ treeSize: size, note: tree.note(size) });
const ORIGIN = "log.example/cosigned";
/** The witnesses of a test have names of their own, and keys. */
const line = (name: string, witness: { key: unknown; url: string; vkey: string }) =>
  `witness ${name} ${witness.vkey} ${witness.url}\n`;
const real = async (tree: WitnessedTree, name: string, algorithm: "ed25519" | "ml-dsa-44" = "ed25519") => {
  const witness = await startTestWitness([tree], { name: `${name}.example`, algorithm });
  return { key: witness.key, url: witness.url, vkey: witness.running.vkey, running: witness.running };
};
const dead = (name: string) => ({ ...newNoteSigner(`${name}.example`, 4), key: null, url: "http://127.0.0.1:9" });

describe("real witnesses", () => {
  test("cosign checkpoint after checkpoint, also after a restart of the log", async () => {
    const tree = newTree(ORIGIN);
    const policy = `${line("A", await real(tree, "a"))}${line("B", await real(tree, "b"))}group G all A B\nquorum G\n`;
    const folder = temporaryFolder();
    const first = await setUp(tree, policy, { folder });
    expect(await first.shown()).toBeNull();
    for (const size of [0, 1, 2, 9, 30]) {
      offer(first, size);
      await expect.poll(() => first.shown()).toEqual([size, "A", "B"]);
    }
    expect(first.cosigning.status).toMatchObject({
      treeSize: 30,
      wanted: 30,
      witnesses: ["A", "B"].map((name) => ({ name, treeSize: 30, trouble: null, failures: 0 })),
    });
    expect(first.told).toEqual([]);
    await first.cosigning.stop();
    const second = await setUp(tree, policy, { folder });
    expect(await second.shown()).toEqual([30, "A", "B"]);
    offer(second, 30);
    offer(second, 31);
    await expect.poll(() => second.shown()).toEqual([31, "A", "B"]);
    // The sizes that they know were kept.
    expect(second.cosigning.status.witnesses.map(({ failures }) => failures)).toEqual([0, 0]);
  });

  test("of both algorithms cosign one checkpoint after the other, also after a restart", async () => {
    const tree = newTree(ORIGIN);
    const lines = [line("A", await real(tree, "a")), line("B", await real(tree, "b", "ml-dsa-44"))];
    const policy = `${lines.join("")}group G all A B\nquorum G\n`;
    const folder = temporaryFolder();
    const first = await setUp(tree, policy, { folder });
    for (const size of [1, 30]) {
      offer(first, size);
      await expect.poll(() => first.shown()).toEqual([size, "A", "B"]);
    }
    await first.cosigning.stop();
    const second = await setUp(tree, policy, { folder });
    expect(await second.shown()).toEqual([30, "A", "B"]);
    expect(second.cosigning.status.witnesses.map(({ treeSize }) => treeSize)).toEqual([30, 30]);
  });

  test("of ML-DSA-44, thirty of them, fit into what is shown", async () => {
    const tree = newTree(ORIGIN);
    const signers = Array.from({ length: 30 }, (_, i) => newMlDsaSigner(`w${i}.example`));
    const url = await oddWitness((request, response, body) => {
      const signer = signers[Number(request.url!.split("/")[1])]!;
      // Others sign, too: each answer is as long as it may well be.
      response.end(
        signers
          .slice(0, 15)
          .reduce((all, by) => all + (by === signer ? "" : by.line(textOf(body))), signer.line(textOf(body))),
      );
    });
    const names = signers.map((_, i) => `W${i}`);
    const lines = signers.map(({ vkey }, i) => `witness W${i} ${vkey} ${url}/${i}\n`);
    const setup = await setUp(tree, `${lines.join("")}group G all ${names.join(" ")}\nquorum G\n`);
    offer(setup, 9);
    await expect.poll(() => setup.shown()).toEqual([9, ...names]);
  });

  test("a log that lost its file learns from the witnesses where they are", async () => {
    const tree = newTree(ORIGIN);
    const witness = await real(tree, "a");
    const policy = `${line("A", witness)}quorum A\n`;
    const first = await setUp(tree, policy);
    offer(first, 20);
    await expect.poll(() => first.shown()).toEqual([20, "A"]);
    const second = await setUp(tree, policy);
    expect(await second.shown()).toBeNull();
    offer(second, 21);
    await expect.poll(() => second.shown()).toEqual([21, "A"]);
  });

  test("of many checkpoints in a row the last one is shown in the end", async () => {
    const tree = newTree(ORIGIN);
    const setup = await setUp(tree, `${line("A", await real(tree, "a"))}quorum A\n`);
    for (let size = 1; size <= 64; size++) offer(setup, size);
    await expect.poll(() => setup.shown()).toEqual([64, "A"]);
  });

  test("a policy that needs nobody shows at once, and adds who cosigns", async () => {
    const tree = newTree(ORIGIN);
    const setup = await setUp(tree, `${line("A", await real(tree, "a"))}${line("B", dead("b"))}quorum none\n`);
    offer(setup, 3);
    await expect.poll(() => setup.shown()).toEqual([3, "A"]);
  });
});

describe("a log to which nothing is added", () => {
  /** A witness whose clock is a variable, and what it was asked. */
  async function clockWitness(name: string) {
    const key = newNoteSigner(`${name}.example`, 4);
    const state = { time: 1_700_000_000, asked: [] as string[], isUp: true };
    const url = await oddWitness((_, response, body) => {
      state.asked.push(body.slice(0, body.indexOf("\n\n") + 1));
      if (state.isUp) response.end(key.line(textOf(body), state.time));
      else response.writeHead(500).end();
    });
    return { ...key, key: null, url, state };
  }
  /** Name of each witness → time of its cosignature in what is shown. */
  const times = async ({ cosigning, policy, tree }: Setup) => {
    const verdict = await verifyByPolicy(cosigning.newest(), policy, [parseVkey(tree.signer.vkey)]);
    return Object.fromEntries(verdict!.cosigned.map(({ witness, time }) => [witness.name, time]));
  };

  test("has its checkpoint cosigned again, and shows the new times", async () => {
    const tree = newTree(ORIGIN);
    const [a, b] = [await clockWitness("a"), await clockWitness("b")];
    const policy = `${line("A", a)}${line("B", b)}group G any A B\nquorum G\n`;
    const setup = await setUp(tree, policy, { renewMs: 20 });
    offer(setup, 7);
    await expect.poll(() => setup.shown()).toEqual([7, "A", "B"]);
    for (const time of [1_700_000_300, 1_700_000_600]) {
      a.state.time = time;
      b.state.time = time + 1;
      await expect.poll(() => times(setup)).toEqual({ A: time, B: time + 1 });
      expect(setup.cosigning.status.witnesses.map((one) => one.time)).toEqual([time, time + 1]);
    }
    expect(await setup.shown()).toEqual([7, "A", "B"]);
    // The witness goes on from this very size, so there is nothing to prove.
    expect(new Set(a.state.asked)).toEqual(new Set(["old 0\n", "old 7\n"]));
    expect([setup.told, setup.cosigning.warnings]).toEqual([[], []]);
  });

  test("keeps the cosignature of a witness that does not answer any more, and names it", async () => {
    const tree = newTree(ORIGIN);
    const [a, b] = [await clockWitness("a"), await clockWitness("b")];
    const policy = `${line("A", a)}${line("B", b)}group G all A B\nquorum G\n`;
    const setup = await setUp(tree, policy, { renewMs: 200, roundMs: 50 });
    offer(setup, 7);
    await expect.poll(() => setup.shown()).toEqual([7, "A", "B"]);
    b.state.isUp = false;
    for (const one of [a, b]) one.state.time += 300;
    await expect.poll(() => times(setup)).toEqual({ A: 1_700_000_300, B: 1_700_000_000 });
    await expect.poll(() => setup.cosigning.warnings).toEqual(["The witness B answered with status 500."]);
    // A newer checkpoint does not wait for it.
    b.state.isUp = true;
    offer(setup, 9);
    await expect.poll(() => setup.shown()).toEqual([9, "A", "B"]);
  });

  test("does not show a cosignature that is older than the one it has", async () => {
    const tree = newTree(ORIGIN);
    const a = await clockWitness("a");
    const setup = await setUp(tree, `${line("A", a)}quorum A\n`, { renewMs: 20 });
    offer(setup, 7);
    await expect.poll(() => setup.shown()).toEqual([7, "A"]);
    a.state.time -= 1_000;
    const { length } = a.state.asked;
    await expect.poll(() => a.state.asked.length).toBeGreaterThan(length + 2);
    expect(await times(setup)).toEqual({ A: 1_700_000_000 });
    expect(setup.cosigning.status.witnesses[0]!.time).toBe(1_700_000_000);
  });

  test("asks real witnesses again, and after a restart, too", async () => {
    const tree = newTree(ORIGIN);
    const policy = `${line("A", await real(tree, "a"))}quorum A\n`;
    const folder = temporaryFolder();
    for (let starts = 0; starts < 2; starts++) {
      const setup = await setUp(tree, policy, { folder, renewMs: 20 });
      offer(setup, 7);
      await expect.poll(() => setup.shown()).toEqual([7, "A"]);
      const { A } = await times(setup);
      await expect.poll(async () => (await times(setup)).A).toBeGreaterThan(A!);
      await setup.cosigning.stop();
    }
  });
});

describe("a witness that does not do what it should", () => {
  test("a dead one delays nobody, and is named when it is late", async () => {
    const tree = newTree(ORIGIN);
    const policy = `${line("A", await real(tree, "a"))}${line("B", dead("b"))}group G any A B\nquorum G\n`;
    const setup = await setUp(tree, policy, { roundMs: 200 });
    for (const size of [4, 5, 6]) {
      offer(setup, size);
      await expect.poll(() => setup.shown()).toEqual([size, "A"]);
    }
    await expect.poll(() => setup.cosigning.warnings).toEqual(["The witness B cannot be reached."]);
    expect(setup.told).toEqual([["The witness B cannot be reached.", "B"]]);
  });

  test("without a quorum nothing newer is shown, and a warning says so", async () => {
    const tree = newTree(ORIGIN);
    const [a, b] = [await real(tree, "a"), await real(tree, "b")];
    const setup = await setUp(tree, `${line("A", a)}${line("B", b)}group G all A B\nquorum G\n`, { roundMs: 300 });
    offer(setup, 4);
    await expect.poll(() => setup.shown()).toEqual([4, "A", "B"]);
    await b.running.close();
    for (const size of [5, 6]) {
      offer(setup, size);
      await expect.poll(() => setup.cosigning.status).toMatchObject({ wanted: size, treeSize: 4 });
      await expect.poll(() => setup.cosigning.status.witnesses[0]?.treeSize).toBe(size);
    }
    await expect
      .poll(() => setup.cosigning.warnings)
      .toEqual([
        "The newest checkpoint at /tlog/ is not shown: too few witnesses cosigned it.",
        "The witness B cannot be reached.",
      ]);
    expect(await setup.shown()).toEqual([4, "A", "B"]);
    // Nobody is late for what they were asked just now.
    offer(setup, 7);
    expect(setup.cosigning.status).toMatchObject({ wanted: 7, witnesses: [{ isLate: false }, { isLate: false }] });
  });

  test("one that failed is asked after a second, then after twice as long; once it has answered, after a second again", async () => {
    const key = newNoteSigner("odd.example", 4);
    const answers = [500, 500, 500, 200, 500, 500, 200];
    const url = await oddWitness((_, response, body) => {
      if (answers.shift() === 500) response.writeHead(500).end();
      else response.end(key.line(textOf(body), 1_700_000_000));
    });
    const waits: number[] = [];
    // All times become short; those after failures are noted.
    waitInstead((ms) => {
      if (ms >= 1_000 && ms < 10_000) waits.push(ms);
      return ms < 10_000 ? 0 : ms;
    });
    const setup = await setUp(newTree(ORIGIN), `${line("O", { ...key, key: null, url })}quorum O\n`);
    for (const size of [4, 5]) {
      offer(setup, size);
      await expect.poll(() => setup.cosigning.status.treeSize, { interval: 1 }).toBe(size);
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 1_000, 2_000]);
  });

  test("a slow one is asked again, and comes back", async () => {
    const tree = newTree(ORIGIN);
    const key = newNoteSigner("slow.example", 4);
    let patience = 2;
    const url = await oddWitness((_, response, body) => {
      if (patience-- > 0) return;
      response.end(key.line(textOf(body), 1_700_000_000));
    });
    const setup = await setUp(tree, `${line("S", { ...key, key: null, url })}quorum S\n`, {
      timeoutMs: 100,
      roundMs: 20,
    });
    offer(setup, 4);
    const isLate = () => setup.cosigning.status.witnesses[0]!.isLate;
    await expect.poll(isLate, { interval: 1 }).toBe(true);
    await expect.poll(() => setup.shown()).toEqual([4, "S"]);
    expect([isLate(), setup.cosigning.warnings]).toEqual([false, []]);
    expect(setup.told).toEqual([
      ["The witness S did not answer in 0.1 seconds.", "S"],
      [null, "S"],
    ]);
    expect(setup.cosigning.status.witnesses[0]).toMatchObject({ time: 1_700_000_000 });
  });

  const key = newNoteSigner("odd.example", 4);
  const stranger = newNoteSigner("odd.example", 4);
  const pq = newMlDsaSigner("odd.example");
  const NEXT_YEAR = Math.floor(Date.now() / 1000) + 31_536_000;
  test.each<[string, (response: ServerResponse, body: string) => void, RegExp]>([
    ["signs another text", (r, body) => r.end(key.line(`${textOf(body)}x\n`)), /does not hold/],
    ["signs the checkpoint before", (r) => r.end(key.line(textOf(newTree(ORIGIN).body(0, 4)))), /does not hold/],
    [
      "signs the checkpoint before, beside this one",
      (r, body) => r.end(key.line(textOf(body)) + key.line(textOf(newTree(ORIGIN).body(0, 4)), 1_800_000_000)),
      /does not hold/,
    ],
    ["signs with another key", (r, body) => r.end(stranger.line(textOf(body))), /did not sign with its key/],
    ["signs for the future", (r, body) => r.end(key.line(textOf(body), NEXT_YEAR)), /not come yet/],
    ["says nothing", (r) => r.end(), /something else than signature lines/],
    ["says something else", (r) => r.end("<html>"), /something else than signature lines/],
    ["says too much", (r) => r.end("\u2014 ".repeat(60_000)), /more than 65536 bytes/],
    ["does not know the log", (r) => r.writeHead(404).end(), /status 404: it does not know/],
    ["knows another key", (r) => r.writeHead(403).end(), /status 403: it knows this log with/],
    ["sees a fork", (r) => r.writeHead(422).end(), /status 422: for it, the checkpoint contradicts/],
    ["fails", (r) => r.writeHead(500).end(), /status 500\.$/],
    ["sends us elsewhere", (r) => r.writeHead(302, { location: "http://127.0.0.1:9/" }).end(), /status 302/],
    ["is ahead of the log", (r) => r.writeHead(409).end("77\n"), /cosigned 77 entries, and the newest .* has 5/],
    ["names no size", (r) => r.writeHead(409).end("many\n"), /not with the size/],
    ["names the size that it was asked from", (r) => r.writeHead(409).end("0\n"), /not with the size/],
    ["breaks off", (r) => void r.writeHead(200, { "content-length": 100 }).write("\u2014", () => r.destroy()), /./],
  ])("one that %s is not believed", async (_, answer, reason) => {
    const tree = newTree(ORIGIN);
    const url = await oddWitness((_request, response, body) => answer(response, body));
    const setup = await setUp(tree, `${line("O", { ...key, key: null, url })}quorum O\n`);
    offer(setup, 5);
    await expect.poll(() => setup.cosigning.status.witnesses[0]?.trouble).toMatch(reason);
    expect(setup.told).toEqual([[expect.stringMatching(reason), "O"]]);
    expect(await setup.shown()).toBeNull();
    await setup.cosigning.stop();
  });

  test.each<[string, (response: ServerResponse, body: string) => void, RegExp]>([
    ["signs without a time", (r, body) => r.end(pq.line(textOf(body), 0)), /without a time/],
    ["signs for the future", (r, body) => r.end(pq.line(textOf(body), NEXT_YEAR)), /not come yet/],
    ["signs another root", (r, body) => r.end(pq.line(`${textOf(body).replace("5\n", "6\n")}`)), /does not hold/],
  ])("one of ML-DSA-44 that %s is not believed", async (_, answer, reason) => {
    const tree = newTree(ORIGIN);
    const url = await oddWitness((_request, response, body) => answer(response, body));
    const setup = await setUp(tree, `witness O ${pq.vkey} ${url}\nquorum O\n`);
    offer(setup, 5);
    await expect.poll(() => setup.cosigning.status.witnesses[0]?.trouble).toMatch(reason);
    expect(await setup.shown()).toBeNull();
    await setup.cosigning.stop();
  });

  test("one that names another size each time is asked three times", async () => {
    let asked = 0;
    const url = await oddWitness((_, response) => response.writeHead(409).end(`${++asked}\n`));
    const tree = newTree(ORIGIN);
    const setup = await setUp(tree, `${line("O", { ...key, key: null, url })}quorum O\n`);
    offer(setup, 50);
    await expect.poll(() => setup.cosigning.status.witnesses[0]?.trouble).toMatch(/another size each time/);
    await setup.cosigning.stop();
    expect(asked).toBe(3);
  });
});

describe("the file", () => {
  test("is forgotten if the policy has no quorum for it any more, or if it is not one of this log", async () => {
    const tree = newTree(ORIGIN);
    const [a, b] = [await real(tree, "a"), await real(tree, "b")];
    const folder = temporaryFolder();
    const first = await setUp(tree, `${line("A", a)}${line("B", b)}quorum A\n`, { folder });
    offer(first, 8);
    await expect.poll(() => first.shown()).toEqual([8, "A", "B"]);
    await first.cosigning.stop();
    const open = async (policy: string, of = tree) => (await setUp(of, policy, { folder })).shown();
    expect(await open(`${line("A", a)}quorum A\n`)).toEqual([8, "A"]);
    expect(await open(`${line("C", dead("c"))}quorum C\n`)).toBeNull();
    expect(await open(`${line("A", a)}quorum A\n`, newTree("log.example/other"))).toBeNull();
    writeFileSync(first.file, "");
    expect(await open(`${line("A", a)}quorum A\n`)).toBeNull();
  });

  test("that cannot be written: nothing is shown, it is told once, and tried again; when it can, that is told once, too", async () => {
    const tree = newTree(ORIGIN);
    const folder = join(temporaryFolder(), "none");
    const setup = await setUp(tree, `${line("A", await real(tree, "a"))}quorum A\n`, { folder });
    offer(setup, 1);
    await expect.poll(() => setup.told).toEqual([[expect.stringContaining("cannot be written"), null]]);
    expect(await setup.shown()).toBeNull();
    expect(existsSync(folder)).toBe(false);
    const write = async (size: number, isWritten: boolean) => {
      offer(setup, size);
      await expect.poll(() => setup.cosigning.status.witnesses[0]?.treeSize).toBe(size);
      await expect.poll(() => setup.cosigning.status.treeSize === size).toBe(isWritten);
    };
    const cannot = [expect.stringContaining("cannot be written"), null];
    await write(2, false);
    mkdirSync(folder);
    for (const size of [3, 4]) await write(size, true);
    expect(setup.told).toEqual([cannot, [null, null]]);
    rmSync(folder, { recursive: true });
    await write(5, false);
    await expect.poll(() => setup.told).toEqual([cannot, [null, null], cannot]);
  });
});

test("a cosignature that comes when a newer checkpoint is wanted counts for the older one alone", async () => {
  const tree = newTree(ORIGIN);
  const signer = newNoteSigner("w.example", 4);
  const held: (() => void)[] = [];
  const url = await oddWitness((_, response, body) => void held.push(() => response.end(signer.line(textOf(body)))));
  const lines = `${line("W", { ...signer, key: null, url })}quorum W\n`;
  const setup = await setUp(tree, lines, { roundMs: 10 });
  offer(setup, 1);
  await expect.poll(() => held.length).toBe(1);
  offer(setup, 2);
  await expect.poll(() => setup.cosigning.status.wanted).toBe(2);
  held[0]!();
  await expect.poll(() => held.length).toBe(2);
  expect(await setup.shown()).toBeNull();
  held[1]!();
  await expect.poll(() => setup.shown()).toEqual([2, "W"]);
});

test("a witness without an address is not asked", async () => {
  const tree = newTree(ORIGIN);
  const { vkey } = newNoteSigner("w.example", 4);
  const setup = await setUp(tree, `witness W ${vkey}\nquorum none\n`);
  offer(setup, 1);
  await expect.poll(() => setup.shown()).toEqual([1]);
  expect(setup.cosigning.status.witnesses).toEqual([]);
});

test("a witness whose key is of an unknown type is not asked, and keeps nobody from the quorum", async () => {
  const tree = newTree(ORIGIN);
  let asked = 0;
  const url = await oddWitness((_, response) => {
    asked++;
    response.writeHead(404).end();
  });
  const lines = `witness U ${unknownVkey("u.example")} ${url}\n${line("A", await real(tree, "a"))}group G any U A\nquorum G\n`;
  const setup = await setUp(tree, lines);
  offer(setup, 4);
  await expect.poll(() => setup.shown()).toEqual([4, "A"]);
  expect(setup.cosigning.status.witnesses.map(({ name }) => name)).toEqual(["A"]);
  expect(asked).toBe(0);
});
