/** Caching of answers: which may be cached, for how long, and how a client revalidates them. */
import { beforeAll, describe, expect, test } from "vitest";
import { startControlled } from "../../server/controlled.js";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { newSigner, registration } from "../../server/signers.js";

const FOREVER = "public, max-age=31536000, immutable";
const IMMUTABLE = [
  "/log/tile/1/0/0",
  "/log/tile/2/0/0",
  "/log/tile/2/0/1.p/4",
  "/log/tile/1/1/0.p/1",
  "/log/sth/3",
  "/log/proof/2?tree_size=5",
  "/log/proof/2?tree_size=5&tree_version=1",
  "/log/consistency?from=2&to=5",
];
const CURRENT = ["/log/checkpoint", "/log/sth", "/log/proof/2", "/log/consistency?from=2"];
const REVALIDATED = ["/log/1", "/log/260", ...CURRENT];

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
  await service.server.registry.log.append(
    Array.from({ length: 260 }, (_, i) => ({ event_type: "test.event", payload: { i } })),
  );
});

describe.each([...IMMUTABLE, ...REVALIDATED])("GET %s", (path) => {
  test("has a strong tag and says how it may be kept", async () => {
    const { status, headers } = await service.get(path);
    expect(status).toBe(200);
    expect(headers.get("etag")).toMatch(/^"[A-Za-z0-9_-]{43,64}"$/);
    expect(headers.get("cache-control")).toBe(IMMUTABLE.includes(path) ? FOREVER : "no-cache");
  });

  test("is not sent again to a client that has it", async () => {
    const { headers, bytes } = await service.get(path);
    const etag = headers.get("etag")!;
    for (const tags of [etag, `W/${etag}`, `"other", ${etag}`, `W/"a,b",${etag} , "z"`, "*"])
      for (const method of ["GET", "HEAD"]) {
        const reply = await service.send(method, `/api/v1${path}`, { headers: { "if-none-match": tags } });
        expect(reply.status, tags).toBe(304);
        expect(reply.bytes).toHaveLength(0);
        expect(reply.headers.get("etag")).toBe(etag);
        expect(reply.headers.get("cache-control")).toBe(headers.get("cache-control"));
        expect(reply.headers.get("content-type")).toBeNull();
        expect(reply.headers.get("access-control-allow-origin")).toBe("*");
      }
    for (const tags of ['"other"', etag.slice(1, -1), etag.slice(0, -2), `x${etag.slice(1)}`, ""]) {
      const reply = await service.get(path, { "if-none-match": tags });
      expect(reply.status, tags).toBe(200);
      expect(reply.bytes).toEqual(bytes);
    }
  });

  test("HEAD has the same headers", async () => {
    const get = await service.get(path);
    const head = await service.send("HEAD", `/api/v1${path}`);
    for (const name of ["etag", "cache-control", "content-type", "content-length"])
      expect(head.headers.get(name), name).toBe(get.headers.get(name));
    expect(head.bytes).toHaveLength(0);
  });
});

test("a connection goes on after 304", async () => {
  const { headers } = await service.get("/log/sth/3");
  const request = (close: string) =>
    `GET /api/v1/log/sth/3 HTTP/1.1\r\nhost: x\r\nif-none-match: ${headers.get("etag")}\r\n${close}\r\n`;
  const received = await service.raw(request("") + request("connection: close\r\n"), 500);
  expect(received.match(/HTTP\/1\.1 304 Not Modified\r\n/g)).toHaveLength(2);
});

test("answers that are not the same have not the same tag", async () => {
  const paths = [...IMMUTABLE, ...REVALIDATED];
  const replies = await Promise.all(paths.map((path) => service.get(path)));
  const texts = new Set(replies.map(({ bytes }) => bytes.toString("hex")));
  expect(new Set(replies.map(({ headers }) => headers.get("etag"))).size).toBe(texts.size);
});

test("answers about the current size get another tag when the log has grown; others do not", async () => {
  const tagsOf = async (paths: readonly string[]) =>
    Promise.all(paths.map(async (path) => (await service.get(path)).headers.get("etag")));
  const [current, fixed] = [await tagsOf(CURRENT), await tagsOf(IMMUTABLE)];
  await service.post("/keys/register", registration(newSigner()));
  const now = await tagsOf(CURRENT);
  for (const [i, tag] of now.entries()) expect(tag).not.toBe(current[i]);
  expect(await tagsOf(IMMUTABLE)).toEqual(fixed);
});

test("an entry has another tag once a proof has joined it", async () => {
  const { service, registry } = await startControlled();
  await service.post("/keys/register", registration(newSigner()));
  const before = (await service.get("/log/1")).headers.get("etag")!;
  await registry.log.anchors.replace(registry.writer, 0, undefined, {
    proof: Buffer.from("proof"),
    status: "pending",
    isSettled: false,
  });
  const after = await service.get("/log/1", { "if-none-match": before });
  expect(after.status).toBe(200);
  expect(after.body.ots_proof).toBe(Buffer.from("proof").toString("base64"));
  expect(after.headers.get("etag")).not.toBe(before);
});

test("refusals, lists and writes are not kept", async () => {
  for (const path of ["/log/tile/2/0/1", "/log/tile/2/0/1.p/200", "/log/sth/9999", "/log/9999", "/nothing"]) {
    const reply = await service.get(path, { "if-none-match": "*" });
    expectProblem(reply, 404);
    expect(reply.headers.get("cache-control")).toBe("no-store");
    expect(reply.headers.get("etag")).toBeNull();
  }
  for (const path of ["/log", "/log/head", "/health", "/log/operator-key"])
    expect((await service.get(path, { "if-none-match": "*" })).headers.get("cache-control")).toBe("no-store");
  const written = await service.post("/keys/register", registration(newSigner()), { "if-none-match": "*" });
  expect(written.status).toBe(200);
  expect(written.headers.get("cache-control")).toBe("no-store");
});

test("the OpenAPI document tells tags and 304 wherever they occur, and nowhere else", async () => {
  const { paths } = await service.openApi();
  const kept = Object.keys(paths).filter((path) => paths[path].get?.responses["304"]);
  expect(kept.sort()).toEqual([
    "/api/v1/log/checkpoint",
    "/api/v1/log/consistency",
    "/api/v1/log/proof/{leaf_index}",
    "/api/v1/log/sth",
    "/api/v1/log/sth/{tree_size}",
    "/api/v1/log/tile/{version}/{level}/{index_p}/{width}",
    "/api/v1/log/tile/{version}/{level}/{index}",
    "/api/v1/log/{entry_id}",
    "/api/v1/log/{entry_id}/proof",
    "/api/v1/openapi.json",
    "/tlog/checkpoint",
    "/tlog/tile/{level}/{n1}",
    "/tlog/tile/{level}/{n1}/{n2}",
    "/tlog/vkey",
  ]);
  for (const path of kept) {
    const { responses, parameters } = paths[path].get;
    for (const status of ["200", "304"])
      expect(Object.keys(responses[status].headers)).toEqual(expect.arrayContaining(["ETag", "Cache-Control"]));
    expect(responses["304"].content).toBeUndefined();
    expect(parameters).toContainEqual(expect.objectContaining({ name: "If-None-Match", in: "header" }));
  }
});
