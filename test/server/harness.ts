/** A real service over real HTTP, in this process, on a free port and with a temporary directory. */
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect } from "vitest";
import type { TransportName } from "#cairnlog/server/http/transport/transport.js";
import { type RunningServer, readSettings, type ServerOptions, startServer } from "#cairnlog/server/index.js";
import type { WrittenRegistry } from "../registry/world.js";
import { Contract, type Document } from "./contract.js";

const folders: string[] = [];
const services = new Set<TestService>();
afterAll(async () => {
  for (const service of services) await service.close();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-"));
  folders.push(folder);
  return folder;
}

/** The HTTP library over which these tests run (`test/vitest.config.ts`); null for the one that the service takes itself. */
export const WANTED_TRANSPORT = (process.env.SERVICE_TRANSPORT || null) as TransportName | null;

/** The number of front ends that these tests want; null for the service's own choice. */
const WANTED_FRONT_ENDS = process.env.SERVICE_FRONT_ENDS || null;

/** Of a service at which no test looks at how it serves: the thread of a front end is half of the CPU of a start. */
export const NO_FRONT_ENDS = { SERVICE_FRONT_ENDS: "0" } as const;

/** Environment of a test service: without rate limits and log lines. */
export const testEnvironment = (dataDir = temporaryFolder()): Record<string, string> => ({
  PORT: "0",
  SERVICE_DATA_DIR: dataDir,
  SERVICE_WORKERS: "1",
  SERVICE_RATE_LIMITS: "off",
  LOG_LEVEL: "silent",
  ...(WANTED_TRANSPORT ? { SERVICE_TRANSPORT: WANTED_TRANSPORT } : {}),
  ...(WANTED_FRONT_ENDS ? { SERVICE_FRONT_ENDS: WANTED_FRONT_ENDS } : {}),
});

/** Starts a service, which is closed after the file's tests. `settings` are environment variables. */
export async function startTestService(
  settings: Record<string, string> = {},
  options: ServerOptions = {},
): Promise<TestService> {
  const read = readSettings({ ...testEnvironment(settings.SERVICE_DATA_DIR), ...settings });
  const server = await startServer(read, options);
  const service = new TestService(server);
  services.add(service);
  return service;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly bytes: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

export class TestService {
  /** As of a service that writes its log. Of a mirror, the log can only be read. */
  readonly server: RunningServer & { readonly registry: WrittenRegistry };
  #contract: Promise<Contract> | null = null;
  /** Called with every request and its answer. */
  watch: ((method: string, path: string, init: RequestInit, reply: Reply) => void) | null = null;

  constructor(server: RunningServer) {
    this.server = server as TestService["server"];
  }

  get url(): string {
    return this.server.url;
  }

  /** GETs a path below `/api/v1`. */
  get(path: string, headers: Record<string, string> = {}): Promise<Reply> {
    return this.send("GET", `/api/v1${path}`, { headers });
  }

  /** POSTs to a path below `/api/v1`: text and bytes unchanged, anything else as JSON. */
  post(path: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<Reply> {
    const content = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
    return this.send("POST", `/api/v1${path}`, { body: content as BodyInit, headers });
  }

  /** Sends any request. The answer must match the OpenAPI document. */
  async send(method: string, path: string, init: RequestInit = {}): Promise<Reply> {
    const response = await fetch(this.url + path, { method, ...init });
    const bytes = Buffer.from(await response.arrayBuffer());
    const text = new TextDecoder().decode(bytes);
    const isJson = /^application\/(problem\+)?json$/.test(response.headers.get("content-type") ?? "");
    const body = isJson && text ? JSON.parse(text) : undefined;
    const contract = await this.contract();
    contract.expectPromised(method, path.split("?")[0]!, response, body);
    const reply = { status: response.status, headers: response.headers, text, bytes, body };
    this.watch?.(method, path, init, reply);
    return reply;
  }

  /** Number of entries in the log. */
  async entryCount(): Promise<number> {
    return (await this.get("/log/head")).body.entry_count;
  }

  /** Resolves when the newest checkpoint of `/tlog/` covers `size` entries. */
  async checkpointed(size: number): Promise<void> {
    // Hooks wait here too, where there is no `expect.poll`.
    while (Number((await this.send("GET", "/tlog/checkpoint")).text.split("\n")[1]) !== size) await sleep(20);
  }

  async openApi(): Promise<Document> {
    return (await this.contract()).document;
  }

  /** The service's own OpenAPI document, against which every answer is checked. */
  async contract(): Promise<Contract> {
    this.#contract ??= fetch(`${this.url}/api/v1/openapi.json`).then(async (response) =>
      Contract.of(await response.text()),
    );
    return this.#contract;
  }

  /**
   * Sends bytes over a TCP connection. Returns what is received until `answers` are there, it is closed or `milliseconds`
   * have passed.
   */
  raw(bytes: string | Uint8Array, milliseconds = 2_000, answers = 1): Promise<string> {
    return new Promise((resolve) => {
      let received = "";
      const socket = connect(this.server.address.port, "127.0.0.1");
      const done = () => {
        clearTimeout(timer);
        socket.destroy();
        resolve(received);
      };
      const timer = setTimeout(done, milliseconds);
      socket.on("data", (data) => {
        received += data.toString("latin1");
        const [head, body = ""] = received.split(/(?=HTTP\/1\.1 \d)/)[answers - 1]?.split("\r\n\r\n") ?? [""];
        const length = /content-length: (\d+)/i.exec(head!)?.[1];
        if (length !== undefined && body.length >= Number(length)) done();
      });
      socket.on("error", done).on("close", done);
      socket.write(bytes);
    });
  }

  async close(): Promise<void> {
    services.delete(this);
    await this.server.close();
  }
}

/** Asserts that `reply` is a problem document of this status and code. */
export function expectProblem(reply: Reply, status: number, code?: string): void {
  expect(reply.status, reply.text).toBe(status);
  expect(reply.headers.get("content-type")).toBe("application/problem+json");
  expect(reply.body).toMatchObject({ type: "about:blank", status, code: code ?? expect.any(String) });
  expect(reply.body.title.length).toBeGreaterThan(2);
  expect(reply.body.detail).toMatch(/^.{8,}\.$/s);
  expect(reply.text).not.toMatch(/\bat .*\.js|node:|\/dist\//);
}
