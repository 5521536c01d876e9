/** Checkpoints: when they are published, and that they never contradict one another, wherever the process ended. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { CairnlogError } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { type OperatorKey, operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { Log } from "#cairnlog/engine/log/log.js";
import { Rfc6962Growth } from "#cairnlog/engine/log/rfc6962/growth.js";
import { CheckpointPublisher } from "#cairnlog/engine/log/tlog/publisher.js";
import { EMPTY_ROOT, parseCheckpointText, verifyNote } from "#cairnlog/engine/verify/index.js";
import { hashOf, plainRoot } from "../../verify/tlog/plain-rfc6962.js";
import { openTestLog, temporaryFolder, testOperator } from "../harness.js";

const ORIGIN = "log.example/tlog";
const note = { event_type: "note", payload: {} };
const opened: CheckpointPublisher[] = [];
afterEach(async () => {
  for (const publisher of opened.splice(0)) await publisher.stop();
});

/** What a publisher told of its troubles: codes, and null. */
const troubles: (string | null)[] = [];

function newPublisher(
  log: Log,
  file: string,
  parts: Partial<ConstructorParameters<typeof CheckpointPublisher>[0]> = {},
): CheckpointPublisher {
  const told = (trouble: CairnlogError | null) => troubles.push(trouble?.code ?? null);
  const publisher = new CheckpointPublisher({
    ...{ log, origin: ORIGIN, signer: testOperator, file, intervalMs: 0, told },
    ...parts,
  });
  opened.push(publisher);
  return publisher;
}

async function started(...asked: Parameters<typeof newPublisher>): Promise<CheckpointPublisher> {
  const publisher = newPublisher(...asked);
  await publisher.open();
  publisher.start();
  return publisher;
}

const newFile = () => join(temporaryFolder(), "tlog-checkpoint.txt");

/** Waits until a checkpoint of this size is shown. */
async function published(publisher: CheckpointPublisher, size: number): Promise<string> {
  await expect.poll(() => publisher.size, { interval: 2 }).toBe(size);
  return publisher.newest();
}

const rootOf = (log: Log, size = log.size) =>
  Buffer.from(
    plainRoot(Array.from({ length: size }, (_, i) => hashOf(0, Buffer.from(log.entryAt(i)!.entry_hash)))),
  ).toString("hex");

/** What a checkpoint says, if it is signed by the key of `publisher`. */
async function read(checkpoint: string, { key }: CheckpointPublisher) {
  const verified = await verifyNote(checkpoint, [key]);
  return verified && parseCheckpointText(verified.text);
}

describe("a checkpoint", () => {
  test("of every size that is published is signed under the origin, with the root by the definition", async () => {
    const { log } = await openTestLog();
    const publisher = await started(log, newFile());
    expect(await read(await published(publisher, 0), publisher)).toEqual({
      origin: ORIGIN,
      treeSize: 0,
      rootHash: EMPTY_ROOT,
    });
    for (const count of [1, 1, 254, 300]) {
      await log.append(Array.from({ length: count }, () => note));
      const treeSize = log.size;
      expect(await read(await published(publisher, treeSize), publisher)).toEqual({
        origin: ORIGIN,
        treeSize,
        rootHash: rootOf(log),
      });
    }
  });

  test("is on disk before it is shown, readable for its owner alone, and nothing else is left", async () => {
    const { log } = await openTestLog();
    const file = newFile();
    const publisher = await started(log, file);
    await log.append(note);
    const shown = await published(publisher, 1);
    expect(readFileSync(file, "utf8")).toBe(shown);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(file, ".."))).toEqual(["tlog-checkpoint.txt"]);
  });

  test("is of one size, though the log grows while it is made", async () => {
    const { log } = await openTestLog();
    const shown: { treeSize: number; rootHash: string }[] = [];
    await started(log, newFile(), { published: ({ treeSize, rootHash }) => shown.push({ treeSize, rootHash }) });
    let isOver = false;
    const single = async () => {
      while (!isOver) await log.append(note);
    };
    const appending = single();
    for (let batch = 0; batch < 4; batch++) await log.append(Array.from({ length: 512 }, () => note));
    await expect.poll(() => shown.length, { interval: 2 }).toBeGreaterThan(20);
    isOver = true;
    await appending;
    for (const { treeSize, rootHash } of shown) expect(rootHash).toBe(rootOf(log, treeSize));
  });

  test("does not exist before the first one is made", async () => {
    const { log } = await openTestLog();
    const publisher = newPublisher(log, newFile());
    await publisher.open();
    expect(publisher.size).toBeNull();
    expect(() => publisher.newest()).toThrow(expect.objectContaining({ code: "not-found" }));
  });

  test("is made at once when the log was idle for the interval, and then not again within it", async () => {
    const { log } = await openTestLog();
    const publisher = await started(log, newFile(), { intervalMs: 3_600_000 });
    await published(publisher, 0);
    await log.append(note);
    await log.append(note);
    const other = await started(log, newFile(), { intervalMs: 1 });
    await published(other, 2);
    expect(publisher.size).toBe(0);
  });
});

