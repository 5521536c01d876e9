/** Signers behind a socket, honest and otherwise: what they get wrong reaches no disk and no client, and the log goes on. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { generatePrivateKey, verifySync } from "#cairnlog/engine/crypto/keys/signatures.js";
import type { Pool } from "#cairnlog/engine/crypto/pool/pool.js";
import { SignerConnection } from "#cairnlog/engine/crypto/signer/connection.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { CairnlogError, type SocketSigner, signerAt } from "#cairnlog/engine/index.js";
import { openTestLog, temporaryFolder, testPool } from "../../log/harness.js";
import { derOf } from "./der.js";
import { base64, FakeSigner, type Misdeed, type Signed, send } from "./fakesigner.js";

const event = { event_type: "note", payload: {} };
const unavailable = { code: "signer-unavailable" };
const stranger = operatorKey(generatePrivateKey("ed25519"));
const ALGORITHMS = ["ed25519", "ecdsa-p256", "rsa-2048"] as const;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function startSigner(pem?: string): Promise<FakeSigner> {
  const fake = new FakeSigner(pem);
  closing.push(() => fake.remove());
  return fake.start();
}

async function connect(fake: FakeSigner, options: Parameters<typeof signerAt>[1] = {}): Promise<SocketSigner> {
  const signer = await signerAt(fake.address, options);
  closing.push(() => signer.close());
  return signer;
}

const connected = (signer: SocketSigner) => expect.poll(() => signer.trouble, { interval: 5 }).toBeNull();
const messagesOf = (count: number) => Array.from({ length: count }, (_, i) => Buffer.from(`message ${i}`));

describe("an honest signer", () => {
  test.each(ALGORITHMS)("signs with %s, in order, heads of a log included", async (algorithm) => {
    const fake = await startSigner(generatePrivateKey(algorithm));
    const signer = await connect(fake, { pool: testPool });
    expect(signer.fingerprint).toBe(operatorKey(fake.pem).fingerprint);
    const messages = messagesOf(200);
    const signed = await signer.sign(messages);
    expect(signed.map((signature, i) => verifySync(signer.public, messages[i]!, signature))).toEqual(
      messages.map(() => true),
    );
    const { log } = await openTestLog({ signer });
    await log.append([event, event, event]);
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: 3 });
    expect(fake.asked.map((asked) => asked.length)).toEqual([200, 3]);
    expect(fake.connections).toBe(1);
  });

  test("may spell P-256 signatures as DER: what is stored has 64 bytes", async () => {
    const fake = await startSigner(generatePrivateKey("ecdsa-p256"));
    fake.misdeed = (socket, { signatures }) => send(socket, { signatures: signatures.map(derOf) });
    const signer = await connect(fake);
    const signed = await signer.sign(messagesOf(3));
    expect(signed.map(({ length }) => length)).toEqual([64, 64, 64]);
    expect(signed.map((signature, i) => verifySync(signer.public, messagesOf(3)[i]!, signature))).not.toContain(false);
  });

  test("gets one request at a time, with at most 1,024 messages and 512 KiB", async () => {
    const fake = await startSigner();
    let open = 0;
    let most = 0;
    fake.misdeed = async (socket, right) => {
      most = Math.max(most, ++open);
      await new Promise((resolve) => setImmediate(resolve));
      open--;
      send(socket, right);
    };
    const signer = await connect(fake);
    const long = Array.from({ length: 18 }, () => Buffer.alloc(32 * 1024));
    const answers = await Promise.all([messagesOf(2_500), messagesOf(1), long].map((all) => signer.sign(all)));
    expect(answers.map(({ length }) => length)).toEqual([2_500, 1, 18]);
    expect(most).toBe(1);
    expect(fake.asked.map(({ length }) => length).sort((a, b) => a - b)).toEqual([1, 2, 16, 452, 1_024, 1_024]);
    await expect(signer.sign([Buffer.alloc(65_537)])).rejects.toMatchObject({ code: "payload-too-large" });
  });

  test("may answer at length again and again: each answer is bounded, and not all of them together", async () => {
    const fake = await startSigner();
    fake.misdeed = (socket, right) => socket.write(`${JSON.stringify(right)}${" ".repeat(2 ** 20)}\n`);
    const signer = await connect(fake);
    for (let n = 0; n < 4; n++) expect(await signer.sign(messagesOf(1))).toHaveLength(1);
    expect(fake.connections).toBe(1);
  });

  test("may refuse with a sentence; the connection stays", async () => {
    const fake = await startSigner();
    fake.misdeed = (socket) => send(socket, { error: "size 7 was signed with another root\u001b[31m" });
    const signer = await connect(fake);
    await expect(signer.sign(messagesOf(1))).rejects.toMatchObject({
      ...unavailable,
      message: "The signer refused: size 7 was signed with another root?[31m",
    });
    fake.misdeed = null;
    expect(await signer.sign(messagesOf(2))).toHaveLength(2);
    expect(fake.connections).toBe(1);
  });
});

const flipped = (text: string) => base64(Buffer.from(text, "base64").map((byte, at) => (at === 63 ? byte ^ 1 : byte)));
const replaced = (change: (signatures: readonly string[], messages: readonly Uint8Array[]) => unknown): Misdeed => {
  return async (socket, { signatures }, messages) => send(socket, { signatures: await change(signatures, messages) });
};
const raw = (text: string | Uint8Array): Misdeed => {
  return (socket) => socket.write(text);
};
const lineOf = (right: Signed) => Buffer.from(`${JSON.stringify(right)}\n`);

/** How a signer answers a batch of three, or does not. */
const MISDEEDS: readonly [string, Misdeed][] = [
  ["one signature too few", replaced((right) => right.slice(1))],
  ["one too many", replaced((right) => [...right, right[0]])],
  ["none", replaced(() => [])],
  ["text in place of a list", replaced((right) => right.join())],
  ["numbers", replaced((right) => right.map(() => 7))],
  ["null for one", replaced((right) => [right[0], null, right[2]])],
  ["no base64", replaced((right) => right.map((one) => `*${one}`))],
  ["base64 that is not canonical", replaced((right) => right.map((one) => `${one}\n`))],
  ["empty ones", replaced((right) => right.map(() => ""))],
  ["zeros", replaced((right) => right.map(() => base64(new Uint8Array(64))))],
  [
    "longer ones",
    replaced((right) => right.map((one) => base64(Buffer.concat([Buffer.from(one, "base64"), Buffer.of(0)])))),
  ],
  ["those of another key", replaced(async (_, messages) => (await stranger.sign(messages)).map(base64))],
  ["its own in another order", replaced((right) => right.toReversed())],
  ["the last one for all", replaced((right) => right.map(() => right.at(-1)))],
  ...[0, 1, 2].map((place): [string, Misdeed] => [
    `a wrong one at place ${place}`,
    replaced((right) => right.map((one, i) => (i === place ? flipped(one) : one))),
  ]),
  ["another member", (socket, right) => send(socket, { signed: right.signatures })],
  ["a list", (socket, right) => send(socket, right.signatures)],
  ["null", raw("null\n")],
  ["no JSON", raw("signatures:\n")],
  ["an empty line", raw("\n")],
  ["bytes that are no UTF-8", raw(Buffer.of(0x22, 0xff, 0xfe, 0x22, 0x0a))],
  ["the answer twice", (socket, right) => socket.write(Buffer.concat([lineOf(right), lineOf(right)]))],
  ["more than 2 MiB without an end", (socket) => socket.write(Buffer.alloc(3 * 1024 * 1024, 0x20))],
  ["a close in place of an answer", (socket) => socket.end()],
  ["its end in place of an answer", (socket) => socket.destroy()],
  ["half an answer, then a close", (socket, right) => socket.end(lineOf(right).subarray(0, 100))],
  ["a whole answer without its end, then a close", (socket, right) => socket.end(lineOf(right).subarray(0, -1))],
];

