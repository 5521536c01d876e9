/** The OpenAPI document itself: whether it is valid by the rules of OpenAPI 3.1, and complete. */
import { beforeAll, describe, expect, test } from "vitest";
import type { Contract, Document } from "../../server/contract.js";
import { startTestService } from "../../server/harness.js";
import { everyOperation, type Operation } from "../tour.js";

let contract: Contract;
let document: Document;
let operations: Operation[];
beforeAll(async () => {
  const service = await startTestService();
  contract = await service.contract();
  ({ document } = contract);
  operations = everyOperation(document);
});

/** The used fields of each object of the specification; those with `!` are required. */
const FIELDS: Readonly<Record<string, string>> = {
  document: "openapi! info! servers! tags! paths! components!",
  info: "title! version! summary description license!",
  license: "name! identifier!",
  server: "url! description",
  tag: "name! description!",
  components: "schemas responses headers securitySchemes",
  operation: "operationId! tags! summary! description security! parameters requestBody responses!",
  parameter: "name! in! required! description! schema! example",
  requestBody: "required! description! content!",
  response: "description! headers content",
  header: "description! required! schema! example!",
  mediaType: "schema! example",
  securityScheme: "type! scheme! bearerFormat description!",
};

function expectFields(kind: string, object: Document, where: string): void {
  const fields = FIELDS[kind]!.split(" ");
  const known = fields.map((field) => field.replace("!", ""));
  expect(
    Object.keys(object).filter((field) => !known.includes(field)),
    `${kind} ${where}`,
  ).toEqual([]);
  for (const field of fields.filter((field) => field.endsWith("!")))
    expect(object, `${kind} ${where}`).toHaveProperty(field.slice(0, -1));
}

function* nodesOf(node: Document, where = "#"): Iterable<readonly [string, Document]> {
  if (typeof node !== "object" || node === null) return;
  yield [where, node];
  for (const [name, part] of Object.entries<Document>(node)) yield* nodesOf(part, `${where}/${name}`);
}

describe("is an OpenAPI 3.1 document", () => {
  test("of known objects with the fields that they must have", () => {
    expectFields("document", document, "");
    expect(document.openapi).toBe("3.1.0");
    expectFields("info", document.info, "");
    expectFields("license", document.info.license, "");
    for (const server of document.servers) expectFields("server", server, server.url);
    for (const tag of document.tags) expectFields("tag", tag, tag.name);
    expectFields("components", document.components, "");
    for (const [name, scheme] of Object.entries(document.components.securitySchemes))
      expectFields("securityScheme", scheme, name);
    for (const [name, header] of Object.entries(document.components.headers)) expectFields("header", header, name);
    for (const [name, response] of Object.entries(document.components.responses))
      expectResponse(response as Document, name);
  });

  test("whose operations are", () => {
    for (const { id, definition } of operations) {
      expectFields("operation", definition, id);
      for (const parameter of definition.parameters ?? []) {
        expectFields("parameter", parameter, `${id} ${parameter.name}`);
        expect(["path", "query", "header"]).toContain(parameter.in);
        if (parameter.in === "path") expect(parameter.required, `${id} ${parameter.name}`).toBe(true);
      }
      const names = (definition.parameters ?? []).map((one: Document) => `${one.in} ${one.name}`);
      expect(new Set(names).size, id).toBe(names.length);
      if (definition.requestBody) {
        expectFields("requestBody", definition.requestBody, id);
        expectContent(definition.requestBody.content, id);
      }
      for (const status of Object.keys(definition.responses)) {
        expect(status).toMatch(/^[2-5]\d\d$/);
        expectResponse(contract.response(definition, Number(status)), `${id} ${status}`);
      }
    }
  });

  test("of a service that it names, with one way to sign in", () => {
    const { info, servers, components } = document;
    expect(info).toMatchObject({ title: "cairnlog", license: { name: "Apache-2.0", identifier: "Apache-2.0" } });
    expect(info.version).toMatch(/^\d+\.\d+\.\d+/);
    expect(info.summary).toMatch(/^A transparency log/);
    expect(servers).toMatchObject([{ url: "/" }]);
    const { session } = components.securitySchemes;
    expect(session).toMatchObject({ type: "http", scheme: "bearer", bearerFormat: "JWT" });
    for (const { description } of [...document.tags, session, ...servers, info]) expect(description).toMatch(/\w{3,} /);
    const names = Object.keys(components.schemas);
    expect(names).toEqual([...names].sort());
  });

  test("whose answers that may be kept take tags, and whose bodies are needed", () => {
    for (const { id, definition } of operations) {
      const headers = (definition.parameters ?? []).filter((parameter: Document) => parameter.in === "header");
      const description = "Tags of answers that the client has; one that is still right is answered with 304.";
      const schema = { type: "string" };
      const tags = [{ name: "If-None-Match", in: "header", required: false, description, schema }];
      expect(headers, id).toEqual("304" in definition.responses ? tags : []);
      expect(definition.description, id).not.toMatch(/undefined|^ | $/);
    }
  });

  test("with references that lead somewhere", () => {
    for (const [where, { $ref }] of nodesOf(document)) {
      if ($ref === undefined) continue;
      const parts = $ref.split("/");
      expect(parts.shift(), where).toBe("#");
      const found = parts.reduce((node: Document, name: string) => node?.[name], document);
      expect(found, `${where}: ${$ref}`).toBeTypeOf("object");
    }
  });

  test("with names for all used items, and no unused names", () => {
    const text = JSON.stringify(document);
    for (const kind of ["schemas", "responses", "headers"])
      for (const name of Object.keys(document.components[kind]))
        expect(text, name).toContain(`"#/components/${kind}/${name}"`);
    const tags = operations.flatMap(({ definition }) => definition.tags);
    expect([...new Set(tags)].sort()).toEqual(document.tags.map((tag: Document) => tag.name).sort());
    const schemes = operations.flatMap(({ definition }) => definition.security.flatMap(Object.keys));
    expect([...new Set(schemes)]).toEqual(Object.keys(document.components.securitySchemes));
    expect(new Set(operations.map(({ id }) => id)).size).toBe(operations.length);
  });

  test("with the parameters that its paths name, in order", () => {
    for (const { id, path, definition } of operations) {
      const named = (definition.parameters ?? []).filter((parameter: Document) => parameter.in === "path");
      expect(
        named.map(({ name }: Document) => `{${name}}`),
        id,
      ).toEqual(path.match(/\{\w+\}/g) ?? []);
    }
  });

  function expectResponse(response: Document, where: string): void {
    expectFields("response", response, where);
    if (response.content) expectContent(response.content, where);
  }

  function expectContent(content: Document, where: string): void {
    for (const [type, media] of Object.entries(content)) {
      expect(type, where).toMatch(/^[a-z]+\/[a-z+-]+(; ?[a-z]+=[\w.-]+)*$/);
      expectFields("mediaType", media, where);
    }
  }
});