describe("after a start", () => {
  test("the checkpoint of before is shown at once, and later ones go on from it", async () => {
    const { log } = await openTestLog();
    const file = newFile();
    const first = await started(log, file);
    await log.append(note);
    const shown = await published(first, 1);
    await first.stop();
    await log.append(note);
    const second = newPublisher(log, file);
    await second.open();
    expect(second.newest()).toBe(shown);
    second.start();
    await published(second, 2);
  });

  test("a log that is shorter than what was published, or another one, is refused", async () => {
    const { log } = await openTestLog();
    const file = newFile();
    const first = await started(log, file);
    await log.append([note, note, note]);
    await published(first, 3);
    await first.stop();
    const shorter = await openTestLog();
    await shorter.log.append([note, note]);
    await expect(newPublisher(shorter.log, file).open()).rejects.toThrow(
      expect.objectContaining({
        code: "corrupt-log",
        message: expect.stringMatching(/^The log shrank: it has 2 entries/),
      }),
    );
    await shorter.log.append([note, note]);
    await expect(newPublisher(shorter.log, file).open()).rejects.toThrow(
      expect.objectContaining({
        code: "corrupt-log",
        message: expect.stringMatching(/first 3 entries have another root/),
      }),
    );
  });

  test.each([300, 0])(
    "nodes behind the %i entries that were published are made anew if they are damaged",
    async (size) => {
      const { log } = await openTestLog();
      const file = newFile();
      if (size) await log.append(Array.from({ length: size }, () => note));
      const first = await started(log, file);
      await published(first, size);
      await first.stop();
      if (!size) rmSync(file);
      await log.append(Array.from({ length: 600 - size }, () => note));
      await new Rfc6962Growth(log.rfc6962).extend(600);
      // Of the leaves from 257 to 512. What is made of it alone goes on from the checkpoint, whatever it is.
      const { rows } = log.rfc6962;
      const hashes = Buffer.concat([log.rfc6962.tile(1, 0, 1)!, Buffer.alloc(32, 1)]);
      await rows.write([{ level: 1, index: 0, hashes }], rows.extent()!);
      const second = await started(log, file);
      expect(await read(await published(second, 600), second)).toMatchObject({ rootHash: rootOf(log) });
    },
  );

  test("a file that holds no checkpoint is as good as none", async () => {
    const { log } = await openTestLog();
    await log.append(note);
    for (const text of ["", "x", "a\n1\n", "\n\n\u2014 a b\n"]) {
      const file = newFile();
      writeFileSync(file, text);
      const publisher = await started(log, file);
      await published(publisher, 1);
    }
  });

  test("with another key or another origin, the same size is signed anew at once", async () => {
    const { log } = await openTestLog();
    const file = newFile();
    const first = await started(log, file);
    await log.append(note);
    const shown = await published(first, 1);
    await first.stop();
    const signer = operatorKey(generatePrivateKey("ed25519"));
    for (const change of [{ signer }, { origin: "log.example/other" }]) {
      const next = await started(log, file, change);
      await expect
        .poll(async () => (await read(next.newest(), next))?.origin, { interval: 2 })
        .toBe(change.origin ?? ORIGIN);
      expect(next.size).toBe(1);
      expect(next.newest()).not.toBe(shown);
      await next.stop();
    }
  });
});