describe("a signer that does not answer with its signatures", () => {
  test("nothing of the batch is appended, and the log goes on", async () => {
    const fake = await startSigner();
    const signer = await connect(fake);
    const { log, path } = await openTestLog({ signer });
    let size = 0;
    for (const [name, misdeed] of MISDEEDS) {
      await log.append(event);
      size++;
      fake.misdeed = misdeed;
      await expect(log.append([event, event, event]), name).rejects.toMatchObject(unavailable);
      expect(log.size, name).toBe(size);
      expect(log.lastFailure, name).toMatchObject(unavailable);
      fake.misdeed = null;
      await connected(signer);
    }
    expect(await log.append(event)).toMatchObject({ leaf_index: size, sth: { tree_size: size + 1 } });
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: MISDEEDS.length + 1 });
    const inMemory = log.treeHead();
    await log.close();
    // What a new start reads from disk is what memory held.
    const { log: again } = await openTestLog({ signer, path });
    expect(again.treeHead()).toEqual(inMemory);
  });

  test("an answer after the deadline is taken for nothing, and the next one is right", async () => {
    const fake = await startSigner();
    const signer = await connect(fake, { deadlineMs: 2_000 });
    const { log } = await openTestLog({ signer });
    const late: { socket: Socket; right: Signed }[] = [];
    fake.misdeed = (socket, right) => late.push({ socket, right });
    const failure = await log.append(event).catch((error) => error);
    expect(failure).toMatchObject({ ...unavailable, cause: { message: "The signer did not answer within 2 s." } });
    const [{ socket, right }] = late as [{ socket: Socket; right: Signed }];
    send(socket, right);
    fake.misdeed = null;
    await connected(signer);
    expect(await log.append(event)).toMatchObject({ leaf_index: 0 });
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: 1 });
  });

  test("one that has lost its place among the questions is right again after the next connection", async () => {
    const fake = await startSigner();
    let first: Socket | undefined;
    let answer: Signed = { signatures: [base64(Buffer.alloc(64))] };
    fake.misdeed = (socket, right) => {
      first ??= socket;
      send(socket, socket === first ? answer : right);
      answer = right;
    };
    const signer = await connect(fake);
    await expect(signer.sign([Buffer.from("one")])).rejects.toMatchObject(unavailable);
    await connected(signer);
    expect(await signer.sign([Buffer.from("another")])).toHaveLength(1);
  });

  test("closed while its connection is lost, it makes no other one", async () => {
    const fake = await startSigner();
    fake.misdeed = (socket) => socket.end();
    const signer = await connect(fake);
    await expect(signer.sign(messagesOf(1))).rejects.toMatchObject(unavailable);
    await signer.close();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(fake.connections).toBe(1);
  });

  test("it is asked again after pauses that double, and begin anew once it has signed", async () => {
    const fake = await startSigner();
    const signer = await connect(fake);
    const pauses = vi.spyOn(globalThis, "setTimeout");
    onTestFinished(() => pauses.mockRestore());
    const lost = async () => {
      fake.misdeed = (socket) => socket.end();
      await expect(signer.sign(messagesOf(1))).rejects.toMatchObject(unavailable);
      fake.misdeed = null;
      // Other timers are those of requests, which may take 10 s.
      const [pause] = pauses.mock.calls.map(([, ms]) => ms!).filter((ms) => ms >= 50 && ms < 5_000);
      pauses.mockClear();
      await connected(signer);
      return pause;
    };
    for (let round = 0; round < 2; round++) {
      expect([await lost(), await lost(), await lost()]).toEqual([50, 100, 200]);
      expect(await signer.sign(messagesOf(1))).toHaveLength(1);
    }
  });

  test("what waits behind a request without an answer fails with it", async () => {
    const fake = await startSigner();
    const signer = await connect(fake, { deadlineMs: 2_000 });
    fake.misdeed = () => {};
    const asked = [signer.sign(messagesOf(1)), signer.sign(messagesOf(2)), signer.sign(messagesOf(3))];
    const settled = await Promise.allSettled(asked);
    expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(fake.asked).toHaveLength(1);
  });

  test("what waited too long behind another request fails alone", async () => {
    const fake = await startSigner();
    let release = () => {};
    fake.misdeed = (socket, right) => {
      release = () => send(socket, right);
    };
    const connection = new SignerConnection(fake.path);
    const request = (text: string) => ({ request: "sign", messages: [base64(Buffer.from(text))] });
    const first = connection.ask(request("first"), 60_000);
    await expect(connection.ask(request("second"), 50)).rejects.toMatchObject(unavailable);
    release();
    expect(await first).toEqual(await fake.sign([Buffer.from("first")]));
    fake.misdeed = null;
    expect(await connection.ask(request("third"), 60_000)).toEqual(await fake.sign([Buffer.from("third")]));
    expect(fake.asked.map(([message]) => String(message))).toEqual(["first", "third"]);
    connection.end(new CairnlogError("closed", "done"));
  });

  test("something that was not asked for ends the connection, which is made again", async () => {
    const fake = await startSigner();
    const greeted: Socket[] = [];
    fake.greeting = (socket) => {
      greeted.push(socket);
      send(socket, { protocol: "cairnlog-signer/1", public_key: operatorKey(fake.pem).public.pem });
    };
    const signer = await connect(fake);
    const seen: unknown[][] = [[], []];
    for (const one of seen) signer.observe((trouble) => one.push(trouble?.message ?? null));
    send(greeted[0]!, await fake.sign(messagesOf(1)));
    const told = ["The signer sent something that it was not asked for.", null];
    await expect.poll(() => seen).toEqual([told, told]);
    expect(await signer.sign(messagesOf(1))).toHaveLength(1);
  });
});

