/** Following a log of tiles: what is mirrored, what is taken over from a round that was stopped, and which lies are caught. */
import { createPublicKey } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { parsePolicy, rfc6962 } from "#cairnlog/engine/verify/index.js";
import type { ClientError } from "#cairnlog/server/client/index.js";
import { Misbehaviour, type Misconduct, OlderHead, type TiledEvidence } from "#cairnlog/server/monitor/alarm.js";
import { TiledMonitor } from "#cairnlog/server/monitor/tiled/monitor.js";
import { temporaryFolder } from "../../server/harness.js";
import { failureOf } from "../../thrown.js";
import { newNoteSigner } from "../../verify/note/notes.js";
import { changed, ORIGIN, StaticLog, serving, URL_OF_LOG } from "./staticlog.js";

type Files = ReadonlyMap<string, Uint8Array | string>;

function monitorOf(log: StaticLog, folder = temporaryFolder(), policy = `log ${log.signer.vkey}\nquorum none\n`) {
  const mirror = join(folder, "mirror");
  const round = (files: Files, options: { audit?: boolean; asked?: string[] } = {}) =>
    new TiledMonitor({
      url: `${URL_OF_LOG}/`,
      policy: parsePolicy(policy),
      mirror,
      fetch: serving(files, options.asked),
    }).round(options);
  return { mirror, round };
}

/** A cosignature with a later time than was signed. */
function moved(line: string): string {
  const [dash, name, data] = line.trimEnd().split(" ");
  const bytes = Buffer.from(data!, "base64");
  bytes.writeBigUInt64BE(bytes.readBigUInt64BE(4) + 300n, 4);
  return `${dash} ${name} ${bytes.toString("base64")}\n`;
}

/** Path → content of every file in a directory. */
function filesIn(folder: string): Map<string, Buffer> {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name));
  const files = paths.filter((path) => statSync(path).isFile()).sort();
  return new Map(files.map((path) => [relative(folder, path), readFileSync(path)]));
}
const sorted = (files: ReadonlyMap<string, Buffer>) => new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));

/** The evidence of the alarm that a round must raise. */
async function caught(round: Promise<unknown>, kind: Misconduct): Promise<TiledEvidence> {
  const { thrown: error } = await failureOf(round);
  if (!(error instanceof Misbehaviour)) throw error;
  expect([error.kind, error.message]).toEqual([kind, expect.stringMatching(/^.{8,}\.$/s)]);
  return error.evidence as TiledEvidence;
}

/** The evidence that is kept for the case that a round, which must see an older checkpoint, is followed by others that do. */
async function older(round: Promise<unknown>): Promise<TiledEvidence> {
  const { thrown: error } = await failureOf(round);
  if (!(error instanceof OlderHead)) throw error;
  return caught(Promise.reject(error.misbehaviour), "shrunken");
}

