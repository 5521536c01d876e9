/** The explorer's files as the service serves them: content, caching, and the content security policy. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../harness.js";

const BUILT = fileURLToPath(new URL("../../../dist/server/explorer/", import.meta.url));
const FOREVER = "public, max-age=31536000, immutable";
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Everything that is sent to a reader who opens every view, compressed. */
const BUDGET_BYTES = 300_000;
/** Everything that is sent to a reader who opens every view of published files, compressed. */
const STATIC_BUDGET_BYTES = 140_000;

let service: TestService;
let page: string;
beforeAll(async () => {
  service = await startTestService();
  page = await (await fetch(`${service.url}/`)).text();
});

/** Addresses that the page loads, relative to its own: a proxy may show it below a path. */
const parts = () => [...page.matchAll(/(?:src|href)="\.([^"]+)"/g)].map((match) => match[1]!);

/** Without `fetch`, which decodes the answer. */
async function raw(path: string, headers: Readonly<Record<string, string>> = {}) {
  const { get } = await import("node:http");
  return new Promise<{ status: number; headers: Record<string, string>; body: Buffer }>((resolve, reject) => {
    get(service.url + path, { headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode!,
          headers: response.headers as Record<string, string>,
          body: Buffer.concat(chunks),
        }),
      );
    }).on("error", reject);
  });
}

test("the page is HTML that has no script and no style of its own in it", () => {
  expect(page).toMatch(/^<!doctype html>/i);
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)/);
  expect(page).not.toMatch(/<style|\sstyle=|\son\w+=|javascript:|https?:\/\//);
  expect(parts().length).toBeGreaterThanOrEqual(3);
  for (const part of parts()) expect(part).toMatch(/^\/explorer\/[\w-]+-[\w-]{8}\.(?:js|css|svg)$/);
});

test("the page and each part are sent under the strict policy", async () => {
  for (const path of ["/", ...parts()]) {
    const { status, headers } = await raw(path);
    expect(status).toBe(200);
    expect(headers["content-security-policy"]).toBe(POLICY);
    expect(headers["x-content-type-options"]).toBe("nosniff");
    expect(headers["referrer-policy"]).toBe("no-referrer");
    expect(headers["cross-origin-opener-policy"]).toBe("same-origin");
    expect(headers.vary).toBe("accept-encoding");
  }
});

