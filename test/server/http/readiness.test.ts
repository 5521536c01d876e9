/** Whether `/readyz` is right, and the reason that it gives. */
import { expect, test, vi } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { Operators } from "#cairnlog/engine/log/operator/operators.js";
import { Readiness } from "#cairnlog/server/http/observing/readiness.js";
import { startControlled } from "../controlled.js";
import { expectProblem } from "../harness.js";
import { newSigner, registration } from "../signers.js";

const MIB = 1024 * 1024;

test("an operator key that cannot sign, and a disk that is nearly full", async () => {
  const controlled = await startControlled();
  const ready = () => controlled.service.send("GET", "/readyz");
  controlled.operatorAnswers = false;
  expectProblem(await ready(), 503, "not-ready");
  expect((await ready()).body.detail).toBe("The operator key cannot sign.");
  expectProblem(await controlled.service.post("/keys/register", registration(newSigner())), 503, "signer-unavailable");
  controlled.operatorAnswers = true;
  controlled.freeBytes = 63 * MIB;
  await expect.poll(async () => (await ready()).body.detail).toMatch(/^Only 63 MiB are free/);
  expect((await ready()).headers.get("retry-after")).toBe("10");
  controlled.freeBytes = 1000 * MIB;
  await expect.poll(async () => (await ready()).status).toBe(200);
  expect((await ready()).body.warnings[0]).toBe("1000 MiB are free on the disk of the data directory.");
});

test("no verdict outlives its second because the clock was set back", async () => {
  const controlled = await startControlled();
  const ready = () => controlled.service.send("GET", "/readyz");
  expect((await ready()).status).toBe(200);
  const now = Date.now.bind(Date);
  const day = vi.spyOn(Date, "now").mockImplementation(() => now() - 3_600_000);
  controlled.operatorAnswers = false;
  await expect.poll(async () => (await ready()).status).toBe(503);
  day.mockRestore();
});

test("it warns below 1 GiB of free disk", async () => {
  const operator = operatorKey(generatePrivateKey("ed25519"));
  const log = { size: 0, operators: Operators.of(operator.public), failure: null, lastFailure: null } as never;
  const parts = { log, operator, stuck: () => [], minFreeBytes: 0 };
  const warnings = (free: number) => new Readiness({ ...parts, freeBytes: () => free }).check();
  expect(await warnings(1024 * MIB)).toEqual([]);
  expect(await warnings(1024 * MIB - 1)).toEqual(["1023 MiB are free on the disk of the data directory."]);
});

test("a front end that gives no sign is named", async () => {
  const operator = operatorKey(generatePrivateKey("ed25519"));
  const log = { size: 0, operators: Operators.of(operator.public), failure: null, lastFailure: null } as never;
  const parts = { log, operator, freeBytes: () => 2 ** 40, minFreeBytes: 0 };
  const examine = (stuck: readonly string[]) => new Readiness({ ...parts, stuck: () => stuck }).check();
  expect(await examine([])).toEqual([]);
  await expect(examine(["front-2", "front-5"])).rejects.toMatchObject({
    status: 503,
    message: expect.stringContaining("front-2, front-5"),
  });
});

test("after a batch that could not be written, it tries to write without a request", async () => {
  const operator = operatorKey(generatePrivateKey("ed25519"));
  let writable = false;
  const log = {
    size: 0,
    operators: Operators.of(operator.public),
    failure: null,
    treeHead: () => null,
    frozen: null,
  };
  const writer = {
    ...{ clockRefusal: null, refuted: null, secondsAhead: 0 },
    lastFailure: { code: "storage-failed" } as CairnlogError,
    tryWriting: () => (writable ? Promise.resolve() : Promise.reject(new Error("full"))),
  };
  const examine = () =>
    new Readiness({ log, writer, operator, stuck: () => [], freeBytes: () => 2 ** 40, minFreeBytes: 0 }).check();
  await expect(examine()).rejects.toMatchObject({
    status: 503,
    message: expect.stringContaining("could not be written"),
  });
  writable = true;
  expect(await examine()).toEqual([]);
  await expect(
    new Readiness({
      log: { ...log, size: 1 },
      operator,
      stuck: () => [],
      freeBytes: () => 2 ** 40,
      minFreeBytes: 0,
    }).check(),
  ).rejects.toMatchObject({ status: 503, message: expect.stringContaining("no valid tree head") });
});

