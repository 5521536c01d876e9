/** A signer on a Unix socket that does what a test tells it: docs/spec §18.1, and every way to break it. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";

type Messages = readonly Uint8Array[];
/** What it does instead of answering; `right` is the honest answer to the request. */
export type Misdeed = (socket: Socket, right: Signed, messages: Messages) => unknown;
export interface Signed {
  readonly signatures: readonly string[];
}

export const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
export const send = (socket: Socket, answer: unknown): boolean => socket.write(`${JSON.stringify(answer)}\n`);

export class FakeSigner {
  readonly path: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "cairnlog-signer-"));
  #server: Server | null = null;
  readonly #sockets = new Set<Socket>();
  pem: string;
  /** In place of its answers to `sign` and to `key`. */
  misdeed: Misdeed | null = null;
  greeting: ((socket: Socket) => unknown) | null = null;
  /** Messages of each `sign`, and connections it took. */
  asked: Messages[] = [];
  connections = 0;

  constructor(pem = generatePrivateKey("ed25519")) {
    this.pem = pem;
    this.path = join(this.#folder, "signer.sock");
  }

  get address(): string {
    return `unix:${this.path}`;
  }

  start(): Promise<this> {
    const server = createServer((socket) => this.#serve(socket));
    this.#server = server;
    return new Promise((resolve) => server.listen(this.path, () => resolve(this)));
  }

  /** As if it were killed, and its socket file were removed. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    for (const socket of this.#sockets) socket.destroy();
    if (server) await new Promise((resolve) => server.close(resolve));
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async sign(messages: Messages): Promise<Signed> {
    return { signatures: (await operatorKey(this.pem).sign(messages)).map(base64) };
  }

  #serve(socket: Socket): void {
    this.connections++;
    this.#sockets.add(socket);
    socket.on("error", () => {}).on("close", () => this.#sockets.delete(socket));
    const lines = createInterface({ input: socket });
    // Whoever is told to misbehave may find its connection closed.
    lines.on("line", (line) => void this.#answer(socket, JSON.parse(line))).on("error", () => {});
  }

  async #answer(socket: Socket, request: { request: string; protocol?: string; messages?: string[] }): Promise<void> {
    if (request.request === "key") {
      if (this.greeting) this.greeting(socket);
      else send(socket, { protocol: request.protocol, public_key: operatorKey(this.pem).public.pem });
      return;
    }
    const messages = request.messages!.map((text) => Buffer.from(text, "base64"));
    this.asked.push(messages);
    const right = await this.sign(messages);
    if (this.misdeed) await this.misdeed(socket, right, messages);
    else send(socket, right);
  }
}