describe("says enough", () => {
  test("of every member of every schema", () => {
    const silent: string[] = [];
    const isDescribed = (schema: Document): boolean =>
      Boolean(schema.description || schema.$ref || schema.anyOf?.some(isDescribed));
    for (const [where, node] of nodesOf(document.components.schemas)) {
      if (typeof node.properties !== "object" || where.endsWith("/properties")) continue;
      for (const [name, schema] of Object.entries<Document>(node.properties))
        if (!isDescribed(schema)) silent.push(`${where}/${name}`);
    }
    expect(silent).toEqual([]);
  });

  test("of limits, by keywords where there is one", () => {
    const inWords = /\b(?:at most \d+|\d+ to \d+) (?:\S+ )?(?:characters|items|members)\b/i;
    for (const [where, { description }] of nodesOf(document))
      if (typeof description === "string") expect(description, where).not.toMatch(inWords);
  });

  test("by examples of every body, every answer and every parameter that must be given", () => {
    for (const { id, definition } of operations) {
      const { parameters = [], requestBody, responses } = definition;
      for (const { name, required, schema, example } of parameters)
        if (required) expect(contract.faults(schema, example), `${id} ${name}`).toEqual([]);
      if (requestBody) expectExample(requestBody.content["application/json"], `${id} body`);
      const { content } = contract.response(definition, responses[200] ? 200 : 201);
      // The answer to HEAD has no body.
      const [type, media] = Object.entries<Document>(content ?? {})[0] ?? [];
      if (media && type !== "application/octet-stream") expectExample(media, `${id} answer`);
    }
    for (const [name, { content }] of withBody()) expectExample(content["application/problem+json"], name);
  });

  const withBody = () => Object.entries<Document>(document.components.responses).filter(([, { content }]) => content);

  test("of every header: whether it is always there, its type, and an example", () => {
    const [text, number] = [{ type: "string" }, { type: "integer" }];
    const headers = Object.entries<Document>(document.components.headers).map(
      ([name, { required, schema, example }]) => [name, { required, schema, example }],
    );
    expect(Object.fromEntries(headers)).toEqual({
      "X-Request-Id": { required: true, schema: text, example: expect.stringMatching(/^[0-9a-f-]{36}$/) },
      "X-Content-Type-Options": { required: true, schema: text, example: "nosniff" },
      "Cache-Control": { required: true, schema: text, example: "no-cache" },
      ETag: { required: true, schema: text, example: expect.stringMatching(/^"[\w-]{43}"$/) },
      RateLimit: { required: false, schema: text, example: '"general";r=99;t=60' },
      "RateLimit-Policy": { required: false, schema: text, example: '"general";q=100;w=60' },
      "RateLimit-Limit": { required: false, schema: number, example: 100 },
      "RateLimit-Remaining": { required: false, schema: number, example: 99 },
      "RateLimit-Reset": { required: false, schema: number, example: 60 },
      "Access-Control-Allow-Origin": { required: false, schema: text, example: "*" },
      "Access-Control-Expose-Headers": { required: false, schema: text, example: "*" },
      Vary: { required: false, schema: text, example: "origin" },
      "Retry-After": { required: true, schema: number, example: 30 },
      "Cairnlog-Leader": { required: false, schema: text, example: "https://b.log.example" },
      "Cairnlog-Size": { required: false, schema: number, example: 1042 },
      Allow: { required: true, schema: text, example: "GET, HEAD, OPTIONS" },
      "WWW-Authenticate": { required: true, schema: text, example: "Bearer" },
    });
  });

  test("of every refusal: meaning, headers, and every code", () => {
    const always = Object.keys(document.components.headers).filter(
      (name) => !["ETag", "Retry-After", "Cairnlog-Leader", "Allow", "WWW-Authenticate"].includes(name),
    );
    const more: Readonly<Record<number, readonly string[]>> = {
      401: ["WWW-Authenticate"],
      405: ["Allow"],
      429: ["Retry-After"],
      503: ["Retry-After", "Cairnlog-Leader"],
    };
    const seen = withBody().map(([name, response]) => {
      const { schema, example } = response.content["application/problem+json"];
      const status = schema.properties.status.const;
      const codes = schema.properties.code.enum;
      expect(Object.keys(response.content)).toEqual(["application/problem+json"]);
      expect(schema.$ref).toBe("#/components/schemas/Problem");
      const [title, means] = response.description.split(/\. (.*)/s);
      expect(title.replaceAll(" ", ""), name).toBe(name);
      expect(means, name).toMatch(/^[A-Z].{10,}\.$/);
      const { example: request_id } = document.components.headers["X-Request-Id"];
      expect(example, name).toEqual({ type: "about:blank", title, status, detail: means, code: codes[0], request_id });
      const headers = [...always, ...(more[status] ?? [])];
      const promised = Object.fromEntries(
        headers.map((header) => [header, { $ref: `#/components/headers/${header}` }]),
      );
      expect(response.headers, name).toEqual(promised);
      const ofHead = document.components.responses[`Head${name}`];
      const description = `${title}, without its body. ${means}`;
      if (ofHead) expect(ofHead, name).toEqual({ description, headers: promised });
      return [status, codes];
    });
    expect(Object.fromEntries(seen)).toEqual({
      400: [
        ...["ambiguous-length", "malformed-json", "malformed-request", "not-an-object"],
        ...["unsupported-commitment", "commitment-key-missing"],
      ],
      401: ["unauthenticated"],
      403: ["foreign-origin", "forbidden", "proof-required", "not-a-writer", "key-not-active"],
      404: ["not-found"],
      405: ["method-not-allowed"],
      408: ["request-timeout"],
      409: ["already-exists", "wrong-key-status", "challenge-used", "precondition-failed"],
      410: ["gone", "frozen"],
      413: ["payload-too-large"],
      415: ["unsupported-media-type"],
      421: ["misdirected-request"],
      422: ["invalid-input", "invalid-key", "private-key", "invalid-signature", "not-i-json", "decryption-failed"],
      429: ["rate-limited", "budget-spent"],
      500: ["internal-error", "corrupt-log", "wrong-operator", "in-use"],
      502: ["calendars-unavailable"],
      503: [
        ...["not-ready", "not-leader", "behind", "overloaded", "closed", "signer-unavailable"],
        ...["storage-failed", "storage-full", "clock-suspect", "worker-failed", "indexing"],
      ],
    });
  });

  test("about which parameters may be left out", () => {
    const { parameters } = document.paths["/api/v1/log/consistency"].get;
    const required = parameters.map(({ name, required }: { name: string; required: boolean }) => [name, required]);
    expect(required).toEqual([
      ["from", true],
      ["to", false],
      ["tree_version", false],
      ["If-None-Match", false],
    ]);
    expect(document.paths["/api/v1/log"].get.parameters[0]).toMatchObject({ name: "page", required: false });
  });

  function expectExample(media: Document, where: string): void {
    expect(media, where).toHaveProperty("example");
    expect(contract.faults(media.schema, media.example), where).toEqual([]);
  }
});

test("an undocumented answer is a fault", () => {
  const { schema, example } = document.paths["/api/v1/log"].get.responses[200].content["application/json"];
  expect(contract.faults(schema, example)).toEqual([]);
  expect(contract.faults(schema, { ...example, more: 1 })).not.toEqual([]);
  expect(contract.faults(schema, { ...example, total: undefined })).not.toEqual([]);
  const [entry] = example.entries;
  expect(contract.faults(schema, { ...example, entries: [{ ...entry, more: 1 }] })).not.toEqual([]);
  const answer = (status: number, headers = {}) => new Response(null, { status, headers });
  const promised = { "x-request-id": "1", "x-content-type-options": "nosniff", "cache-control": "no-store" };
  const judge = (response: Response) => contract.expectPromised("GET", "/api/v1/log", response, undefined);
  judge(answer(200, promised));
  expect(() => judge(answer(200, { ...promised, "x-more": "1" }))).toThrow("x-more");
  expect(() => judge(answer(200))).toThrow("x-request-id");
  expect(() => judge(answer(409, promised))).toThrow("409");
  expect(() => judge(answer(200, { ...promised, "content-type": "text/html" }))).toThrow("text/html");
});