/** The parts of a service that is ready. */
function parts(more: object = {}) {
  const operator = operatorKey(generatePrivateKey("ed25519"));
  const log = { size: 0, operators: Operators.of(operator.public), failure: null, lastFailure: null } as never;
  return { log, operator, stuck: () => [], freeBytes: () => 2 ** 40, minFreeBytes: 0, ...more };
}

test("a verdict is reused for a second, by all who ask", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  try {
    let looks = 0;
    const freeBytes = () => {
      looks++;
      return 2 ** 40;
    };
    const readiness = new Readiness(parts({ freeBytes }));
    await Promise.all([readiness.check(), readiness.check()]);
    vi.advanceTimersByTime(999);
    await readiness.check();
    expect(looks).toBe(1);
    vi.advanceTimersByTime(1);
    await readiness.check();
    expect(looks).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});

test("the least free disk is enough, and a byte less is not", async () => {
  const examine = (free: number) => new Readiness(parts({ freeBytes: () => free, minFreeBytes: 64 * MIB })).check();
  expect(await examine(64 * MIB)).toEqual(["64 MiB are free on the disk of the data directory."]);
  await expect(examine(64 * MIB - 1)).rejects.toMatchObject({
    status: 503,
    code: "not-ready",
    headers: { "retry-after": "10" },
    message: "Only 63 MiB are free on the disk of the data directory.",
  });
});

test("an operator key that signs wrongly, not at all, or says why it does not", async () => {
  const { operator } = parts();
  const other = operatorKey(generatePrivateKey("ed25519"));
  const examine = (sign: typeof operator.sign) => new Readiness(parts({ operator: { ...operator, sign } })).check();
  const message = "The operator key cannot sign.";
  const signed: string[] = [];
  const examined = examine((messages) => {
    signed.push(...messages.map(String));
    return operator.sign(messages);
  });
  expect(await examined).toEqual([]);
  // Nobody could take it for the message of a tree head or for a token.
  expect(signed).toEqual(["service.readiness.probe.v1"]);
  await expect(examine((messages) => other.sign(messages))).rejects.toMatchObject({ status: 503, message });
  await expect(examine(async () => [])).rejects.toMatchObject({ status: 503, message });
  await expect(examine(() => Promise.reject(new Error("secret")))).rejects.toMatchObject({ status: 503, message });
  const reason = new CairnlogError("signer-unavailable", "The signer is away.");
  await expect(examine(() => Promise.reject(reason))).rejects.toMatchObject({
    status: 503,
    message: `${message} The signer is away.`,
  });
});

test("a mirror needs neither the operator key nor much free disk", async () => {
  const operator = { ...parts().operator, sign: () => Promise.reject(new Error("It has none.")) };
  const readiness = new Readiness(parts({ operator, isReadOnly: true, freeBytes: () => 1, minFreeBytes: 64 * MIB }));
  expect(await readiness.check()).toEqual([]);
});

test("of a log that has ended, what keeps it from being read counts, and what keeps it from growing does not", async () => {
  const log = { ...(parts().log as object), frozen: { reason: "The end.", successor: null } };
  const operator = { ...parts().operator, sign: () => Promise.reject(new Error("It is put away.")) };
  const ended = (more: object) => new Readiness(parts({ log, operator, freeBytes: () => 1, ...more })).check();
  const node = (trouble: string | null) => ({ leads: () => true, trouble: () => trouble });
  expect(await ended({ minFreeBytes: 2, node: node(null) })).toEqual([]);
  await expect(ended({ stuck: () => ["front-1"] })).rejects.toMatchObject({
    status: 503,
    message: "Threads that serve HTTP do not answer: front-1.",
  });
  const trouble = "This node has had no news of the log for 61 seconds.";
  await expect(ended({ node: node(trouble) })).rejects.toMatchObject({ status: 503, message: trouble });
});

test("a log that can no longer be used says so, to both probes", async () => {
  const failure = new CairnlogError("storage-failed", "The disk is gone.");
  const { log } = parts();
  const readiness = new Readiness(parts({ log: { ...(log as object), failure } }));
  const refusal = expect.objectContaining({
    status: 503,
    message: "The disk is gone.",
    headers: { "retry-after": "10" },
  });
  expect(() => readiness.checkAlive()).toThrow(refusal);
  await expect(readiness.check()).rejects.toEqual(refusal);
  new Readiness(parts()).checkAlive();
});
