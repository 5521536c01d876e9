/** Answers that are made before the body of their request has come: the client sees them, however it sends. */
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { setImmediate as immediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { startTestService } from "../../harness.js";

const MAX_READ_ON_BYTES = 32 * 2 ** 20;

const MIB = 2 ** 20;

interface Sending {
  readonly path: string;
  readonly isChunked?: boolean;
  readonly agent?: Agent;
  readonly bytes?: number;
  readonly method?: string;
}

/** The status that a client sees which writes all of its body, or the code of its error. */
function statusOf(url: string, { path, isChunked, agent, bytes = 12 * MIB, method = "POST" }: Sending) {
  return new Promise<number | string | undefined>((resolve) => {
    const headers = { "content-type": "application/json", ...(!isChunked && { "content-length": bytes }) };
    // Without an agent it asks to close the connection.
    const sent = request(`${url}${path}`, { method, headers, agent: agent ?? false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      answer.on("end", () => resolve(JSON.parse(text).status)).on("error", ({ name }) => resolve(name));
    });
    sent.on("error", (error: NodeJS.ErrnoException) => resolve(error.code));
    if (isChunked) sent.flushHeaders();
    sent.end(Buffer.alloc(bytes, " "));
  });
}

describe.each(["uws", "node"] as const)("over %s", (transport) => {
  const started = (more = {}) => startTestService({ SERVICE_TRANSPORT: transport, ...more });

  test("a body that is far too large is 413 at the client, with a length or in chunks, last of its connection or not", async () => {
    const { url } = await started();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const isChunked of [false, true])
      for (const by of [undefined, agent])
        for (let n = 0; n < 6; n++)
          expect(await statusOf(url, { path: "/api/v1/verify", isChunked, ...(by && { agent: by }) })).toBe(413);
    agent.destroy();
  });

  test("what is refused whatever its body is shows why", async () => {
    const { url } = await started({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_GENERAL: "4" });
    for (let n = 0; n < 2; n++) {
      expect(await statusOf(url, { path: "/api/v1/nothing" })).toBe(404);
      expect(await statusOf(url, { path: "/api/v1/keys", method: "PUT" })).toBe(405);
    }
    for (let n = 0; n < 6; n++)
      expect(await statusOf(url, { path: "/api/v1/verify", isChunked: n % 2 === 1 })).toBe(429);
  });

  test("a body that came with its head leaves the connection open", async () => {
    const { url } = await started();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    agent.on("free", (socket: { localPort?: number }) => ports.add(socket.localPort));
    for (let n = 0; n < 3; n++) expect(await statusOf(url, { path: "/api/v1/nothing", agent, bytes: 20 })).toBe(404);
    expect(ports.size).toBe(1);
    agent.destroy();
  });

  test("a client that never ends is read for a bounded number of bytes", async () => {
    const service = await started();
    const { port } = new URL(service.url);
    const socket = connect(Number(port), "127.0.0.1");
    let received = "";
    socket.on("data", (data) => {
      received += data.toString("latin1");
    });
    socket.on("error", () => {});
    const piece = Buffer.alloc(MIB, " ");
    let sent = 0;
    socket.write(`POST /api/v1/verify HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${900 * MIB}\r\n\r\n`);
    while (!socket.destroyed && sent < 900 * MIB) {
      // Called with an error, too, when the connection ends.
      await new Promise((resolve) => socket.write(piece, resolve));
      // While the kernel takes all at once, nothing would be read: not even the answer, before the end of the connection is noticed.
      await immediate();
      sent += piece.length;
    }
    expect(received).toMatch(/^HTTP\/1\.1 413 /);
    expect(received).toContain("payload-too-large");
    // What the operating system holds for both sides comes on top.
    expect(sent).toBeLessThan(MAX_READ_ON_BYTES + 32 * MIB);
    expect((await service.get("/health")).status).toBe(200);
  });
});
