/** The common rules of all routes: problem documents, methods, request ids, CORS, bodies, queries. */
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { newSigner, registration } from "../../server/signers.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ SERVICE_MAX_BODY_BYTES: "4096" });
});

describe("paths and methods", () => {
  test.each(["/api/v1", "/api/v1/nothing", "/api/v2/health", "/api/v1/log/entries/x", "/api/v1/keys/", "//"])(
    "GET %s is 404",
    async (path) => {
      const reply = await service.send("GET", path);
      expectProblem(reply, 404, "not-found");
    },
  );

  test("a part of a path means the same percent-encoded", async () => {
    // A service of its own, because the other tests need an empty log.
    const own = await startTestService();
    const signer = newSigner();
    await own.post("/keys/register", registration(signer));
    const plain = await own.get(`/keys/${signer.fingerprint}/status`);
    expect(plain.body).toMatchObject({ fingerprint: signer.fingerprint });
    for (const encoded of ["%3A", "%3a"]) {
      const reply = await own.get(`/keys/${signer.fingerprint.replace(":", encoded)}/status`);
      expect([reply.status, reply.body]).toEqual([200, plain.body]);
    }
    expectProblem(await own.get(`/keys/${signer.fingerprint.replace(":", "%3")}/status`), 404, "not-found");
  });

  test("removed routes are not there", async () => {
    for (const method of ["GET", "POST", "PATCH", "DELETE"])
      expectProblem(await service.send(method, "/api/v1/users/7/credentials"), 404);
    expectProblem(await service.get("/credentials/user/7/fingerprints"), 404);
    expectProblem(await service.post("/log/entries"), 404);
  });

  test("another method is 405 and says which are allowed", async () => {
    const reply = await service.send("DELETE", "/api/v1/log");
    expectProblem(reply, 405, "method-not-allowed");
    expect(reply.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
    const register = await service.get("/attestations");
    expectProblem(register, 405, "method-not-allowed");
    expect(register.headers.get("allow")).toBe("POST, OPTIONS");
    expectProblem(await service.send("PATCH", "/api/v1/health"), 405);
  });

  test("HEAD is GET without the body", async () => {
    const get = await service.get("/log");
    const head = await service.send("HEAD", "/api/v1/log");
    expect(head.status).toBe(200);
    expect(head.text).toBe("");
    expect(head.headers.get("content-length")).toBe(`${Buffer.byteLength(get.text)}`);
    expect((await service.send("HEAD", "/api/v1/log/sth")).status).toBe(404);
  });

  test("a fixed part of a path is never read as a parameter", async () => {
    expect((await service.get("/log/head")).body).toEqual({ head: null, entry_count: 0 });
    expect((await service.get("/log/sth")).body.detail).toBe("The log is empty; it has no tree head yet.");
    expectProblem(await service.get("/keys/search"), 422);
  });
});

describe("request ids", () => {
  test("a sane one comes back", async () => {
    const reply = await service.get("/health", { "x-request-id": "Trace_1.a-B" });
    expect(reply.headers.get("x-request-id")).toBe("Trace_1.a-B");
  });

  test.each(["", "a b", "x".repeat(129), "<script>", "é"])("%j is replaced", async (id) => {
    const reply = await service.get("/health", { "x-request-id": id });
    expect(reply.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("refusals carry one too", async () => {
    expect((await service.get("/nothing")).headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe("CORS", () => {
  test("every origin may read", async () => {
    for (const path of ["/log", "/log/sth", "/nothing"]) {
      const reply = await service.get(path, { origin: "https://reader.example" });
      expect(reply.headers.get("access-control-allow-origin")).toBe("*");
    }
  });

  test("no other origin may write", async () => {
    const reply = await service.post("/keys/register", {}, { origin: "https://reader.example" });
    expect(reply.headers.get("access-control-allow-origin")).toBeNull();
    const refused = await service.get("/keys/register", { origin: "https://reader.example" });
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([405, null]);
    const preflight = await service.send("OPTIONS", "/api/v1/keys/register", {
      headers: { origin: "https://reader.example", "access-control-request-method": "POST" },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-methods")).toBeNull();
  });

  test("a preflight for GET passes", async () => {
    const reply = await service.send("OPTIONS", "/api/v1/log", { headers: { origin: "https://reader.example" } });
    expect(reply.status).toBe(204);
    expect(reply.headers.get("access-control-allow-origin")).toBe("*");
    expect(reply.headers.get("access-control-allow-methods")).toBe("GET, HEAD");
  });
});

describe("bodies", () => {
  const malformed: [string, string | Uint8Array][] = [
    ["nothing", ""],
    ["half an object", '{"payload":'],
    ["a bare word", "payload"],
    ["a trailing comma", '{"payload":{},}'],
    ["invalid UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ["a byte order mark", "\ufeff{}"],
    ["a NUL byte", "{}\0"],
  ];
  test.each(malformed)("%s is 400", async (_, body) => {
    expectProblem(await service.post("/keys/register", body), 400, "malformed-json");
  });

  test.each(["[]", "null", '"text"', "12", "true"])("%s is not an object: 400", async (body) => {
    expectProblem(await service.post("/keys/register", body), 400, "not-an-object");
  });

  const notIJson: [string, string][] = [
    ["duplicate members", '{"payload":{"a":1,"a":2}}'],
    ["half a surrogate pair", '{"payload":"\\ud800"}'],
    ["a number beyond doubles", '{"payload":1e400}'],
    ["a number no double holds", '{"payload":12345678901234567890}'],
    ["bottomless nesting", `{"payload":${"[".repeat(1000)}${"]".repeat(1000)}}`],
    ["__proto__", '{"__proto__":{}}'],
  ];
  test.each(notIJson)("%s is 422", async (_, body) => {
    const reply = await service.post("/keys/register", body);
    expectProblem(reply, 422, "not-i-json");
    expect(reply.body.errors).toHaveLength(1);
  });

  test("all that is missing or wrong is named", async () => {
    const empty = await service.post("/keys/register", {});
    expectProblem(empty, 422, "invalid-input");
    expect(empty.body.errors).toEqual([{ path: "/payload", message: "It is missing." }]);
    const wrong = await service.post("/keys/register", { payload: { public_key: 1, key_algorithm: "dsa" } });
    expect(wrong.body.errors).toEqual(
      expect.arrayContaining([
        { path: "/payload/pseudonym", message: "It is missing." },
        { path: "/payload/public_key", message: "It must be a string." },
        { path: "/payload/key_algorithm", message: "It must be one of ed25519, ecdsa-p256, rsa-2048." },
      ]),
    );
  });

  test("faults found by the engine are reported with paths from the body's root", async () => {
    const reply = await service.post("/keys/register", registration(newSigner(), "a\u0000b"));
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors[0].path).toBe("/payload/pseudonym");
  });

  test("U+FFFF and other noncharacters are taken, raw and escaped, as docs/spec §12.1 says", async () => {
    for (const text of ["\uffff", "\\uffff", "\ufdd0", "\\ufdd0", "\u{1fffe}", "\\ud83f\\udffe"]) {
      const body = JSON.stringify(registration(newSigner(), "NAME")).replace("NAME", text);
      const reply = await service.post("/keys/register", body);
      expect(reply.status, reply.text).toBe(200);
      expect(reply.body.pseudonym).toBe(JSON.parse(`"${text}"`));
    }
  });

  test("unknown members are ignored, and so is the content type", async () => {
    const body = { ...registration(newSigner(), "Bob", { shoe_size: 44 }), more: [] };
    const reply = await service.post("/keys/register", body, { "content-type": "text/plain" });
    expect(reply.status).toBe(200);
  });

  test("a body beyond the limit is 413, for any stated length", async () => {
    expectProblem(await service.post("/keys/register", "x".repeat(4097)), 413, "payload-too-large");
    expectProblem(await service.post("/keys/register", "x".repeat(3_000_000)), 413, "payload-too-large");
    const atLimit = JSON.stringify(registration(newSigner(), "Carol")).padEnd(4096);
    expect((await service.post("/keys/register", atLimit)).status).toBe(200);
    const chunk = `1000\r\n${"x".repeat(4096)}\r\n`;
    const head = "POST /api/v1/keys/register HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    expect(await service.raw(`${head}${chunk}${chunk}0\r\n\r\n`)).toMatch(/^HTTP\/1.1 413 /);
  });

  test("a chunked body is a body", async () => {
    const body = JSON.stringify(registration(newSigner(), "Dave"));
    const chunks = [body.slice(0, 10), body.slice(10)].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`);
    const head = "POST /api/v1/keys/register HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    expect(await service.raw(`${head}${chunks.join("")}0\r\n\r\n`)).toMatch(/^HTTP\/1.1 200 /);
  });
});

describe("queries", () => {
  const wrong = ["0", "-1", "+1", "01", "1.0", "1e3", "0x1", "", " 1", "9007199254740993", "NaN", "1&page=2", "%00"];
  test.each(wrong)("page=%s is 422", async (page) => {
    const reply = await service.get(`/log?page=${page}`);
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors[0].path).toBe("/page");
  });

  test.each(["0", "201", "-5", "many"])("per_page=%s is 422", async (perPage) => {
    expectProblem(await service.get(`/log?per_page=${perPage}`), 422, "invalid-input");
    expectProblem(await service.get(`/keys?per_page=${perPage}`), 422, "invalid-input");
  });

  test("the greatest page is an empty page", async () => {
    const reply = await service.get("/log?page=9007199254740991&per_page=200");
    expect(reply.body).toMatchObject({ entries: [], page: 9007199254740991, per_page: 200 });
  });

  test("unknown parameters are ignored", async () => {
    expect((await service.get("/log?colour=blue&&=&x")).status).toBe(200);
  });
});
