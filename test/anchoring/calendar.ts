/** An OpenTimestamps calendar for tests. It follows the protocol, or violates it as the test says. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll } from "vitest";
import { append, bitcoin, hash, hex, pending, prepend } from "../verify/ots/otsbytes.js";

/** The length of an address that any server reads, in bytes. */
const MAX_ADDRESS = 8_000;

const calendars: TestCalendar[] = [];
afterAll(async () => {
  for (const calendar of calendars) await calendar.close();
});

/** An answer that violates the protocol; null for no answer. */
export type Misbehaviour = (request: { readonly method: string; readonly body: Buffer }) => Misanswer | null;
export interface Misanswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string;
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly accept: string | undefined;
  readonly traceparent: string | undefined;
  readonly body: Buffer;
}

/** Starts a calendar, which is closed after the file's tests. */
export async function startCalendar(): Promise<TestCalendar> {
  const calendar = new TestCalendar();
  await calendar.listen();
  calendars.push(calendar);
  return calendar;
}

export class TestCalendar {
  readonly #server: Server;
  /** Hex of every message for which it has promised an attestation. */
  readonly #promised = new Set<string>();
  readonly #waiting: (() => void)[] = [];
  readonly requests: SeenRequest[] = [];
  /** Height of the block that contains all promised messages; null if there is none yet. */
  height: number | null = null;
  /** The address in its promises; its own unless set. */
  calledAs: string | null = null;
  misbehave: Misbehaviour | null = null;
  /** Its answer to a longer address than it reads. */
  tooLong = 414;

  constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  async listen(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves when `count` requests have been received in all. */
  async seen(count: number): Promise<void> {
    while (this.requests.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url: path = "" } = request;
    const body = Buffer.concat((await request.toArray()) as Buffer[]);
    const { accept, traceparent } = request.headers as Readonly<Record<string, string | undefined>>;
    this.requests.push({ method, path, accept, traceparent, body });
    for (const resolve of this.#waiting.splice(0)) resolve();
    const answer = this.misbehave ? this.misbehave({ method, body }) : this.#answer(method, path, body);
    // Without an answer, the connection stays open until one side closes it.
    if (!answer) return;
    response.writeHead(answer.status ?? 200, answer.headers);
    response.end(answer.body);
  }

  #answer(method: string, path: string, body: Buffer): Misanswer {
    if (method === "POST" && path === "/digest") return this.#promise(body);
    if (path.length > MAX_ADDRESS) return { status: this.tooLong, body: "The address is too long." };
    const message = /^\/timestamp\/((?:[0-9a-f]{2})+)$/.exec(path)?.[1];
    if (method !== "GET" || message === undefined) return { status: 400, body: "bad request" };
    if (this.height === null || !this.#promised.has(message)) return { status: 404, body: "Pending confirmation" };
    return { body: confirmation(this.height) };
  }

  #promise(digest: Buffer): Misanswer {
    if (digest.length > 64) return { status: 400, body: "digest too long" };
    const time = Buffer.from("65000000", "hex");
    const mac = hash("sha256", hex(Buffer.from(this.url), digest)).subarray(0, 8);
    this.#promised.add(hex(time, digest, mac).toString("hex"));
    return { body: hex(prepend(time), append(mac), "00", pending(this.calledAs ?? this.url)) };
  }
}

/** A timestamp that leads from any message to a block. */
export const confirmation = (height: number): Buffer =>
  hex("08", prepend(Buffer.from("txs")), "0808", "00", bitcoin(height));
