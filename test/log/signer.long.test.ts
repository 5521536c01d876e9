/** Answers of a signer: anything other than a valid signature of each message makes the work fail without a trace. */
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey, type Signer } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { Checkpoints } from "#cairnlog/engine/log/tlog/checkpoints.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { MAP_SIZE, openFaultyLog, openTestLog, temporaryFolder, testOperator } from "./harness.js";
import { chain } from "./history/entries.js";

type Messages = readonly Uint8Array[];
type Answer = (messages: Messages, right: readonly Uint8Array[]) => unknown;

const event = { event_type: "note", payload: {} };
const stranger = operatorKey(generatePrivateKey("ed25519"));
const flipped = (signature: Uint8Array) => Uint8Array.from(signature, (byte, at) => (at === 63 ? byte ^ 1 : byte));

/** A signer that gives right answers until the test sets another one. */
function openSigner() {
  const signer = {
    ...testOperator,
    answer: null as Answer | null,
    async sign(messages: Messages) {
      const right = await testOperator.sign(messages);
      return (signer.answer ? await signer.answer(messages, right) : right) as Uint8Array[];
    },
  };
  return signer;
}

/** Wrong answers for one or several messages. */
const WRONG: readonly [string, Answer][] = [
  ["nothing", () => undefined],
  ["no signature", () => []],
  ["one too few", (_, right) => right.slice(1)],
  ["one too many", (_, right) => [...right, right[0]]],
  ["a hole in the place of the first", (_, right) => Object.assign(new Array(right.length), right.slice(1))],
  ["text", (_, right) => right.map((signature) => Buffer.from(signature).toString("base64"))],
  ["shorter ones", (_, right) => right.map((signature) => signature.slice(1))],
  ["longer ones", (_, right) => right.map((signature) => Buffer.concat([signature, Buffer.alloc(1)]))],
  ["zeros", (_, right) => right.map(() => new Uint8Array(64))],
  ["those of another key", (messages) => stranger.sign(messages)],
  ["those of other messages", (messages) => testOperator.sign(messages.map((message) => message.slice(1)))],
  ["its own, the last one broken", (_, right) => [...right.slice(0, -1), flipped(right.at(-1)!)]],
];
/** Wrong answers for several messages. */
const WRONG_IN_A_BATCH: readonly [string, Answer][] = [
  ["its own in another order", (_, right) => right.toReversed()],
  ["the one of the first for all", (_, right) => right.map(() => right[0])],
  ...[0, 1, 2].map((place): [string, Answer] => [
    `a longer one at place ${place}`,
    (_, right) => right.map((one, i) => (i === place ? Buffer.concat([one, one]) : one)),
  ]),
  ...[0, 1, 2].map((place): [string, Answer] => [
    `no bytes at place ${place}`,
    (_, right) => right.map((one, i) => (i === place ? [...one] : one)),
  ]),
];
const unavailable = { code: "signer-unavailable" };

describe("for appends", () => {
  let signer: ReturnType<typeof openSigner>;
  let log: LogWriter;
  beforeEach(async () => {
    signer = openSigner();
    ({ log } = await openTestLog({ signer }));
    await log.append(event);
  });

  async function expectRefused(count: number, answer: Answer): Promise<void> {
    signer.answer = answer;
    await expect(log.append(Array(count).fill(event))).rejects.toMatchObject(unavailable);
    expect(log.lastFailure).toMatchObject(unavailable);
    expect(log.size).toBe(1);
    signer.answer = null;
    expect(await log.append(event)).toMatchObject({ leaf_index: 1, sth: { tree_size: 2 } });
    expect(log.lastFailure).toBeNull();
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: 2 });
  }

  test.each(WRONG)("%s is refused", async (_, answer) => {
    await expectRefused(1, answer);
  });

  test.each([...WRONG, ...WRONG_IN_A_BATCH])("%s is refused in a batch", async (_, answer) => {
    await expectRefused(3, answer);
  });

  test("a wrong one that is not the last of its batch is found by `verify`, at its size", async () => {
    signer.answer = (_, right) => [right[0], flipped(right[1]!), right[2]];
    await log.append([event, event, event]);
    const { errors } = await log.verify();
    expect(errors.map(({ tree_size, code }) => [tree_size, code])).toEqual([[3, "signature-invalid"]]);
  });
});

test("a key in this process that is given as another one is refused", async () => {
  const { fingerprint, public: named } = testOperator;
  const { log } = await openTestLog({ signer: { ...stranger, fingerprint, public: named } });
  await expect(log.append(event)).rejects.toMatchObject(unavailable);
  expect(log.size).toBe(0);
});

test("memory that the signer reuses does not change what is written", async () => {
  const signer = openSigner();
  const given: Uint8Array[] = [];
  signer.answer = (_, right) => {
    given.push(...right);
    return right;
  };
  const { log, faults } = await openFaultyLog({ signer });
  let release = () => {};
  faults.hold = new Promise((resolve) => {
    release = resolve;
  });
  const appending = log.append([event, event]);
  await expect.poll(() => given.length, { interval: 1 }).toBe(2);
  // The batches are signed and wait for the disk.
  await new Promise((resolve) => setImmediate(resolve));
  for (const bytes of given) bytes.fill(0);
  release();
  const [first] = await appending;
  expect(log.treeHead(1)).toEqual(first!.sth);
  expect(await log.verify()).toMatchObject({ valid: true });
});

describe("for one head", () => {
  test.each(WRONG)("%s is refused on demand", async (_, answer) => {
    const signer = openSigner();
    const { log } = await openTestLog({ signer });
    await log.append(event);
    signer.answer = answer;
    await expect(log.signHead()).rejects.toMatchObject(unavailable);
    signer.answer = null;
    expect(await log.signHead()).toMatchObject({ tree_size: 1, root_hash: log.treeHead()!.root_hash });
  });

  test.each(WRONG)("%s is refused at the end of an import, and nothing is left", async (_, answer) => {
    const signer = openSigner();
    signer.answer = answer;
    const path = join(temporaryFolder(), "log");
    const importing = () => importEntries({ path, signer, mapSize: MAP_SIZE }, chain([{}, {}]));
    await expect(importing()).rejects.toMatchObject(unavailable);
    signer.answer = null;
    expect(await importing()).toMatchObject({ entry_count: 2 });
    const { log } = await openTestLog({ path });
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: 2 });
  });

  test.each(WRONG)("%s is refused for a checkpoint, and asked for again", async (_, answer) => {
    const signer = openSigner();
    const { log } = await openTestLog({ signer: testOperator });
    await log.append(event);
    const checkpoints = new Checkpoints(log, signer, "log.example");
    signer.answer = answer;
    await expect(checkpoints.newest()).rejects.toMatchObject(unavailable);
    signer.answer = null;
    expect(await checkpoints.newest()).toMatch(/^log\.example\n1\n/);
  });
});

test("a signer that throws, or whose key is gone, is unavailable", async () => {
  const signer: Signer & typeof testOperator = {
    ...testOperator,
    sign: () => {
      throw new Error("token removed");
    },
  };
  const { log } = await openTestLog({ signer });
  await expect(log.append(event)).rejects.toMatchObject({
    ...unavailable,
    cause: expect.objectContaining({ message: "token removed" }),
  });
});
