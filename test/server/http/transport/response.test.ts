/** An answer of `node:http`, on a real socket: for whom a connection on which nothing moves waits. */
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, expect, test } from "vitest";
import { Connection } from "#cairnlog/server/http/servers/node/connection.js";
import { NodeResponse } from "#cairnlog/server/http/servers/node/response.js";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** The requests that a server of Node's has from one client, as many as it has sent. */
async function asked(text: string, count = 1) {
  const server = createServer().listen(0, "127.0.0.1");
  closing.push(() => server.close());
  await once(server, "listening");
  const responses: NodeResponse[] = [];
  const all = new Promise<void>((resolve) => {
    server.on("request", (incoming, outgoing) => {
      const connection = new Connection(incoming.socket);
      if (responses.push(new NodeResponse(connection, incoming, outgoing)) === count) resolve();
    });
  });
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  closing.push(() => socket.destroy());
  socket.write(text);
  await all;
  return { socket, responses };
}

test.each([1, 9_000, 16_384, 100_000])(
  "the memory of an answer of %i bytes is the caller's again at once, though it waits for the one before it",
  async (length) => {
    const get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const { socket, responses } = await asked(get + get, 2);
    const body = Buffer.alloc(length, "a");
    responses[1]!.tryEnd(body, length);
    body.fill("b");
    responses[0]!.end("first");
    let received = "";
    for await (const part of socket.setEncoding("latin1")) {
      received += part;
      const sent = received.split("\r\n\r\n")[2] ?? "";
      if (sent.length < length) continue;
      expect(sent === "a".repeat(length)).toBe(true);
      break;
    }
  },
);

test("an answer is due from the last byte of the body until it is written: a body that stops does not keep its connection", async () => {
  const { socket, responses } = await asked("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nab");
  const response = responses[0]!;
  const whole = new Promise<void>((resolve) => {
    response.onData((_, isLast) => isLast && resolve());
  });
  expect(response).toMatchObject({ isArriving: true, isDue: false });
  socket.write("cd");
  await whole;
  expect(response).toMatchObject({ isArriving: false, isDue: true });
  response.end("done");
  expect(response.isDue).toBe(false);
});
