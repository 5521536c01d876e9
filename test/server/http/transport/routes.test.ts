/** The table of routes: what a path answers to each method, what a mirror leaves of it, and the input of a handler. */
import Type from "typebox";
import { describe, expect, test } from "vitest";
import { Tallies } from "#cairnlog/server/http/observing/measures.js";
import { NO_PAGES } from "#cairnlog/server/http/origins.js";
import {
  checkedContext,
  noResource,
  PRIVATE_HEADERS,
  resources,
  withoutRoute,
} from "#cairnlog/server/http/resources.js";
import { type Route, route } from "#cairnlog/server/http/route/route.js";
import { readOnly } from "#cairnlog/server/http/routes/roles/roles.js";
import {
  DECLARATIONS_BELIEVED,
  healthRoutes,
  operationRoutes,
  UWS_DOES_NOT_LOAD,
} from "#cairnlog/server/http/routes/service/health.js";
import type { Request } from "#cairnlog/server/http/transport/request.js";
import { VERSION } from "#cairnlog/server/process/version.js";

const row = (method: Route["method"], path: string, more: object = {}): Route =>
  route({
    method,
    path,
    summary: `${method} ${path}`,
    answer: Type.Null(),
    limit: "general",
    handle: () => null,
    ...more,
  });
const of = (...routes: Route[]) => resources(routes, new Tallies());
const request = (method: string, params: readonly string[] = [], query = "") => ({ method, params, query }) as Request;

const ID = { params: Type.Object({ id: Type.Integer() }) };
const PUBLIC = [
  "x-content-type-options",
  "nosniff\r\naccess-control-allow-origin: *\r\naccess-control-expose-headers: *",
];

test("routes of one path are one resource, and a method has one route there", () => {
  const tallies = new Tallies();
  const found = resources([row("GET", "/a"), row("POST", "/a"), row("DELETE", "/b/{id}/{name}")], tallies);
  expect(
    found.map(({ path, params, methods, readHeaders, routes }) => [
      path,
      params,
      methods,
      readHeaders,
      [...routes.keys()],
    ]),
  ).toEqual([
    ["/a", [], ["GET", "HEAD", "POST", "OPTIONS"], PUBLIC, ["GET", "POST"]],
    ["/b/{id}/{name}", ["id", "name"], ["DELETE", "OPTIONS"], PRIVATE_HEADERS, ["DELETE"]],
  ]);
  expect(PRIVATE_HEADERS).toEqual(["x-content-type-options", "nosniff"]);
  expect(() => of(row("GET", "/a"), row("GET", "/b"), row("GET", "/a"))).toThrow("two routes answer GET /a");
  const unknown = noResource(tallies);
  expect(unknown).toMatchObject({ path: "(unknown)", params: [], methods: [], readHeaders: PUBLIC });
  // Requests are counted by method and path.
  found[0]!.routes.get("POST")!.tally.answered(200, 1);
  found[1]!.tally.answered(405, 1);
  unknown.tally.answered(404, 1);
  expect(tallies.figures().map(({ method, route }) => [method, route])).toEqual([
    ["POST", "/a"],
    ["other", "/b/{id}/{name}"],
    ["other", "(unknown)"],
  ]);
});

describe("a request without a route", () => {
  test("that is a preflight learns what pages may do", () => {
    const [readable, writable] = of(row("GET", "/a"), row("POST", "/b"));
    const answer = withoutRoute(readable!, request("OPTIONS"), { pages: NO_PAGES });
    expect(answer).toMatchObject({ status: 204, body: Buffer.alloc(0) });
    expect(answer.headers).toEqual({
      allow: "GET, HEAD, OPTIONS",
      "access-control-allow-methods": "GET, HEAD",
      "access-control-allow-headers": "*, authorization",
      "access-control-max-age": "86400",
    });
    expect(withoutRoute(writable!, request("OPTIONS"), { pages: NO_PAGES }).headers).toEqual({
      allow: "POST, OPTIONS",
    });
  });

  test("learns which methods there are, or that the path is none", () => {
    const [fixed, named] = of(row("GET", "/a"), row("GET", "/b/{id}", ID));
    const refusal = (...parts: Parameters<typeof withoutRoute>) => {
      try {
        return withoutRoute(...parts);
      } catch (error) {
        return error;
      }
    };
    const allowed = { status: 405, code: "method-not-allowed", headers: { allow: "GET, HEAD, OPTIONS" } };
    expect(refusal(fixed!, request("POST"), { pages: NO_PAGES })).toMatchObject(allowed);
    expect(refusal(named!, request("POST", ["7"]), { pages: NO_PAGES })).toMatchObject(allowed);
    for (const id of ["x", "%", "%zz"])
      expect(refusal(named!, request("POST", [id]), { pages: NO_PAGES })).toMatchObject({ code: "not-found" });
    expect(refusal(noResource(new Tallies()), request("OPTIONS"), { pages: NO_PAGES })).toMatchObject({
      code: "not-found",
    });
  });
});