describe("an honest log", () => {
  test("is not taken for another one of the policy, larger or smaller, that the folder has", async () => {
    const [log, other] = [new StaticLog(300), new StaticLog(300, { signer: newNoteSigner("other.example") })];
    const policy = `log ${log.signer.vkey}\nlog ${other.signer.vkey}\nquorum none\n`;
    const { mirror, round } = monitorOf(log, temporaryFolder(), policy);
    await round(log.files(260));
    for (const size of [10, 260, 300]) {
      const { thrown: error } = await failureOf(round(other.files(size)));
      const message = `This directory has the log ${ORIGIN}, and the checkpoint is of other.example.`;
      expect(error).toMatchObject({ name: "ClientError", code: "malformed-answer", message });
    }
    expect(filesIn(mirror)).toEqual(sorted(log.files(260)));
  });

  test("is mirrored under its own paths, whatever the steps in which it grows", async () => {
    const log = new StaticLog(1030);
    const { mirror, round } = monitorOf(log);
    for (const size of [0, 1, 1, 255, 256, 257, 700, 1024, 1030]) {
      const verdict = await round(log.files(size));
      expect(verdict.checkpoint).toMatchObject({ origin: ORIGIN, treeSize: size });
      expect(filesIn(mirror)).toEqual(sorted(log.files(size)));
    }
  });

  test("says how far a round has come", async () => {
    const log = new StaticLog(5_000);
    const told: unknown[][] = [];
    const url = `${URL_OF_LOG}/`;
    const policy = parsePolicy(`log ${log.signer.vkey}\nquorum none\n`);
    const onProgress = (...progress: unknown[]) => void told.push(progress);
    const mirror = join(temporaryFolder(), "mirror");
    await new TiledMonitor({ url, policy, mirror, fetch: serving(log.files()), onProgress }).round();
    expect(told.length).toBeGreaterThan(1);
    expect(told).toEqual(told.map(([, done]) => ["entries", done, 5_000]));
    expect(told.at(-1)).toEqual(["entries", 5_000, 5_000]);
  });

  test("is asked for little when it has grown little", async () => {
    const log = new StaticLog(1030);
    const { round } = monitorOf(log);
    await round(log.files(1029));
    const asked: string[] = [];
    await round(log.files(1030), { asked });
    // Of the bundles one is new, and one is compared at random. A run sees once whether entries are published as they are served.
    const once = "log/operator-key";
    expect(asked.slice(0, -1)).toEqual([
      "checkpoint",
      "tile/0/004.p/6",
      "tile/1/000.p/4",
      "tile/entries/004.p/6",
      once,
    ]);
    expect(asked.at(-1)).toMatch(/^tile\/entries\/00[0-3]$/);
  });

  test("may have removed partial tiles of what is full now, and its mirror is a log for the next monitor", async () => {
    const log = new StaticLog(512);
    const first = monitorOf(log);
    const before = log.files(500);
    const late = new Map([
      ...log.files(512),
      ...["checkpoint", "tile/1/000.p/1"].map((name) => [name, before.get(name)!] as const),
    ]);
    await first.round(late);
    expect(filesIn(first.mirror)).toEqual(sorted(before));
    const second = monitorOf(log);
    await second.round(filesIn(first.mirror));
    expect(filesIn(second.mirror)).toEqual(filesIn(first.mirror));
  });

  test("is gone on with where a round was stopped, and what does not fit is fetched again", async () => {
    const log = new StaticLog(1030);
    const { mirror, round } = monitorOf(log);
    const missing = new Map(log.files());
    missing.delete("tile/entries/003");
    await expect(round(missing)).rejects.toMatchObject({ status: 404 });
    expect(existsSync(join(mirror, "checkpoint"))).toBe(false);
    writeFileSync(join(mirror, "tile/entries/001"), "damaged");
    const asked: string[] = [];
    await round(log.files(), { asked });
    expect(asked.filter((path) => path.includes("entries"))).not.toContain("tile/entries/000");
    expect(asked).toContain("tile/entries/001");
    expect(filesIn(mirror)).toEqual(sorted(log.files()));
    // A disk that loses a bundle later is no lie of the log.
    writeFileSync(join(mirror, "tile/entries/002"), "damaged");
    await round(log.files(), { audit: true });
    expect(filesIn(mirror)).toEqual(sorted(log.files()));
  });
});

test("a round that fails at any request leaves nothing that the next one does not remove", async () => {
  const log = new StaticLog(1030);
  const requests: string[] = [];
  await monitorOf(log).round(log.files(700), { asked: requests });
  for (const path of requests) {
    const { mirror, round } = monitorOf(log);
    await round(log.files(300));
    const files = log.files(700);
    files.delete(path);
    await round(files).catch(() => {});
    await round(log.files());
    expect(filesIn(mirror), path).toEqual(sorted(log.files()));
  }
});

