/** A service that lies: a proxy in front of a real one that changes requests or answers. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll } from "vitest";

// biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
type Json = any;

/** What is sent instead of an answer of the service. */
export type Lie = (path: string, answer: Json, request: Json) => Json;

const proxies: Server[] = [];
afterAll(() => {
  for (const proxy of proxies) proxy.close().closeAllConnections();
});

export class LyingProxy {
  /** Base address of the real service; change it, and the client talks to another. */
  upstream: string;
  /** Changes answers; what it returns is sent, text as it is and anything else as JSON. */
  lie: Lie | null = null;
  /** Changes requests. */
  twist: ((path: string, body: Json) => Json) | null = null;
  /** Status to send with a lie instead of the service's. */
  status: number | null = null;
  /** Answers instead of the service where it returns true. */
  seize: ((path: string, response: ServerResponse) => boolean) | null = null;
  /** `METHOD path` of everything that was asked, newest last. */
  readonly asked: string[] = [];
  readonly #server: Server;

  private constructor(upstream: string) {
    this.upstream = upstream;
    this.#server = createServer((request, response) => void this.#pass(request, response));
    proxies.push(this.#server);
  }

  static async before(upstream: string): Promise<LyingProxy> {
    const proxy = new LyingProxy(upstream);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** From now on the truth. */
  repent(): void {
    this.lie = null;
    this.twist = null;
    this.seize = null;
    this.status = null;
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString("utf8");
    const path = request.url!.replace("/api/v1", "");
    this.asked.push(`${request.method} ${path}`);
    if (this.seize?.(path, response)) return;
    let body = text ? JSON.parse(text) : undefined;
    if (body && this.twist) body = this.twist(path, body);
    const { authorization } = request.headers;
    const answer = await fetch(this.upstream + request.url!, {
      method: request.method!,
      headers: authorization ? { authorization } : {},
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const contentType = answer.headers.get("content-type") ?? "application/json";
    const truth = /\bjson$/.test(contentType) ? await answer.json() : await answer.text();
    const told = this.lie ? this.lie(path, truth, body) : truth;
    const lied = this.lie !== null && JSON.stringify(told) !== JSON.stringify(truth);
    response.writeHead(lied && this.status !== null ? this.status : answer.status, {
      "content-type": contentType,
    });
    response.end(typeof told === "string" ? told : JSON.stringify(told));
  }
}
