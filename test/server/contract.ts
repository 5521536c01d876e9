/**
 * Checks answers against the OpenAPI document: undocumented parts are errors. Schemas are checked by Ajv, which shares no
 * code with the library that made them.
 */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { expect } from "vitest";

// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document is walked as it comes
export type Document = any;

/** Headers of the connection and the message, which are not part of the API. */
const OF_THE_TRANSPORT = new Set(["connection", "content-length", "content-type", "date", "keep-alive"]);
OF_THE_TRANSPORT.add("transfer-encoding").add("uwebsockets");

const PROBLEM = { $ref: "#/components/schemas/Problem" };

const contracts = new Map<string, Contract>();

export class Contract {
  readonly document: Document;
  readonly #ajv = new Ajv2020({ allErrors: true, strictTypes: false });
  readonly #checks = new Map<string, ValidateFunction>();
  readonly #templates: readonly { readonly path: string; readonly pattern: RegExp }[];

  /** The contract of a document. Many services have the same one, and its schemas are compiled once. */
  static of(text: string): Contract {
    const known = contracts.get(text) ?? new Contract(JSON.parse(text));
    contracts.set(text, known);
    return known;
  }

  private constructor(document: Document) {
    this.document = document;
    formats.default(this.#ajv);
    // `$ref` has the same meaning in both: a pointer into the whole that the schemas are parts of.
    this.#ajv.addVocabulary(["components", "example"]);
    this.#ajv.addSchema({ $id: DOCUMENT, components: { schemas: closed(document.components.schemas) } });
    // Paths with fixed parts come before those with parameters.
    this.#templates = Object.keys(document.paths)
      .sort((a, b) => a.split("{").length - b.split("{").length)
      .map((path) => ({ path, pattern: new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`) }));
  }

  /** The operation of a path; undefined if there is none. */
  operation(method: string, path: string): Document {
    return this.#item(path)?.[method.toLowerCase()];
  }

  /** The operations of a path, by method; undefined if there are none. */
  #item(path: string): Document {
    const template = this.#templates.find(({ pattern }) => pattern.test(path));
    return template && this.document.paths[template.path];
  }

  /** A response object, resolved if it is a reference. */
  response(operation: Document, status: number): Document {
    return this.#resolved(operation.responses[status]);
  }

  /** Asserts that an answer is documented: its status, its headers, its type and every member of its body. */
  expectPromised(method: string, path: string, response: Response, body: unknown): void {
    const operation = this.operation(method, path);
    const { status, headers } = response;
    const said = `${method} ${path} answered ${status}`;
    const mediaType = essence(headers.get("content-type") ?? "");
    if (mediaType === "application/problem+json" && body !== undefined)
      expect((body as Document).request_id, said).toBe(headers.get("x-request-id"));
    if (!operation) {
      if (body !== undefined) this.#expectFits(PROBLEM, body, said);
      // Every operation says what the others answer.
      const [other] = Object.values(this.#item(path) ?? {});
      if (other && status === 405) this.#expectHeaders(this.response(other, status).headers, headers, said);
      return;
    }
    const promised = this.response(operation, status);
    expect(promised, `${said}: ${JSON.stringify(body)}`).toBeDefined();
    this.#expectHeaders(promised.headers ?? {}, headers, said);
    if (method === "HEAD") expect(promised.content, said).toBeUndefined();
    if (!mediaType || method === "HEAD") return;
    const types = Object.keys(promised.content ?? {});
    const type = types.find((type) => essence(type) === mediaType);
    expect(type, `${said} as ${mediaType}; promised: ${types}`).toBeDefined();
    if (body !== undefined) this.#expectFits(promised.content[type!].schema, body, said);
  }

  /** The faults of a value by `schema`, including undocumented members. */
  faults(schema: Document, value: unknown): unknown[] {
    const key = JSON.stringify(schema);
    if (!this.#checks.has(key)) this.#checks.set(key, this.#ajv.compile(absolute(closed(schema))));
    const check = this.#checks.get(key)!;
    return check(value) ? [] : check.errors!;
  }

  #expectFits(schema: Document, value: unknown, said: string): void {
    expect(this.faults(schema, value), `${said}: ${JSON.stringify(value)}`).toEqual([]);
  }

  #expectHeaders(promised: Document, headers: Headers, said: string): void {
    const names = new Set(Object.keys(promised).map((name) => name.toLowerCase()));
    // `expect` costs more than this check, and every answer of every test has a dozen headers.
    for (const [name] of headers)
      if (!names.has(name) && !OF_THE_TRANSPORT.has(name)) expect.fail(`${said} with ${name}`);
    for (const name of names)
      if (this.#header(promised, name).required && !headers.has(name)) expect.fail(`${said} without ${name}`);
  }

  #header(promised: Document, name: string): Document {
    const [, header] = Object.entries(promised).find(([key]) => key.toLowerCase() === name)!;
    return this.#resolved(header);
  }

  #resolved(part: Document): Document {
    if (!part?.$ref) return part;
    return part.$ref
      .split("/")
      .slice(1)
      .reduce((node: Document, name: string) => node[name], this.document);
  }
}

/** The name under which Ajv knows the document. */
const DOCUMENT = "https://document.example/openapi.json";

/** A schema whose references lead into the document from anywhere. */
const absolute = (schema: Document): Document =>
  JSON.parse(JSON.stringify(schema), (name, value) =>
    name === "$ref" && typeof value === "string" ? `${DOCUMENT}${value}` : value,
  );

/** A media type without its parameters. */
const essence = (mediaType: string) => mediaType.split(";")[0]!.trim().toLowerCase();

/** `schema` without undocumented members, except where it allows any. */
function closed(schema: Document): Document {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, closed(part)]));
  const names = typeof schema.properties === "object" ? Object.keys(schema.properties) : [];
  if (schema.type === "object" && names.length) copy.additionalProperties ??= false;
  return copy;
}