describe("no checkpoint is shown", () => {
  test("that could not be signed; it is made when the signer is there again, and the operator is told once", async () => {
    const { log } = await openTestLog();
    let answers = true;
    const sign: OperatorKey["sign"] = (messages) =>
      answers ? testOperator.sign(messages) : Promise.reject(new Error("away"));
    const publisher = await started(log, newFile(), { signer: { public: testOperator.public, sign } });
    await published(publisher, 0);
    troubles.length = 0;
    answers = false;
    await log.append(note);
    await expect.poll(() => troubles).toEqual(["signer-unavailable"]);
    await log.append(note);
    expect(publisher.size).toBe(0);
    answers = true;
    await published(publisher, 2);
    expect(troubles).toEqual(["signer-unavailable", null]);
  });

  test("that is not signed yet when it is told to stop, and nobody waits for the signer", async () => {
    const { log } = await openTestLog();
    let isAsked = false;
    const sign: OperatorKey["sign"] = () => {
      isAsked = true;
      return new Promise(() => {});
    };
    const file = newFile();
    const publisher = await started(log, file, { signer: { public: testOperator.public, sign } });
    await expect.poll(() => isAsked).toBe(true);
    await publisher.stop();
    expect(publisher.size).toBeNull();
    expect(existsSync(file)).toBe(false);
  });

  test("whose last nodes were being written when it was told to stop, and nobody waits for the signer", async () => {
    const { log } = await openTestLog();
    const file = newFile();
    const first = await started(log, file);
    await published(first, 0);
    await first.stop();
    let [isAsked, written] = [false, () => {}];
    const sign: OperatorKey["sign"] = () => {
      isAsked = true;
      return new Promise(() => {});
    };
    const publisher = newPublisher(log, file, { signer: { public: testOperator.public, sign } });
    await publisher.open();
    const growing = vi.spyOn(Rfc6962Growth.prototype, "extend").mockImplementation(
      () =>
        new Promise<void>((resolve) => {
          written = resolve;
        }),
    );
    onTestFinished(() => growing.mockRestore());
    await log.append(note);
    publisher.start();
    await expect.poll(() => growing.mock.calls.length).toBe(1);
    const stopped = publisher.stop();
    written();
    await stopped;
    expect([isAsked, publisher.size]).toEqual([false, 0]);
  });

  test("that another key has signed", async () => {
    const { log } = await openTestLog();
    const other = operatorKey(generatePrivateKey("ed25519"));
    troubles.length = 0;
    const publisher = await started(log, newFile(), {
      signer: { public: testOperator.public, sign: (messages) => other.sign(messages) },
    });
    await expect.poll(() => troubles).toEqual(["signer-unavailable"]);
    expect(publisher.size).toBeNull();
  });

  test("that could not be written; the one before stays", async () => {
    const { log } = await openTestLog();
    const file = newFile();
    const publisher = await started(log, file);
    const shown = await published(publisher, 0);
    mkdirSync(`${file}.new`);
    troubles.length = 0;
    await log.append(note);
    await expect.poll(() => troubles).toEqual(["storage-failed"]);
    expect(publisher.newest()).toBe(shown);
    rmSync(`${file}.new`, { recursive: true });
    await published(publisher, 1);
    expect(existsSync(`${file}.new`)).toBe(false);
  });

  test("whose root does not go on from the one before, because nodes on disk are damaged", async () => {
    const { log } = await openTestLog();
    const file = newFile();
    await log.append(Array.from({ length: 300 }, () => note));
    const first = await started(log, file);
    await published(first, 300);
    await first.stop();
    const second = newPublisher(log, file);
    await second.open();
    // Found whole by the start, damaged afterwards.
    const { rows } = log.rfc6962;
    await rows.write([{ level: 1, index: 0, hashes: Buffer.alloc(32, 1) }], rows.extent()!);
    log.rfc6962.clear();
    troubles.length = 0;
    second.start();
    await log.append(note);
    await expect.poll(() => troubles).toEqual(["corrupt-log"]);
    expect(second.size).toBe(300);
    await rows.clear();
    await new Rfc6962Growth(log.rfc6962).extend(300);
  });
});

test("only an Ed25519 key signs notes, and an origin is a name", async () => {
  const { log } = await openTestLog();
  const signer = operatorKey(generatePrivateKey("ecdsa-p256"));
  expect(() => newPublisher(log, newFile(), { signer })).toThrow(expect.objectContaining({ code: "invalid-key" }));
  expect(() => newPublisher(log, newFile(), { origin: "a b" })).toThrow(
    expect.objectContaining({ code: "invalid-input" }),
  );
});