test("parts have the types that a browser insists on", async () => {
  const types = { js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
  expect((await raw("/")).headers["content-type"]).toBe("text/html; charset=utf-8");
  for (const [ending, type] of Object.entries(types)) {
    const path = parts().find((part) => part.endsWith(`.${ending}`))!;
    expect((await raw(path)).headers["content-type"]).toContain(type);
  }
});

describe("encodings", () => {
  test("the smallest encoding that the client accepts is sent, and all give the same file", async () => {
    for (const path of ["/", parts().find((part) => part.endsWith(".js"))!]) {
      const plain = await raw(path);
      const gzip = await raw(path, { "accept-encoding": "gzip, deflate" });
      const brotli = await raw(path, { "accept-encoding": "gzip, deflate, br, zstd" });
      expect(plain.headers["content-encoding"]).toBeUndefined();
      expect(gzip.headers["content-encoding"]).toBe("gzip");
      expect(brotli.headers["content-encoding"]).toBe("br");
      expect(gunzipSync(gzip.body).equals(plain.body)).toBe(true);
      expect(brotliDecompressSync(brotli.body).equals(plain.body)).toBe(true);
      expect(brotli.body.length).toBeLessThan(gzip.body.length);
      expect(new Set([plain, gzip, brotli].map(({ headers }) => headers.etag)).size).toBe(3);
    }
  });

  test("one that the client refuses is not sent", async () => {
    const { headers } = await raw("/", { "accept-encoding": "br;q=0, GZIP;q=0.5" });
    expect(headers["content-encoding"]).toBe("gzip");
    expect((await raw("/", { "accept-encoding": "br; q=0.0, identity" })).headers["content-encoding"]).toBeUndefined();
    const chosen = async (accepted: string) =>
      (await raw("/", { "accept-encoding": accepted })).headers["content-encoding"];
    for (const accepted of ["br;q=0.5", "gzip;q=1, br;q=0.01", "br;q=1", " br ", "q=0, br"])
      expect(await chosen(accepted), accepted).toBe("br");
    for (const accepted of ["br;q=0 , gzip", "br; q=0.000,gzip", "abr, gzip"])
      expect(await chosen(accepted), accepted).toBe("gzip");
  });
});

describe("keeping", () => {
  test("the page is asked for again by its tag", async () => {
    const first = await raw("/", { "accept-encoding": "br" });
    expect(first.headers["cache-control"]).toBe("no-cache");
    const again = await raw("/", { "accept-encoding": "br", "if-none-match": first.headers.etag! });
    expect(again.status).toBe(304);
    expect(again.body).toHaveLength(0);
    expect(again.headers["content-security-policy"]).toBe(POLICY);
    expect((await raw("/", { "if-none-match": '"another"' })).status).toBe(200);
  });

  test("files with a hash in their names are cached for ever", async () => {
    for (const part of parts()) expect((await raw(part)).headers["cache-control"]).toBe(FOREVER);
  });

  test("HEAD has the same headers and no body", async () => {
    const [get, head] = [await fetch(`${service.url}/`), await fetch(`${service.url}/`, { method: "HEAD" })];
    for (const name of ["etag", "content-encoding", "content-length", "content-type", "cache-control"])
      expect(head.headers.get(name), name).toBe(get.headers.get(name));
    expect(await head.text()).toBe("");
  });
});

test("nothing else is served below /explorer/, in any spelling of the path", async () => {
  for (const path of [
    "index.html",
    "..%2findex.html",

    "..%2f..%2fhttp%2fapp.js",
    "nothing.js",
    "__proto__",
  ]) {
    const { status, body } = await raw(`/explorer/${path}`);
    expect(status, path).toBe(404);
    expect(JSON.parse(body.toString())).toMatchObject({ code: "not-found" });
  }
  expectProblem(await service.send("POST", "/"), 405, "method-not-allowed");
});

test("reading it does not count against the limit of the API, which its answers tell", async () => {
  const limited = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_GENERAL: "2" });
  for (let i = 0; i < 5; i++) {
    const response = await fetch(`${limited.url}/`);
    expect(response.status).toBe(200);
    expect(response.headers.get("ratelimit-remaining")).toBe("2");
  }
});

test("SERVICE_EXPLORER=off leaves it out", async () => {
  const without = await startTestService({ SERVICE_EXPLORER: "off" });
  expectProblem(await without.send("GET", "/"), 404, "not-found");
  expectProblem(await without.send("GET", parts()[0]!), 404, "not-found");
  expect((await without.get("/health")).status).toBe(200);
});

test("it is not in the API's description", async () => {
  const paths = Object.keys((await service.openApi()).paths);
  expect(paths.filter((path) => path === "/" || path.startsWith("/explorer"))).toEqual([]);
});

test("the page of published files has the same policy in it, as far as a page can say it, and no view that needs a service", () => {
  const html = brotliDecompressSync(readFileSync(join(BUILT, "static.html.br"))).toString();
  const [, said = ""] = /<head>\s*<meta http-equiv="Content-Security-Policy" content="([^"]+)">/.exec(html)!;
  expect(said.split("; ").sort()).toEqual(POLICY.split("; ").slice(0, -1).sort());
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:|https?:\/\/|"\//);
  const parts: string[] = JSON.parse(readFileSync(join(BUILT, "static.json"), "utf8"));
  for (const [, name] of html.matchAll(/(?:src|href)="\.\/explorer\/([^"]+)"/g)) expect(parts).toContain(name);
  const size = parts.reduce((sum, name) => sum + statSync(join(BUILT, "explorer", `${name}.br`)).size, 0);
  expect(size).toBeLessThan(STATIC_BUDGET_BYTES);
  expect(parts.filter((name) => /^(?:operator|search|uPlot|cytoscape|index)/.test(name))).toEqual([]);
});

test("all of it together, compressed, keeps to its budget", () => {
  const folders = [BUILT, join(BUILT, "explorer")];
  const compressed = folders.flatMap((folder) =>
    readdirSync(folder).flatMap((name) => (name.endsWith(".br") ? [statSync(join(folder, name)).size] : [])),
  );
  expect(compressed.length).toBeGreaterThan(8);
  expect(compressed.reduce((sum, size) => sum + size, 0)).toBeLessThan(BUDGET_BYTES);
});
