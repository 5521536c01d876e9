/** The receiver of `--webhook`. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll } from "vitest";

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections();
});

export interface Receiver {
  readonly url: string;
  /** Accepted alarms. */
  readonly received: Record<string, unknown>[];
  /** Number of received alarms. */
  asked(): number;
}

/** Receives alarms. It refuses the first `failures` of them. */
export async function receiver(failures = 0): Promise<Receiver> {
  const received: Record<string, unknown>[] = [];
  let asked = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    if (asked++ < failures) return response.writeHead(500).end();
    received.push(JSON.parse(Buffer.concat(chunks).toString()));
    return response.writeHead(204).end();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received, asked: () => asked };
}