describe("a signer that goes and comes", () => {
  test("is down: every batch is refused at once, with the reason; it is back: the log goes on", async () => {
    const fake = await startSigner();
    const signer = await connect(fake);
    const { log } = await openTestLog({ signer });
    await log.append(event);
    await fake.stop();
    await expect.poll(() => signer.trouble).toMatchObject(unavailable);
    await expect.poll(() => signer.trouble?.message).toBe(`No signer can be reached at ${fake.path} (ENOENT).`);
    await expect(log.append(event)).rejects.toMatchObject({ ...unavailable, cause: signer.trouble });
    expect(log.size).toBe(1);
    await fake.start();
    await connected(signer);
    await log.append(event);
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: 2 });
  });

  test("dies with a batch in its hands while others wait", async () => {
    const fake = await startSigner();
    const signer = await connect(fake);
    const { log } = await openTestLog({ signer });
    const dying = new Promise<void>((resolve) => {
      fake.misdeed = async () => {
        await fake.stop();
        resolve();
      };
    });
    const first = Promise.allSettled(Array.from({ length: 300 }, () => log.append(event)));
    await dying;
    expect((await first).map(({ status }) => status)).not.toContain("fulfilled");
    fake.misdeed = null;
    await fake.start();
    await connected(signer);
    await Promise.all(Array.from({ length: 300 }, () => log.append(event)));
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: 300 });
  });

  test("is found to have signed wrongly when its connection is gone: the next connection is none the worse", async () => {
    const fake = await startSigner();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const run: Pool["run"] = (...task) => held.then(() => testPool.run(...task));
    const signer = await connect(fake, { pool: { ...testPool, run } });
    fake.misdeed = (socket, { signatures }) => {
      send(socket, { signatures: signatures.toReversed() });
      socket.end();
    };
    // More than are checked on the calling thread.
    const asked = signer.sign(messagesOf(200));
    await expect.poll(() => signer.trouble).toMatchObject(unavailable);
    await connected(signer);
    release();
    await expect(asked).rejects.toMatchObject({ message: "The signer answered a signature that does not verify." });
    fake.misdeed = null;
    expect([signer.trouble, await signer.sign(messagesOf(1))]).toEqual([null, [expect.any(Uint8Array)]]);
    expect(fake.connections).toBe(2);
  });

  test("comes back with another key: refused as the wrong operator, until its own key is back", async () => {
    const fake = await startSigner();
    const signer = await connect(fake);
    const { log } = await openTestLog({ signer });
    await log.append(event);
    const own = fake.pem;
    await fake.stop();
    fake.pem = generatePrivateKey("ed25519");
    await fake.start();
    await expect.poll(() => signer.trouble?.code).toBe("wrong-operator");
    expect(signer.trouble!.message).toContain(`has the key ${operatorKey(fake.pem).fingerprint} now`);
    await expect(log.append(event)).rejects.toMatchObject({ ...unavailable, cause: { code: "wrong-operator" } });
    expect(fake.asked).toHaveLength(1);
    await fake.stop();
    fake.pem = own;
    await fake.start();
    await connected(signer);
    await log.append(event);
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: 2 });
  });

  test("has the key of another log: that log is not opened", async () => {
    const { log, path } = await openTestLog();
    await log.append(event);
    await log.close();
    const signer = await connect(await startSigner());
    await expect(openTestLog({ path, signer })).rejects.toMatchObject({ code: "wrong-operator" });
  });
});