describe("a quorum of witnesses", () => {
  const log = new StaticLog(3);
  const [a, b] = ["a.example", "b.example"].map((name) => newNoteSigner(name, 4)) as [
    ReturnType<typeof newNoteSigner>,
    ReturnType<typeof newNoteSigner>,
  ];
  /** The key of `a` under the name of `b`. */
  const twin = newNoteSigner("b.example", 4, { privateKey: a.privateKey, publicKey: createPublicKey(a.privateKey) });
  const policy = `log ${log.signer.vkey}\nwitness A ${a.vkey}\nwitness B ${b.vkey}\ngroup G all A B\nquorum G\n`;
  const cosigned = (...lines: readonly string[]) =>
    changed(log.files(), "checkpoint", (note) => note.toString() + lines.join(""));

  test("must have cosigned, or nothing is taken", async () => {
    const { mirror, round } = monitorOf(log, undefined, policy);
    await expect(round(cosigned(a.line(log.text())))).rejects.toThrow("no quorum of the witnesses; cosigned by: A.");
    expect(existsSync(mirror)).toBe(false);
    const verdict = await round(cosigned(a.line(log.text()), b.line(log.text())));
    expect(verdict.cosigned.map(({ witness }) => witness.name)).toEqual(["A", "B"]);
    expect(filesIn(mirror).get("checkpoint")!.toString()).toContain("b.example");
  });

  test("need not have cosigned what convicts the log: it has signed that itself", async () => {
    const { mirror, round } = monitorOf(log, undefined, policy);
    await round(cosigned(a.line(log.text()), b.line(log.text())));
    const before = filesIn(mirror);
    const fork = new StaticLog(3, { twist: 1, signer: log.signer });
    for (const size of [3, 2]) await caught(round(fork.files(size)), "fork");
    await older(round(log.files(2)));
    expect(filesIn(mirror)).toEqual(before);
  });

  /** A line of one witness under the name of another. */
  const renamed = (line: string) => line.replace("a.example", "b.example");
  test.each<[string, readonly string[]]>([
    ["an older checkpoint", [a.line(log.text(2)), b.line(log.text())]],
    ["an older checkpoint beside this one", [a.line(log.text()), b.line(log.text()), b.line(log.text(2))]],
    ["another time, which the witness has not signed", [a.line(log.text()), moved(b.line(log.text()))]],
    ["a checkpoint of another log", [a.line(log.text()), b.line(log.text().replace(ORIGIN, "other.example"))]],
  ])("with a line for %s is caught, and nothing is taken", async (_, lines) => {
    const { mirror, round } = monitorOf(log, undefined, policy);
    await caught(round(cosigned(...lines)), "bad-signature");
    expect(existsSync(mirror)).toBe(false);
  });

  test.each<[string, readonly string[]]>([
    ["twice", [a.line(log.text()), a.line(log.text(), 1_700_000_300)]],
    ["once under its name, and once under that of another", [a.line(log.text()), renamed(a.line(log.text()))]],
    ["once, and once with its key under the name of another", [a.line(log.text()), twin.line(log.text())]],
  ])("counts one witness once that signs %s", async (_, lines) => {
    const { mirror, round } = monitorOf(log, undefined, policy);
    await expect(round(cosigned(...lines))).rejects.toThrow("no quorum of the witnesses; cosigned by: A.");
    expect(existsSync(mirror)).toBe(false);
  });
});