describe("the input of a handler", () => {
  const NAMES = Type.Object({ name: Type.String(), id: Type.Integer() });
  const QUERY = Type.Object({ page: Type.Integer({ default: 1 }), name: Type.Optional(Type.String()) });
  const BODY = Type.Object({ a: Type.String() });
  const [resource] = of(
    row("GET", "/{name}/{id}", { params: NAMES, query: QUERY }),
    row("POST", "/{name}/{id}", { body: BODY, bulk: { frame: Type.Object({ b: Type.Number() }), count: () => 1 } }),
    row("DELETE", "/{name}/{id}", { body: BODY }),
  );
  const context = (method: string, asked: Request, body: unknown = null) =>
    checkedContext(resource!.routes.get(method)!, resource!, asked, body, "proof");

  test("is decoded and read by its schemas", () => {
    const asked = request("GET", ["a%2Fb", "7"], "name=x");
    expect(context("GET", asked)).toEqual({
      params: { name: "a/b", id: 7 },
      query: { page: 1, name: "x" },
      body: null,
      request: asked,
      proof: "proof",
    });
    // Without a query there are the defaults, each time.
    for (let i = 0; i < 2; i++) expect(context("GET", request("GET", ["a", "7"])).query).toEqual({ page: 1 });
    expect(() => context("GET", request("GET", ["a", "x"]))).toThrow("/id: It must be a whole number");
    expect(() => context("GET", request("GET", ["a", "7"], "page=x"))).toThrow("/page: It must be a whole number");
    expect(() => context("GET", request("GET", ["%", "7"]))).toThrow(expect.objectContaining({ code: "not-found" }));
  });

  test("is a body that fits, or its frame if it holds many requests", () => {
    expect(context("DELETE", request("DELETE"), { a: "" })).toMatchObject({ body: { a: "" }, params: {}, query: {} });
    expect(() => context("DELETE", request("DELETE"), {})).toThrow("/a: It is missing.");
    expect(context("POST", request("POST"), { b: 1 })).toMatchObject({ body: { b: 1 } });
    expect(() => context("POST", request("POST"), { a: "" })).toThrow("/b: It is missing.");
  });
});

test("a mirror answers reads of the log and computes; the rest is 403, and described as such", () => {
  const authorize = async () => null;
  const offered = [
    row("GET", "/api/v1/log"),
    ...["/api/v1/verify", "/api/v1/log/verify", "/api/v1/composite/assemble", "/api/v1/composite/compile"].map((path) =>
      row("POST", path, { body: Type.Object({}) }),
    ),
  ];
  const refused = [
    row("POST", "/api/v1/attestations", { body: Type.Object({}), refusals: [404], authorize, proving: "optional" }),
    row("DELETE", "/api/v1/webhooks/{id}", { ...ID, limit: "attestation" }),
    row("GET", "/api/v1/inbox", { authorize, query: Type.Object({}) }),
    row("GET", "/api/v1/trust-configs"),
    row("GET", "/api/v1/trust-configs/{id}", ID),
  ];
  const [kept, changed] = [readOnly(offered), readOnly(refused)];
  for (const [i, route] of kept.entries()) expect(route).toBe(offered[i]);
  for (const [i, route] of changed.entries()) {
    const { method, path, summary, params, answer, limit } = refused[i]!;
    const { handle, ...described } = route;
    expect(described).toEqual({ method, path, summary, answer, limit, refusals: [403], ...(params && { params }) });
    expect(() => handle(null as never)).toThrow(expect.objectContaining({ code: "forbidden" }));
  }
});

describe("the state of the service", () => {
  const WRITERS = { rule: "registered", sentence: "Some may write." };
  /** The answer of one of its routes. */
  async function answer(
    path: string,
    {
      believes = false,
      why = null as string | null,
      readOnly = false,
      limit = null as number | null,
      vkey = null as string | null,
    } = {},
  ) {
    const readiness = { check: async () => (believes ? ["The disk."] : []), checkAlive: () => {} };
    const metrics = { text: async () => "a 1", contentType: "text/plain; version=1" };
    const chosen = { transport: { name: "uws", serve: null as never }, whyNotUws: why } as const;
    const registry = {
      credentials: { believesDeclarations: believes } as never,
      writers: { view: WRITERS } as never,
      log: { frozen: null } as never,
    };
    const routes = [
      ...healthRoutes(readiness, { isDemonstration: false, isReadOnly: readOnly, attestations: limit }),
      ...operationRoutes(
        registry,
        { readiness, metrics, tlog: { vkey, checkpoint: () => "", witnesses: () => [] }, replication: null },
        chosen,
        readOnly,
      ),
    ];
    return routes.find((one) => one.path === path)!.handle({} as never);
  }

  test("has warnings only where there is something to warn of", async () => {
    const ready = { status: "ok", transport: "uws", writers: WRITERS };
    expect(await answer("/readyz")).toEqual(ready);
    expect(await answer("/readyz", { vkey: "a+b+c" })).toEqual({ ...ready, vkey: "a+b+c" });
    expect(await answer("/readyz", { why: "no binary" })).toMatchObject({ warnings: [UWS_DOES_NOT_LOAD] });
    expect(await answer("/readyz", { believes: true })).toMatchObject({
      warnings: ["The disk.", DECLARATIONS_BELIEVED],
    });
  });

  test("tells a mirror from the log's own service", async () => {
    expect(await answer("/readyz", { readOnly: true })).toEqual({ status: "ok", transport: "uws" });
    expect(await answer("/api/v1/health")).toEqual({ status: "ok", version: VERSION });
    expect(await answer("/api/v1/health", { readOnly: true })).toEqual({
      status: "ok",
      version: VERSION,
      read_only: true,
    });
  });

  test("names the limit of attestations, unless there is none", async () => {
    expect(await answer("/api/v1/health", { limit: 50 })).toMatchObject({
      attestation_limit: { requests: 50, seconds: 3600 },
    });
    expect(await answer("/api/v1/health", { limit: 50, readOnly: true })).not.toHaveProperty("attestation_limit");
  });

  test("is a word for probes, and a text for Prometheus", async () => {
    expect(await answer("/livez")).toEqual({ status: "ok" });
    expect(await answer("/metrics")).toMatchObject({
      status: 200,
      contentType: "text/plain; version=1",
      body: Buffer.from("a 1"),
    });
  });
});
