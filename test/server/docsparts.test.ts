/** The parts of the page at /docs, made from a document that is small enough for the test to give the text of each. */
import { expect, test } from "vitest";
import { html, prose, words } from "#cairnlog/server/http/docs/model.js";
import { membersOf, operationHtml, typeOf } from "#cairnlog/server/http/docs/operation.js";
import { docsPages } from "#cairnlog/server/http/docs/page.js";

type Schema = Parameters<typeof typeOf>[0];
type Place = Parameters<typeof operationHtml>[0];
type Document = Parameters<typeof docsPages>[0];

/** The visible text: words separated by one space, without elements. */
const read = (page: string): string =>
  page
    .replace(/<wbr>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replace(/\s+/g, " ")
    .trim();

const SCHEMAS: Readonly<Record<string, Schema>> = {
  Thing: {
    description: "A thing with `code`.",
    required: ["id", "kind"],
    properties: {
      id: { type: "integer", minimum: 0, maximum: 9, description: "Counted from 0." },
      kind: { enum: ["a", "b", 3], default: "a" },
      name: { anyOf: [{ type: "string", minLength: 1, maxLength: 5, description: "Its name." }, { type: "null" }] },
      both: {
        anyOf: [
          { type: "number", description: "The first." },
          { type: "string", description: "The other." },
        ],
      },
      parts: { type: "array", items: { properties: { size: { type: "number" } } } },
      next: { $ref: "#/components/schemas/Thing" },
      flag: { const: true },
      when: { type: "string", format: "date-time", pattern: "^2" },
      counts: { additionalProperties: { type: "integer" } },
      any: {},
    },
  },
};

test.each<[Schema, string]>([
  [{ $ref: "#/components/schemas/Thing" }, "Thing"],
  [{ anyOf: [{ type: "string" }, { type: "null" }, { const: 7 }] }, "string or null or 7"],
  [{ const: "x" }, "x"],
  [{ const: false }, "false"],
  [{ enum: ["a", 1] }, "a | 1"],
  [{ type: "array", items: { type: "array", items: { type: "string" } } }, "array of array of string"],
  [{ type: "object", additionalProperties: { type: "integer" } }, "map to integer"],
  [{ type: "object", additionalProperties: true }, "any object"],
  [{ type: "object", additionalProperties: true, properties: {} }, "object"],
  [{ type: "string", format: "date-time" }, "string (date-time)"],
  [{}, "anything"],
])("the type %j reads %s", (schema, expected) => {
  expect(read(typeOf(schema).text)).toBe(expected);
});

test("a reference leads to its schema", () => {
  expect(typeOf({ $ref: "#/components/schemas/Thing" }).text).toBe('<a href="#schema-Thing">Thing</a>');
});

const MEMBERS = (direction: "in" | "out") => {
  const label = (isRequired: boolean) =>
    direction === "in" ? (isRequired ? " required" : "") : isRequired ? "" : " not always";
  return [
    `id${label(true)} integer ≥ 0 ≤ 9 Counted from 0.`,
    `kind${label(true)} a | b | 3 default a`,
    `name${label(false)} string or null length ≥ 1 length ≤ 5 Its name.`,
    `both${label(false)} number or string The first.`,
    `parts${label(false)} array of anything size${label(false)} number`,
    `next${label(false)} Thing`,
    `flag${label(false)} true`,
    `when${label(false)} string (date-time) ^2`,
    `counts${label(false)} map to integer`,
    `any${label(false)} anything`,
  ].join(" ");
};

test.each(["in", "out"] as const)("members of a body %s: types, limits, and which are optional", (direction) => {
  expect(read(membersOf(SCHEMAS.Thing!, direction)!.text)).toBe(MEMBERS(direction));
  // An array, or a value that may be null, has the members of its content.
  expect(membersOf({ items: SCHEMAS.Thing! }, direction)!.text).toBe(membersOf(SCHEMAS.Thing!, direction)!.text);
  const nullable = { anyOf: [{ type: "null" }, SCHEMAS.Thing!] };
  expect(membersOf(nullable, direction)!.text).toBe(membersOf(SCHEMAS.Thing!, direction)!.text);
  // Of several alternatives, the first one with members is shown.
  const either = { anyOf: [{ type: "null" }, SCHEMAS.Thing!, { properties: { other: {} } }] };
  expect(membersOf(either, direction)!.text).toBe(membersOf(SCHEMAS.Thing!, direction)!.text);
  for (const bare of [{}, { type: "string" }, { properties: {} }, { anyOf: [{ type: "null" }] }])
    expect(membersOf(bare, direction)).toBeNull();
});

test("a row", () => {
  const rowOf = (schema: Parameters<typeof membersOf>[0], required: string[]) =>
    read(membersOf({ properties: { x: schema }, required }, "in")!.text);
  expect(rowOf({ type: "string", minLength: 0, maxLength: 0 }, ["x"])).toBe("x required string length ≥ 0 length ≤ 0");
  expect(rowOf({ type: "integer", minimum: 0, maximum: 0, default: 0 }, [])).toBe("x integer ≥ 0 ≤ 0 default 0");
});

const PROBLEM = { $ref: "#/components/responses/Gone", description: "" };
const place = (more: Partial<Place["operation"]>, method = "get", path = "/a/{id}/b"): Place => ({
  method,
  path,
  schemas: SCHEMAS,
  operation: {
    operationId: "the_operation",
    tags: ["Second area"],
    summary: "Does `it`",
    description: "First.\n\nSecond with `code`.",
    security: [],
    responses: { 200: { description: "Fine." }, 410: PROBLEM },
    ...more,
  },
});
const parameter = (name: string, where: "path" | "query" | "header", more: object = {}) => ({
  name,
  in: where,
  required: where === "path",
  description: `About ${name}.`,
  schema: { type: "string", description: "Not this." },
  ...more,
});

test("an operation: its name, input and answers", () => {
  const { text } = operationHtml(
    place({
      parameters: [
        parameter("q", "query", { example: "x:y&z" }),
        parameter("If-None-Match", "header"),
        parameter("id", "path", { example: 7 }),
      ],
      responses: {
        200: {
          description: "Fine.",
          content: { "application/json": { schema: { $ref: "#/components/schemas/Thing" }, example: { id: 1 } } },
        },
        202: { description: "Taken.", content: { "text/plain": { schema: { type: "string" } } } },
        304: { description: "Held." },
        410: PROBLEM,
      },
    }),
  );
  expect(read(text)).toBe(
    [
      "GET /a/{id}/b Does it the_operation First. Second with code .",
      "In the path id required string About id.",
      "In the query q string About q.",
      "In the header If-None-Match string About If-None-Match.",
      'Request curl curl "$SERVER/a/7/b?q=x:y%26z"',
      `Answers 200 Fine. application/json Thing ${MEMBERS("out")} Example { "id": 1 }`,
      "202 Taken. text/plain string",
      "304 Held. 410 Gone",
    ].join(" "),
  );
  expect(text).toContain('<details class="example" open><summary>curl</summary>');
  expect(text).toContain('<details class="example"><summary>Example</summary>');
  expect(text).toContain('<a id="the_operation" href="#the_operation">');
  expect(text).toContain('<a href="#answer-Gone">Gone</a>');
  for (const [status, kind] of [
    ["200", "good"],
    ["304", "kept"],
    ["410", "bad"],
  ])
    expect(text).toContain(`<span class="status ${kind}">${status}</span>`);
  expect(text).toContain('<span class="method get">GET</span>');
  expect(text).toContain("<wbr>/a<wbr>/{id}<wbr>/b");
});

/** The example request on a page. */
const curlOf = (...parts: Parameters<typeof place>) =>
  /<pre tabindex="0"><code>(.*?)<\/code>/s
    .exec(operationHtml(place(...parts)).text)![1]!
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
const json = (example: unknown) => ({
  requestBody: { required: true, description: "It.", content: { "application/json": { schema: {}, example } } },
});
const optional = { requestBody: { ...json({}).requestBody, required: false } };
const SESSION = [{ session: [] }];
const BYTES = { 200: { description: "Bytes.", content: { "application/octet-stream": { schema: {} } } } };

test.each<[string, string, Parameters<typeof place>]>([
  ["reads", 'curl "$SERVER/x"', [{}, "get", "/x"]],
  ["writes without a body", 'curl "$SERVER/x" \\\n  -X POST', [{}, "post", "/x"]],
  ["may leave its body out", 'curl "$SERVER/x" \\\n  -X POST', [optional, "post", "/x"]],
  [
    "removes",
    'curl "$SERVER/x" \\\n  -X DELETE \\\n  -H "Authorization: Bearer $TOKEN"',
    [{ security: SESSION }, "delete", "/x"],
  ],
  ["sends a body", `curl "$SERVER/x" \\\n  -d @- <<'JSON'\n{\n  "a": 1\n}\nJSON`, [json({ a: 1 }), "post", "/x"]],
  ["sends a text", `curl "$SERVER/x" \\\n  -d @- <<'JSON'\nas it is\nJSON`, [json("as it is"), "post", "/x"]],
  [
    "sends a body with a session",
    `curl "$SERVER/x" \\\n  -H "Authorization: Bearer $TOKEN" \\\n  -d @- <<'JSON'\n{}\nJSON`,
    [{ ...json({}), security: [...SESSION, {}] }, "post", "/x"],
  ],
  [
    "sends a body with a proof, which needs no session",
    `curl "$SERVER/x" \\\n  -d @- <<'JSON'\n{\n  "auth": {}\n}\nJSON`,
    [{ ...json({ auth: {} }), security: [...SESSION, {}] }, "post", "/x"],
  ],
  ["saves bytes", 'curl "$SERVER/x" \\\n  --output tile', [{ responses: BYTES }, "get", "/x"]],
])("a request that %s", (_, expected, parts) => {
  expect(curlOf(...parts)).toBe(expected);
});

test("a body is described, by its members as they are to be sent", () => {
  const content = { "application/json": { schema: { $ref: "#/components/schemas/Thing" }, example: { id: 2 } } };
  const { text } = operationHtml(
    place({ requestBody: { required: true, description: "What to `send`.", content } }, "post", "/x"),
  );
  // The example is in the request.
  expect(read(text)).toContain(`Body What to send . application/json Thing ${MEMBERS("in")} Request curl`);
});

test("the page: areas in order with their operations, headers, refusals and schemas", () => {
  const problem = {
    description: "Gone. It was there.",
    content: {
      "application/problem+json": {
        schema: { properties: { status: { const: 410 }, code: { enum: ["gone", "over"] } } },
        example: { status: 410 },
      },
    },
  };
  const document: Document = {
    info: {
      title: "thelog",
      version: "1.2.3",
      summary: "A summary.",
      description: "Of all.\n\nAnd more.",
      license: { name: "Apache" },
    },
    tags: [
      { name: "First area", description: "With `code`." },
      { name: "Second area", description: "Without." },
    ],
    paths: {
      "/api/v1/two": {
        post: place({
          requestBody: {
            required: true,
            description: "In.",
            content: { "application/json": { schema: { $ref: "#/x/Thing" } } },
          },
        }).operation,
      },
      "/one": {
        get: { ...place({}).operation, operationId: "one", tags: ["First area"], summary: "Gets one" },
        head: { ...place({}).operation, operationId: "none", tags: ["First area"], summary: "Gets nothing" },
      },
    },
    components: {
      schemas: { Thing: SCHEMAS.Thing!, Bare: { type: "string" } },
      responses: { Gone: problem, HeadGone: { description: "Gone, without its body. It was there." } },
      headers: { ETag: { description: "A `tag`.", example: '"x"' } },
      securitySchemes: { session: { description: "About sessions." } },
    },
  };
  const text = docsPages(document, false)("");
  const [head, , navigation, content] = text.split(/(?=<header>|<nav|<main)/);
  expect(head).toContain("<title>thelog 1.2.3: HTTP interface</title>");
  expect(text).toContain('<p class="title">thelog <span class="version">1.2.3</span></p>');
  expect(read(navigation!)).toBe(
    "Operations Conventions Sessions and proofs Answers of all Schemas First area get /one Second area post /two",
  );
  expect(navigation).toContain('<a href="#one" title="Gets one">');
  expect(navigation).toContain('<a href="#area-second-area">Second area</a>');
  expect(content).toContain('<section aria-labelledby="area-second-area">\n<h2 id="area-second-area">Second area</h2>');
  const body = read(content!);
  expect(body).toMatch(/^HTTP interface A summary\. Of all\. And more\. Sessions and proofs About sessions\. /);
  expect(body).toContain('Answers of all operations Headers ETag A tag . "x" Refusals Each is a Problem . 410 Gone. ');
  expect(body).toContain(
    '410 Gone. It was there. gone | over Example { "status": 410 } First area With code . GET /one',
  );
  expect(body).toContain(`Schemas Thing Thing A thing with code . ${MEMBERS("in")} Bare Bare string`);
  expect(body.indexOf("GET /one")).toBeLessThan(body.indexOf("Second area Without. POST /api/v1/two"));
  // A schema that occurs only in answers marks the members that may be absent.
  const answered = docsPages({ ...document, paths: { "/one": document.paths["/one"]! } }, false)("");
  expect(read(answered)).toContain(`Schemas Thing Thing A thing with code . ${MEMBERS("out")} Bare`);
});

test("markup", () => {
  const parts = html`a${["<", html`<b>`, null, undefined, false, 0, ["&", `"'`]]}z`;
  expect(parts.text).toBe("a&#60;<b>0&#38;&#34;&#39;z");
  expect(words("one `two` three `four`").text).toBe("one <code>two</code> three <code>four</code>");
  expect(prose("one\n\ntwo `three`").text).toBe("<p>one</p><p>two <code>three</code></p>");
});
