/** The signed note of the current size: which logs have one, and when a new one is made. */
import { expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { Checkpoints, defaultLogName } from "#cairnlog/engine/log/tlog/checkpoints.js";
import { parsePublicKey, verifyCheckpoint } from "#cairnlog/engine/verify/index.js";
import { openTestLog, testOperator } from "../harness.js";

const NAME = "log.example";
const event = { event_type: "note", payload: {} };

test("an empty log has none", async () => {
  const { log } = await openTestLog();
  await expect(new Checkpoints(log, testOperator, NAME).newest()).rejects.toMatchObject({ code: "not-found" });
});

test.each(["ecdsa-p256", "rsa-2048"] as const)("a log whose operator key is of %s has none", async (algorithm) => {
  const signer = operatorKey(generatePrivateKey(algorithm));
  const { log } = await openTestLog({ signer });
  await log.append(event);
  await expect(new Checkpoints(log, signer, NAME).newest()).rejects.toMatchObject({
    code: "not-found",
    message: expect.stringMatching(/^This log has no checkpoints: its operator key is not Ed25519/),
  });
});

test("each size has one, which says what the head says, and is signed once", async () => {
  let signatures = 0;
  const operator = {
    ...testOperator,
    sign: (messages: readonly Uint8Array[]) => {
      signatures++;
      return testOperator.sign(messages);
    },
  };
  const { log } = await openTestLog();
  const checkpoints = new Checkpoints(log, operator, NAME);
  const key = parsePublicKey(testOperator.public.pem);
  const notes = new Set<string>();
  for (let size = 1; size <= 3; size++) {
    const { sth } = await log.append(event);
    const [note, again] = await Promise.all([checkpoints.newest(), checkpoints.newest()]);
    expect(await checkpoints.newest()).toBe(note);
    expect(again).toBe(note);
    expect(await verifyCheckpoint(note, key, NAME)).toMatchObject({ treeSize: size, rootHash: sth.root_hash });
    expect(signatures).toBe(size);
    notes.add(note);
  }
  expect(notes.size).toBe(3);
});

test("one that could not be signed does not take the place of a newer one", async () => {
  const answers: (() => void)[] = [];
  let isGone = true;
  let signatures = 0;
  const operator = {
    ...testOperator,
    sign: async (messages: readonly Uint8Array[]) => {
      signatures++;
      if (!isGone) return testOperator.sign(messages);
      await new Promise<void>((resolve) => answers.push(resolve));
      throw new Error("token removed");
    },
  };
  const { log } = await openTestLog();
  const checkpoints = new Checkpoints(log, operator, NAME);
  await log.append(event);
  const failing = expect(checkpoints.newest()).rejects.toMatchObject({
    code: "signer-unavailable",
    cause: expect.objectContaining({ message: "token removed" }),
  });
  isGone = false;
  await log.append(event);
  const note = await checkpoints.newest();
  for (const answer of answers) answer();
  await failing;
  expect(await checkpoints.newest()).toBe(note);
  expect(signatures).toBe(2);
});

test("a log's name, where nobody gave it one, has sixteen digits of its operator's fingerprint", () => {
  expect(defaultLogName(`sha256:${"0123456789abcdef".repeat(4)}`)).toBe("cairnlog/0123456789abcdef");
});
