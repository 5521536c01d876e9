/**
 * Requests of many clients over connections of their own, several to each front end. Of every answer it is checked whose it
 * is, by the id that the client chose, and which counter of which address it was counted on.
 */
import type { IncomingMessage } from "node:http";
import { expect } from "vitest";
import { type Connection, connectToEach, type Pace, type Said } from "../front/connections.js";
import { startTestService, type TestService } from "../harness.js";

/** Connections to each front end. */
const CONNECTIONS = 12;
/** More than is ever asked. */
const LIMIT = "1000000";
/** Bytes that one address may store: more than any of a round does, and little enough to be spent. */
const BYTES_PER_ADDRESS = 2_000_000;
/** The address whose bytes are spent: what it sends is refused by the command, when it has written. */
export const SPENT = "203.0.113.9";
/** Seconds of the shortest window of a limit; if a round takes longer, that limit is not looked at. */
const SHORTEST_WINDOW_S = 60;

export interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Who asks, and how. */
export interface Client {
  readonly address: string;
  readonly connection: Connection;
  readonly pace?: Pace;
}

/** A service behind a proxy that is trusted, so that a test chooses addresses. */
export const startMixedService = (transport: string, frontEnds: number): Promise<TestService> =>
  startTestService({
    SERVICE_TRANSPORT: transport,
    SERVICE_FRONT_ENDS: `${frontEnds}`,
    SERVICE_TRUSTED_PROXIES: "127.0.0.1",
    SERVICE_RATE_LIMITS: "on",
    SERVICE_BYTES_PER_ADDRESS: `${BYTES_PER_ADDRESS}`,
    ...Object.fromEntries(
      ["GENERAL", "KEY_REGISTRATION", "ATTESTATION", "ENDORSEMENT_OFFER"].map((n) => [
        `SERVICE_RATE_LIMIT_${n}`,
        LIMIT,
      ]),
    ),
  });

let ids = 0;

export class Traffic {
  readonly service: TestService;
  readonly connections: readonly Connection[];
  /** Requests by address and limit, and the most that an answer said were counted. */
  readonly #counted = new Map<string, { requests: number; most: number }>();
  #since = performance.now();
  /** Answers so far. */
  #answers = 0;
  #waiting: { readonly at: number; readonly go: () => void }[] = [];

  private constructor(service: TestService, connections: readonly Connection[]) {
    this.service = service;
    this.connections = connections;
  }

  static async open(service: TestService, frontEnds: number): Promise<Traffic> {
    const connections: Connection[] = [];
    for (let i = 0; i < CONNECTIONS; i++)
      connections.push(...(await connectToEach(service.url, Math.max(1, frontEnds))));
    return new Traffic(service, connections);
  }

  close(): void {
    for (const connection of this.connections) connection.close();
  }

  /** @param parts requests in the body, if it holds many */
  async ask({ method = "GET", path, body, headers }: Ask, client: Client, parts = 0): Promise<Said> {
    const { address, connection, pace } = client;
    const id = `mixed-${++ids}`;
    const own = { ...headers, "x-request-id": id, "x-forwarded-for": address };
    const said = await connection.send(method, path, body, own, pace);
    expect(said.headers["x-request-id"], path).toBe(id);
    if (said.headers["content-type"] === "application/problem+json" && said.body)
      expect(said.body.request_id, path).toBe(id);
    // The explorer is counted by no limit; what the address that is spent has asked in other rounds is still counted.
    if (address !== SPENT && path !== "/" && !path.startsWith("/explorer/")) this.#count(address, said, parts);
    this.#answers++;
    for (const { at, go } of this.#waiting.splice(0))
      if (at <= this.#answers) go();
      else this.#waiting.push({ at, go });
    return said;
  }

  #count(address: string, { headers }: Said, parts: number): void {
    const [, limit] = /^"([\w-]+)"/.exec(String(headers["ratelimit-policy"]))!;
    const counted = (name: string, requests: number, said: number) => {
      const key = `${address} ${name}`;
      const { requests: before, most } = this.#counted.get(key) ?? { requests: 0, most: 0 };
      this.#counted.set(key, { requests: before + requests, most: Math.max(most, said) });
    };
    counted(limit!, parts || 1, Number(headers["ratelimit-limit"]) - Number(headers["ratelimit-remaining"]));
    // A body that holds many is a request, too.
    if (parts) counted("general", 1, 0);
  }

  /** Of each address, exactly what it asked was counted. Addresses are used for one round. */
  async settle(): Promise<void> {
    const addresses = new Set([...this.#counted.keys()].map((key) => key.split(" ")[0]!));
    for (const address of addresses)
      await this.ask({ path: "/api/v1/health" }, { address, connection: this.connections[0]! });
    const isLong = performance.now() - this.#since > (SHORTEST_WINDOW_S - 5) * 1000;
    const wanted: Record<string, number> = {};
    const found: Record<string, number> = {};
    for (const [key, { requests, most }] of this.#counted) {
      if (isLong && key.endsWith(" general")) continue;
      wanted[key] = requests;
      found[key] = most;
    }
    expect(found).toEqual(wanted);
    this.#counted.clear();
    this.#since = performance.now();
  }

  /** Resolves when `count` more requests were answered. */
  afterAnswers(count: number): Promise<void> {
    return new Promise((go) => this.#waiting.push({ at: this.#answers + count, go }));
  }
}

async function whole(response: IncomingMessage, between: () => Promise<void>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of response) {
    parts.push(part);
    await between();
  }
  return Buffer.concat(parts);
}

/** Other answers for which a client that is deaf reads nothing. */
const DEAF_FOR = 12;

/** How clients read: at once; a part in a turn of the event loop; nothing for a while; only the beginning. */
export const READERS = {
  fast: () => ({}),
  slow: () => ({ read: (response) => whole(response, () => new Promise((go) => setImmediate(go))) }),
  deaf: (traffic) => ({
    async read(response) {
      await traffic.afterAnswers(DEAF_FOR);
      return whole(response, async () => {});
    },
  }),
  leaving: () => ({
    async read(response) {
      response.on("error", () => {}).destroy();
      return Buffer.alloc(0);
    },
  }),
} as const satisfies Record<string, (traffic: Traffic) => Pace>;
export type Reader = keyof typeof READERS;
