/** However a server misbehaves, a request to it fails within its time, and its connection is closed. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Calendar } from "#cairnlog/server/anchoring/calendar.js";
import { askWitness } from "#cairnlog/server/cosigning/ask.js";
import { exchange } from "#cairnlog/server/outgoing/exchange.js";
import { httpSender } from "#cairnlog/server/webhooks/send.js";

/** Time of a request. Its end is waited for, not measured. */
const TIME_MS = 400;
const HEAD = "HTTP/1.1 200 OK\r\n";

/** Sends `text` again and again, until the connection is closed. */
function again(socket: Socket, text: string, first = ""): void {
  socket.write(first);
  const timer = setInterval(() => socket.write(text), 20);
  socket.on("close", () => clearInterval(timer));
}

const WAYS: Record<string, (socket: Socket) => void> = {
  "never answers": () => {},
  "closes the connection": (socket) => socket.end(),
  "resets the connection": (socket) => socket.resetAndDestroy(),
  "answers 101": (socket) =>
    socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: raw\r\nconnection: upgrade\r\n\r\n"),
  "answers 101 and closes": (socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
  "sends half a head": (socket) => socket.write(`${HEAD}content-le`),
  "sends half a head and closes": (socket) => socket.end(`${HEAD}content-le`),
  "sends 1xx for ever": (socket) => again(socket, "HTTP/1.1 102 Processing\r\n\r\n"),
  "sends a head byte by byte": (socket) => again(socket, "x", `${HEAD}x: `),
  "sends headers for ever": (socket) => again(socket, "x: y\r\n", HEAD),
  "sends a body without end, slowly": (socket) =>
    again(socket, "1\r\nx\r\n", `${HEAD}transfer-encoding: chunked\r\n\r\n`),
  "sends a body without end, quickly": (socket) => {
    const flood = () => {
      while (!socket.destroyed && socket.write(Buffer.alloc(65_536))) {}
    };
    socket.write(`${HEAD}content-length: 999999999999\r\n\r\n`);
    socket.on("drain", flood);
    flood();
  },
  "breaks off its body": (socket) => socket.end(`${HEAD}content-length: 10\r\n\r\nx`),
  "breaks off its body with a reset": (socket) => {
    socket.write(`${HEAD}content-length: 10\r\n\r\nx`, () => socket.resetAndDestroy());
  },
  "speaks another protocol": (socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"),
};

let way: (socket: Socket) => void = () => {};
let closed: Promise<unknown> = Promise.resolve();
const server = createServer((socket) => {
  closed = new Promise((resolve) => socket.on("close", resolve));
  socket.on("error", () => {});
  socket.once("data", () => way(socket));
});
let url = "";
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

const { signal } = new AbortController();
const digest = Buffer.alloc(32, 7);
const key = { name: "witness", hash: 1, type: 4, publicKey: digest } as never;
/** Who asks; each resolves to whether the request has succeeded. */
const ASKING: Record<string, () => Promise<boolean>> = {
  "a webhook delivery": async () => {
    const send = httpSender({ allowPrivate: true, timeoutMs: TIME_MS });
    return (await send({ url, headers: {}, body: "{}" }, signal)).isDelivered;
  },
  "an anchoring": () => succeeded(new Calendar(url, TIME_MS).submit(digest, signal)),
  "a question to a witness": () =>
    succeeded(askWitness({ url, key, note: "note", oldSize: 0, proof: [] }, TIME_MS, signal)),
};
const succeeded = (asked: Promise<unknown>) =>
  asked.then(
    () => true,
    () => false,
  );

test.each(Object.keys(ASKING))("%s has a connection of its own, which ends with the answer", async (asker) => {
  const ends: Promise<unknown>[] = [];
  way = (socket) => {
    ends.push(once(socket, "close"));
    socket.write(`${HEAD}connection: keep-alive\r\nkeep-alive: timeout=60\r\ncontent-length: 0\r\n\r\n`);
  };
  for (const asked of [1, 2]) {
    await ASKING[asker]!();
    expect(ends).toHaveLength(asked);
  }
  await Promise.all(ends);
});

describe.each(Object.keys(ASKING))("%s fails in its time", (asker) => {
  test.each(Object.keys(WAYS))("when the server %s", async (name) => {
    way = WAYS[name]!;
    expect(await ASKING[asker]!()).toBe(false);
    await closed;
  });
});

/** What is said of an answer that ends the request before its time. */
const ENDS: Record<string, RegExp> = {
  "closes the connection": /cannot be reached/,
  "resets the connection": /cannot be reached/,
  "answers 101": /closed the connection without an answer/,
  "sends half a head and closes": /cannot be reached/,
  "sends a body without end, quickly": /answered with more than 100 bytes/,
  "breaks off its body": /closed the connection before the end of its answer|cannot be reached/,
  "breaks off its body with a reset": /closed the connection before the end of its answer|cannot be reached/,
  "speaks another protocol": /cannot be reached/,
};
describe("a request whose server ends it is not waited for, and leaves no timer", () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const question = { url: new URL("http://127.0.0.1"), headers: {}, body: null };
  const asked = async (ms: number) => {
    question.url = new URL(url);
    const bounds = { timeoutMs: ms, maxBytes: 100, signal };
    const sentence = (reason: string, options?: ErrorOptions) => new Error(`The server ${reason}`, options);
    return exchange(question, bounds, sentence);
  };

  test.each(Object.entries(ENDS))("when it %s", async (name, reason) => {
    way = WAYS[name]!;
    const before = timers();
    // Longer than a test may take.
    await expect(asked(3_600_000)).rejects.toThrow(reason);
    await closed;
    expect(timers()).toBeLessThanOrEqual(before);
  });

  test("when it answers", async () => {
    way = (socket) => socket.end(`${HEAD}content-length: 2\r\n\r\nok`);
    const before = timers();
    expect(await asked(3_600_000)).toMatchObject({ status: 200, body: Buffer.from("ok") });
    await closed;
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
