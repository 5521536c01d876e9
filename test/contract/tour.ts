/** A tour of every operation of the OpenAPI document, and a record of the answers. */
import { expect } from "vitest";
import type { Document } from "../server/contract.js";
import type { Reply, TestService } from "../server/harness.js";

export interface Asked {
  readonly params?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly definition: Document;
}

/** Every operation of a document, except those for tests, and HEAD, which every GET answers. */
export const operationsOf = (document: Document): Operation[] =>
  everyOperation(document).filter(({ method }) => method !== "HEAD");

/** Every operation of a document, except those for tests. */
export function everyOperation(document: Document): Operation[] {
  return Object.entries<Document>(document.paths)
    .filter(([path]) => !path.startsWith("/api/v1/test/"))
    .flatMap(([path, item]) =>
      Object.entries<Document>(item).map(([method, definition]) => ({
        id: definition.operationId,
        method: method.toUpperCase(),
        path,
        definition,
      })),
    );
}

export class Tour {
  readonly operations: ReadonlyMap<string, Operation>;
  /** `operationId status` of all answers. */
  readonly seen = new Set<string>();
  /** The first request of an operation that was granted, and its answer. */
  readonly granted = new Map<string, Asked & { readonly reply: Reply }>();
  readonly #service: TestService;

  private constructor(service: TestService, document: Document) {
    this.#service = service;
    this.operations = new Map(operationsOf(document).map((operation) => [operation.id, operation]));
  }

  static async of(service: TestService): Promise<Tour> {
    const tour = new Tour(service, await service.openApi());
    await tour.follow(service);
    return tour;
  }

  /** Records the answers of a service from now on. */
  async follow(service: TestService): Promise<void> {
    const contract = await service.contract();
    service.watch = (method, path, _, { status }) => {
      const operation = contract.operation(method, path.split("?")[0]!);
      if (operation) this.seen.add(`${operation.operationId} ${status}`);
    };
  }

  /** Sends a request to an operation and expects this status. What is granted must be a request that is documented. */
  async ask(id: string, status: number, asked: Asked = {}, service = this.#service): Promise<Reply> {
    const { params = {}, query = {}, body, headers = {} } = asked;
    const { method, path, definition } = this.operations.get(id)!;
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => String(params[name]));
    const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
    const content = typeof body === "string" ? body : JSON.stringify(body);
    const init = { headers, ...(content === undefined ? {} : { body: content }) };
    const reply = await service.send(method, search.size ? `${filled}?${search}` : filled, init);
    expect(reply.status, `${method} ${filled}: ${reply.text}`).toBe(status);
    const schema = definition.requestBody?.content["application/json"].schema;
    if (status < 300 && schema && body !== undefined)
      expect((await service.contract()).faults(schema, body), `${method} ${filled}`).toEqual([]);
    if (status < 300 && !this.granted.has(id)) this.granted.set(id, { ...asked, reply });
    return reply;
  }

  /** The ids of operations whose definition fulfils a condition. */
  which(condition: (operation: Operation) => boolean): Operation[] {
    return [...this.operations.values()].filter(condition);
  }
}