describe("a log that lies", () => {
  const log = new StaticLog(700);
  const fork = new StaticLog(900, { twist: 50, signer: log.signer });
  /** A monitor that has followed 600 entries. */
  async function followed() {
    const monitor = monitorOf(log);
    await monitor.round(log.files(600));
    return { ...monitor, before: filesIn(monitor.mirror) };
  }

  test("and rewrites an entry is convicted by two checkpoints and a proof", async () => {
    const { mirror, round, before } = await followed();
    const { known, shown, prefixRoot, proof, logs } = await caught(round(fork.files()), "fork");
    expect([known, shown, logs]).toEqual([
      log.files(600).get("checkpoint")!.toString(),
      fork.files().get("checkpoint")!.toString(),
      [log.signer.vkey],
    ]);
    const [fromRoot, toRoot] = [Buffer.from(prefixRoot!, "hex"), fork.root()].map((root) => new Uint8Array(root));
    const hashes = proof!.map((hash) => new Uint8Array(Buffer.from(hash, "base64")));
    expect(
      rfc6962.verifyConsistency({ fromSize: 600, toSize: 900, fromRoot: fromRoot!, toRoot: toRoot!, proof: hashes }),
    ).toBe(true);
    expect(prefixRoot).not.toBe(Buffer.from(log.root(600)).toString("hex"));
    expect(filesIn(mirror)).toEqual(before);
  });

  test("with two roots of one size, or fewer entries than before, is caught", async () => {
    const { mirror, round, before } = await followed();
    await caught(round(fork.files(600)), "fork");
    // Of the same tree, and older: an honest cache may have kept it.
    for (const size of [599, 256, 0]) {
      const { known, shown } = await older(round(log.files(size)));
      expect([known, shown]).toEqual([600, size].map((of) => log.files(of).get("checkpoint")!.toString()));
    }
    // Older, and of another tree, which a proof shows.
    const { prefixRoot, proof } = await caught(round(fork.files(599)), "fork");
    const [fromRoot, toRoot] = [Buffer.from(prefixRoot!, "hex"), log.root(600)].map((root) => new Uint8Array(root));
    const hashes = proof!.map((hash) => new Uint8Array(Buffer.from(hash, "base64")));
    expect(
      rfc6962.verifyConsistency({ fromSize: 599, toSize: 600, fromRoot: fromRoot!, toRoot: toRoot!, proof: hashes }),
    ).toBe(true);
    expect(filesIn(mirror)).toEqual(before);
  });

  test("with fewer entries than before is judged alike, whichever tile of the copy is damaged or lost", async () => {
    const { mirror, round, before } = await followed();
    const tiles = [...before.keys()].filter((path) => /^tile\/\d/.test(path));
    expect(tiles).toHaveLength(4);
    const damages: ((content: Buffer) => Buffer | undefined)[] = [
      (content) => content.map((byte, at) => (at === 40 ? byte ^ 1 : byte)) as Buffer,
      (content) => content.subarray(0, -32),
      () => Buffer.from("<html>"),
      () => undefined,
    ];
    const shown = (note: Buffer) => round(new Map([...log.files(600), ["checkpoint", note]]));
    for (const path of tiles)
      for (const damage of damages) {
        const content = damage(before.get(path)!);
        if (content) writeFileSync(join(mirror, path), content);
        else rmSync(join(mirror, path));
        for (const size of [599, 512, 300, 100]) {
          await older(shown(log.files(size).get("checkpoint")!));
          const { proof } = await caught(shown(fork.files(size).get("checkpoint")!), "fork");
          expect(proof).not.toBeNull();
          // Tiles of the fork in the place of what is damaged are caught by the root that was believed, if not by its own.
          const { thrown: error } = await failureOf(round(fork.files(size)));
          const isDenied = (error as ClientError).status === 404;
          expect(isDenied || ["fork", "wrong-root"].includes((error as Misbehaviour).kind), `${error}`).toBe(true);
        }
        writeFileSync(join(mirror, path), before.get(path)!);
      }
    expect(filesIn(mirror)).toEqual(before);
  });

  test("under another key is caught, and what is no checkpoint is an outage", async () => {
    const { mirror, round, before } = await followed();
    await caught(round(new StaticLog(700).files()), "bad-signature");
    const named = new StaticLog(700, { signer: newNoteSigner("other.example") });
    await caught(round(named.files()), "bad-signature");
    for (const text of ["", "<html>", `${log.text(700)}\n`])
      await expect(round(new Map([["checkpoint", text]]))).rejects.toMatchObject({ code: "malformed-answer" });
    await expect(round(new Map())).rejects.toMatchObject({ status: 404 });
    expect(filesIn(mirror)).toEqual(before);
  });

  test("in a tile or an entry is caught, new or old", async () => {
    const { mirror, round, before } = await followed();
    const flip = (at: number) => (content: Buffer) => {
      content[at]! ^= 1;
      return content;
    };
    const files = log.files(700);
    await caught(round(changed(files, "tile/0/002.p/188", flip(187 * 32))), "wrong-root");
    await caught(round(changed(files, "tile/1/000.p/2", flip(0))), "wrong-root");
    const { entry } = await caught(round(changed(files, "tile/entries/002.p/188", flip(5))), "bad-entry");
    expect(entry).not.toBeNull();
    const fresh = monitorOf(log);
    await caught(fresh.round(changed(files, "tile/0/001", flip(31))), "wrong-root");
    expect(existsSync(join(fresh.mirror, "checkpoint"))).toBe(false);
    expect(readFileSync(join(mirror, "checkpoint"))).toEqual(before.get("checkpoint"));
    // An old entry is compared when the new ones, which hold, are kept.
    await caught(round(changed(files, "tile/entries/000", flip(400)), { audit: true }), "changed-entry");
    expect(filesIn(mirror)).toEqual(sorted(files));
    await round(files);
    expect(filesIn(mirror)).toEqual(sorted(files));
  });

  test("in the form of an answer is an outage", async () => {
    const { round } = await followed();
    const files = log.files(700);
    for (const [path, change] of [
      ["tile/0/002.p/188", (content: Buffer) => content.subarray(1)],
      ["tile/0/002.p/188", (content: Buffer) => Buffer.concat([content, Buffer.alloc(32)])],
      ["tile/entries/002.p/188", (content: Buffer) => content.subarray(0, -1)],
      ["tile/entries/002.p/188", (content: Buffer) => Buffer.concat([content, Buffer.of(0)])],
      ["tile/entries/002.p/188", () => "<html>"],
    ] as const)
      await expect(round(changed(files, path, change))).rejects.toMatchObject({ code: "malformed-answer" });
  });
});
