/** A service that lies: a proxy in front of a real one that changes requests or answers. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll } from "vitest";

// biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
type Json = any;

/** Makes the false answer that is sent instead of the service's. */
export type Lie = (path: string, answer: Json, request: Json) => Json;

const proxies: Server[] = [];
const upstreams = new Map<string, string>();

/** The address of the service that a proxy at this address stands before; undefined for a service itself. */
export const behind = (url: string): string | undefined => upstreams.get(url);

afterAll(() => {
  for (const proxy of proxies) proxy.close().closeAllConnections();
});

export class LyingProxy {
  /** Address of the real service. Clients reach another service if it is changed. */
  upstream: string;
  /** Changes answers. The result is sent: a text unchanged, anything else as JSON. */
  lie: Lie | null = null;
  /** Changes requests. */
  twist: ((path: string, body: Json) => Json) | null = null;
  /** The status of a false answer; the service's, if null. */
  status: number | null = null;
  /** Answers instead of the service if it returns true. */
  seize: ((path: string, response: ServerResponse) => boolean) | null = null;
  /** `METHOD path` of all requests, newest last. */
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
    upstreams.set(proxy.url, upstream);
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Sends true answers from now on. */
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
    const isText = contentType.startsWith("text/");
    const truth = /\bjson$/.test(contentType)
      ? await answer.json()
      : isText
        ? await answer.text()
        : Buffer.from(await answer.arrayBuffer());
    const told = this.lie ? this.lie(path, truth, body) : truth;
    const lied = this.lie !== null && JSON.stringify(told) !== JSON.stringify(truth);
    response.writeHead(lied && this.status !== null ? this.status : answer.status, {
      "content-type": contentType,
    });
    response.end(typeof told === "string" || Buffer.isBuffer(told) ? told : JSON.stringify(told));
  }
}
