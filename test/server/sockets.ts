/** Slow clients, over TCP connections. */
import { connect, type Socket } from "node:net";
import type { Writer } from "#cairnlog/engine/log/state/executor.js";
import { anyEvent } from "../anyevent.js";

export interface SlowClient {
  readonly socket: Socket;
  /** The received bytes, as latin1. */
  received(): string;
  /** Resolves when the connection has ended, for any reason. */
  readonly closed: Promise<void>;
}

/** Connects to a service, and sends `bytes`. A client that is `deaf` reads nothing. */
export function slowClient(url: string, bytes = "", { deaf = false } = {}): Promise<SlowClient> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let received = "";
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  socket.on("error", () => {});
  if (deaf) socket.pause();
  else
    socket.on("data", (data) => {
      received += data.toString("latin1");
    });
  return new Promise((resolve) => {
    const ready = () => resolve({ socket, received: () => received, closed });
    socket.on("connect", () => socket.write(bytes, ready)).on("close", ready);
  });
}

/** The head of a request whose body has `length` bytes. */
export const postHead = (path: string, length: number): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`;

/** Waits until `isTrue`, checking every few milliseconds. Only the test's own time-out limits this. */
export async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** The value of one line of `/metrics`, by its name with labels exactly as in the text. */
export async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name} `));
  return line === undefined ? Number.NaN : Number(line.slice(name.length + 1));
}

/** Appends 100 entries of 100 KB: a page of them is more than the socket buffers of both sides hold. */
export async function fillLog(log: Pick<Writer, "append">): Promise<void> {
  const text = "x".repeat(100_000);
  await log.append(Array.from({ length: 100 }, (_, n) => anyEvent({ n, text })));
}
