/** An endpoint on this machine that stores what it receives and answers as the test says. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll } from "vitest";

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Receiver {
  readonly port: number;
  readonly url: string;
  /** Whole requests, in the order in which they came. */
  readonly received: Received[];
  /** Number of connections, including those without a request. */
  readonly connections: number;
  answer: (response: ServerResponse, received: Received) => void;
}

const closes: (() => void)[] = [];
afterAll(() => {
  for (const close of closes.splice(0)) close();
});

/**
 * Starts a receiver, which is closed after the file's tests. It answers 204 unless the test says otherwise.
 * @param wanted a port; 0 for any that is free
 */
export async function startReceiver(host = "127.0.0.1", wanted = 0): Promise<Receiver> {
  let connections = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    request.on("error", () => {});
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    await once(request, "end");
    const received = { path: request.url!, headers: request.headers, body: Buffer.concat(chunks) };
    receiver.received.push(received);
    receiver.answer(response, received);
  });
  server.on("connection", () => connections++);
  server.listen(wanted, host);
  await once(server, "listening");
  closes.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const receiver: Receiver = {
    port,
    url: `http://${host}:${port}`,
    received: [],
    get connections() {
      return connections;
    },
    answer: (response) => response.writeHead(204).end(),
  };
  return receiver;
}
