/** A real service over real HTTP, in this process, on a free port and a temporary directory. */
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Compile } from "typebox/schema";
import { afterAll, expect } from "vitest";
import { type RunningServer, readSettings, startServer } from "#cairnlog/server/index.js";

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

/** Environment in which a test service runs: nothing limited, nothing logged. */
export const testEnvironment = (dataDir = temporaryFolder()): Record<string, string> => ({
  PORT: "0",
  SERVICE_DATA_DIR: dataDir,
  SERVICE_WORKERS: "1",
  SERVICE_RATE_LIMITS: "off",
  LOG_LEVEL: "silent",
});

/** Starts a service; closed after the file's tests. `settings` are environment variables. */
export async function startTestService(settings: Record<string, string> = {}): Promise<TestService> {
  const server = await startServer(readSettings({ ...testEnvironment(settings.SERVICE_DATA_DIR), ...settings }));
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

// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document is walked as it comes
type Document = any;

export class TestService {
  readonly server: RunningServer;
  #document: Promise<Document> | null = null;

  constructor(server: RunningServer) {
    this.server = server;
  }

  get url(): string {
    return this.server.url;
  }

  /** GET below `/api/v1`. */
  get(path: string, headers: Record<string, string> = {}): Promise<Reply> {
    return this.send("GET", `/api/v1${path}`, { headers });
  }

  /** POST below `/api/v1`: text and bytes as they are, anything else as JSON. */
  post(path: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<Reply> {
    const content = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
    return this.send("POST", `/api/v1${path}`, { body: content as BodyInit, headers });
  }

  /** Any request. The answer must be what the OpenAPI document promises. */
  async send(method: string, path: string, init: RequestInit = {}): Promise<Reply> {
    const response = await fetch(this.url + path, { method, ...init });
    const bytes = Buffer.from(await response.arrayBuffer());
    const text = new TextDecoder().decode(bytes);
    const isJson = /^application\/(problem\+)?json$/.test(response.headers.get("content-type") ?? "");
    const body = isJson && text ? JSON.parse(text) : undefined;
    if (isJson && text) await this.#expectPromised(method, path.split("?")[0]!, response, body);
    if (response.status === 304 || response.headers.has("etag"))
      await this.#expectPromisedHeaders(method, path.split("?")[0]!, response);
    return { status: response.status, headers: response.headers, text, bytes, body };
  }

  /** Number of entries in the log. */
  async entryCount(): Promise<number> {
    return (await this.get("/log/head")).body.entry_count;
  }

  async openApi(): Promise<Document> {
    this.#document ??= fetch(`${this.url}/api/v1/openapi.json`).then((response) => response.json());
    return this.#document;
  }

  /** Sends bytes over a bare connection and gives what came back until it was closed or `milliseconds` passed. */
  raw(bytes: string | Uint8Array, milliseconds = 2_000): Promise<string> {
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
        const [head, body = ""] = received.split("\r\n\r\n");
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

  async #expectPromised(method: string, path: string, response: Response, body: unknown): Promise<void> {
    const document = await this.openApi();
    const operation = operationAt(document, method === "HEAD" ? "GET" : method, path);
    const mediaType = response.headers.get("content-type")!;
    const promised = operation?.responses[response.status]?.content[mediaType]?.schema;
    if (operation)
      expect(promised, `${method} ${path} answered ${response.status}: ${JSON.stringify(body)}`).toBeDefined();
    const schema = promised ?? { $ref: "#/components/schemas/Problem" };
    const [fits, errors] = Compile({ ...schema, components: document.components }).Errors(body);
    expect(fits, `${method} ${path} ${response.status}: ${JSON.stringify(errors)}`).toBe(true);
  }

  async #expectPromisedHeaders(method: string, path: string, response: Response): Promise<void> {
    const operation = operationAt(await this.openApi(), method === "HEAD" ? "GET" : method, path);
    const promised = operation?.responses[response.status]?.headers;
    expect(promised, `${method} ${path} answered ${response.status} with an ETag`).toHaveProperty("ETag");
    for (const name of Object.keys(promised)) expect(response.headers.get(name), name).not.toBeNull();
  }
}

/** The operation that answers a path; fixed parts go before parameters. */
function operationAt(document: Document, method: string, path: string): Document {
  const matching = Object.keys(document.paths).filter((template) =>
    new RegExp(`^${template.replace(/\{\w+\}/g, "[^/]+")}$`).test(path),
  );
  const [template] = matching.sort((a, b) => a.split("{").length - b.split("{").length);
  return template === undefined ? undefined : document.paths[template][method.toLowerCase()];
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