describe("at the start", () => {
  test("an address of another form is refused", async () => {
    for (const address of [
      "/run/signer.sock",
      "unix:signer.sock",
      "tcp:127.0.0.1:1",
      "unix:",
      `unix:/${"a".repeat(107)}`,
    ])
      await expect(signerAt(address)).rejects.toMatchObject({ code: "invalid-input" });
  });

  test("no socket, a file, and a socket that nobody listens on", async () => {
    const file = `${temporaryFolder()}/file`;
    await expect(signerAt(`unix:${file}`)).rejects.toMatchObject({ ...unavailable, message: /\(ENOENT\)\.$/ });
    writeFileSync(file, "");
    await expect(signerAt(`unix:${file}`)).rejects.toMatchObject({ ...unavailable, message: /\(ECONNREFUSED\)\.$/ });
  });

  test("a socket that may not be written", async () => {
    const fake = await startSigner();
    chmodSync(fake.path, 0);
    const module = import.meta.resolve("#cairnlog/engine/index.js");
    const script = `const { signerAt } = await import(${JSON.stringify(module)});
await signerAt(${JSON.stringify(fake.address)}).catch(({ code, message }) => console.log(code, message));`;
    const node = [process.execPath, "--input-type=module", "-e", script];
    // Root may write everywhere, unless it gives up this capability.
    const without = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override", "--"];
    const [command, ...args] = process.getuid!() === 0 ? [...without, ...node] : node;
    const { stdout, stderr } = spawnSync(command!, args, { encoding: "utf8" });
    expect({ stdout, stderr }).toEqual({
      stdout: `signer-unavailable No signer can be reached at ${fake.path} (EACCES).\n`,
      stderr: "",
    });
  });

  test.each([
    ["silence", () => {}, "signer-unavailable"],
    ["another protocol", (socket: Socket) => send(socket, { protocol: "x/1", public_key: "" }), "signer-unavailable"],
    ...[undefined, null, "", "cairnlog-signer/0", "cairnlog-signer/2", "CAIRNLOG-SIGNER/1", ["cairnlog-signer/1"]].map(
      (protocol): [string, (socket: Socket) => unknown, string] => [
        `the protocol ${JSON.stringify(protocol)} with a key`,
        (socket) => send(socket, { protocol, public_key: stranger.public.pem }),
        "signer-unavailable",
      ],
    ),
    ["no key", (socket: Socket) => send(socket, { protocol: "cairnlog-signer/1" }), "signer-unavailable"],
    ["an error", (socket: Socket) => send(socket, { error: "locked" }), "signer-unavailable"],
    [
      "a key that is none",
      (socket: Socket) => send(socket, { protocol: "cairnlog-signer/1", public_key: "a" }),
      "invalid-key",
    ],
    ["HTTP", (socket: Socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"), "signer-unavailable"],
  ])("%s in answer to `key` is refused", async (_, greeting, code) => {
    const fake = await startSigner();
    fake.greeting = greeting;
    await expect(signerAt(fake.address, { deadlineMs: 2_000 })).rejects.toMatchObject({ code });
  });

  test("the private key in place of the public one is refused, and not repeated", async () => {
    const fake = await startSigner();
    fake.greeting = (socket) => send(socket, { protocol: "cairnlog-signer/1", public_key: fake.pem });
    const error = await signerAt(fake.address).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "invalid-key" });
    expect(String(error.stack) + String(error.cause)).not.toContain(fake.pem.split("\n")[1]);
  });
});

const expectUnavailable = (signed: Promise<unknown>) => expect(signed).rejects.toMatchObject(unavailable);

test("a closed signer signs no more, what waited for it is told, and nothing of it goes on", async () => {
  const fake = await startSigner();
  const signer = await connect(fake);
  fake.misdeed = () => {};
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const asked = [signer.sign(messagesOf(1)), signer.sign(messagesOf(1))].map((each) => expectUnavailable(each));
  await expect.poll(() => fake.asked.length).toBe(1);
  await signer.close();
  await Promise.all(asked);
  await expectUnavailable(signer.sign(messagesOf(1)));
  expect(vi.getTimerCount()).toBe(0);
});

test("a program that closes its signer ends by itself", async () => {
  const fake = await startSigner();
  const module = import.meta.resolve("#cairnlog/engine/index.js");
  const script = `const { signerAt } = await import(${JSON.stringify(module)});
const signer = await signerAt(${JSON.stringify(fake.address)});
await signer.sign([Buffer.from("a")]);
await signer.close();`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "inherit" });
  expect(await once(child, "exit")).toEqual([0, null]);
});
