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

test("an answer is due from the last byte of the body until it is written: a body that stops does not keep its connection", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  closing.push(() => server.close());
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  closing.push(() => socket.destroy());
  socket.write("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nab");
  const [incoming, outgoing] = await once(server, "request");
  const response = new NodeResponse(new Connection(incoming.socket), incoming, outgoing);
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
