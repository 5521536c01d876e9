/** When a connection without a request is closed: as `SERVICE_IDLE_TIMEOUT_S` says, where the library lets it be set. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { startTestService } from "../../harness.js";

/** A connection on which one request was answered. */
async function idle(url: string) {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const closed = once(socket, "close");
  socket.write("GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  await once(socket, "data");
  socket.resume();
  return { socket, closed };
}

test("of two services the one with the shorter time closes first, and the other one still answers", async () => {
  const [short, long] = await Promise.all(
    ["1", "30"].map((seconds) => startTestService({ SERVICE_TRANSPORT: "node", SERVICE_IDLE_TIMEOUT_S: seconds })),
  );
  const patient = await idle(long!.url);
  // Longer than any time that is not set.
  for (let n = 0; n < 6; n++) await (await idle(short!.url)).closed;
  expect(patient.socket.destroyed).toBe(false);
  patient.socket.write("GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  const [answer] = await once(patient.socket, "data");
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
  patient.socket.destroy();
});

test("uWebSockets.js, which has one time, is not started with another one", async () => {
  await expect(startTestService({ SERVICE_TRANSPORT: "uws", SERVICE_IDLE_TIMEOUT_S: "60" })).rejects.toThrow(
    "set SERVICE_TRANSPORT=node",
  );
});
