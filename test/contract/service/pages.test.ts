/**
 * Which pages may write, at every operation that writes, over both HTTP libraries. The requests are bytes: no client of ours
 * would send most of them.
 */
import { connect } from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import type { TransportName } from "#cairnlog/server/http/transport/transport.js";
import { startTestService, type TestService } from "../../server/harness.js";
import { newSigner, registration } from "../../server/signers.js";
import { type Operation, operationsOf } from "../tour.js";

const PUBLIC = "https://log.example";
const ALLOWED = "https://app.example";
const SETTINGS = {
  SERVICE_PUBLIC_URL: `${PUBLIC},https://old.example:8443`,
  SERVICE_ALLOWED_ORIGINS: ALLOWED,
  SERVICE_ALLOWED_HOSTS: "log.internal,[fd00::1]",
};
const JSON_BODY = ["Content-Type: application/json"];

interface Answered {
  readonly status: number;
  readonly code: string | undefined;
  readonly headers: Headers;
}

/** The first answer to `head` and `body`, which are sent as they are. */
function answerTo(port: number, head: string, body: string): Promise<Answered> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(port, "127.0.0.1");
    socket.on("error", reject).on("close", () => reject(new Error(`no answer to ${head}: ${received}`)));
    socket.on("data", (data) => {
      received += data.toString("latin1");
      const [start = "", ...rest] = received.split("\r\n\r\n");
      if (!rest.length) return;
      const [status = "", ...lines] = start.split("\r\n");
      const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/, 2) as [string, string]));
      const text = rest.join("\r\n\r\n");
      if (text.length < Number(headers.get("content-length") ?? 0)) return;
      const isProblem = headers.get("content-type") === "application/problem+json" && text !== "";
      socket.removeAllListeners("close").destroy();
      resolve({ status: Number(status.split(" ")[1]), code: isProblem ? JSON.parse(text).code : undefined, headers });
    });
    socket.write(`${head}\r\n\r\n${body}`);
  });
}

describe.each<TransportName>(["uws", "node"])("over %s", (transport) => {
  let service: TestService;
  let operations: Operation[];
  let port: number;
  beforeAll(async () => {
    service = await startTestService({ ...SETTINGS, SERVICE_TRANSPORT: transport });
    operations = operationsOf(await service.openApi());
    port = service.server.address.port;
  });
  const writes = () => operations.filter(({ method }) => method === "POST" || method === "DELETE");
  const pathOf = ({ path }: Pick<Operation, "path">) => path.replaceAll(/\{(\w+)\}/g, "99999");

  /** @param lines without a `Host` line, the service's own is sent */
  function ask(method: string, path: string, lines: readonly string[], body = ""): Promise<Answered> {
    const hosts = lines.some((line) => /^host:/i.test(line)) ? [] : [`Host: 127.0.0.1:${port}`];
    const length = body || method === "POST" ? [`Content-Length: ${body.length}`] : [];
    return answerTo(port, [`${method} ${path} HTTP/1.1`, ...hosts, ...lines, ...length].join("\r\n"), body);
  }

  /** What every write answers to these lines: its status and code, if that is one of these rules. */
  async function refusals(lines: readonly string[], body?: string): Promise<Set<string>> {
    const seen = new Set<string>();
    for (const { method, path } of writes()) {
      const { status, code } = await ask(method, pathOf({ path }), lines, method === "DELETE" ? "" : body);
      seen.add(
        /^(foreign-origin|misdirected-request|unsupported-media-type)$/.test(code ?? "") ? `${status} ${code}` : "",
      );
    }
    return seen;
  }

  test("there are writes, and each says that it may refuse these", () => {
    expect(writes().length).toBeGreaterThan(30);
    for (const { id, method, definition } of writes())
      expect(Object.keys(definition.responses), id).toEqual(
        expect.arrayContaining(method === "POST" ? ["403", "415", "421"] : ["403", "421"]),
      );
  });

  const FOREIGN: readonly (readonly string[])[] = [
    ["Origin: https://evil.example"],
    ["Origin: null"],
    ["Origin: http://log.example"],
    ["Origin: https://log.example:444"],
    ["Origin: https://log.example.evil.example"],
    ["Origin: https://LOG.example"],
    ["Origin: https://log.example/"],
    ["Origin: http://127.0.0.1:1"],
    ["Origin: https://evil.example", "Sec-Fetch-Site: same-origin"],
    ["Origin: https://evil.example", "Origin: https://log.example"],
    ["Sec-Fetch-Site: cross-site"],
  ];
  test.each(FOREIGN)("%s is a foreign page, everywhere", async (...lines) => {
    expect(await refusals([...lines, ...JSON_BODY], "{}")).toEqual(new Set(["403 foreign-origin"]));
  });

  const OWN = (): readonly (readonly string[])[] => [
    [],
    [`Origin: ${PUBLIC}`],
    ["Origin: https://old.example:8443"],
    [`Origin: ${ALLOWED}`, "Sec-Fetch-Site: cross-site"],
    [`Origin: http://localhost:${port}`],
    [`Origin: http://[::1]:${port}`, "Sec-Fetch-Site: same-origin"],
    ["Sec-Fetch-Site: same-site"],
    ["Sec-Fetch-Site: none"],
  ];
  test("pages of the service and of its operator's choice, and what is no page, may write everywhere", async () => {
    for (const lines of OWN())
      expect(await refusals([...lines, ...JSON_BODY], "{}"), lines.join()).toEqual(new Set([""]));
  });

  test("a page's body is JSON, and says so", async () => {
    const own = `Origin: ${PUBLIC}`;
    const posts = operations.filter(({ method }) => method === "POST");
    const types = [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data",
      "application/jsonx",
      "",
      null,
    ];
    for (const { path } of posts)
      for (const type of types) {
        const lines = type === null ? [own] : [own, `Content-Type: ${type}`];
        expect(await ask("POST", pathOf({ path }), lines, "{}"), path).toMatchObject({
          status: 415,
          code: "unsupported-media-type",
        });
      }
    const valid = JSON.stringify(registration(newSigner()));
    for (const type of ["Application/JSON", "application/json;charset=utf-8", "application/json ; a=b"])
      expect((await ask("POST", "/api/v1/verify", [own, `Content-Type: ${type}`], "{}")).code).not.toBe(
        "unsupported-media-type",
      );
    // Without a page, and without a body, the type does not matter.
    expect((await ask("POST", "/api/v1/keys/register", ["Content-Type: text/plain"], valid)).status).toBe(200);
    expect((await ask("POST", "/api/v1/auth/renew", [own])).code).toBe("unauthenticated");
  });

  test.each([
    "evil.example",
    "evil.example:80",
    "localhost.evil.example",
    "log.example.evil.example",
    "0.0.0.0",
    "127.0.0.2",
    "",
    "x",
  ])("a write to the host %j is misdirected, everywhere", async (host) => {
    for (const page of [[], [`Origin: ${PUBLIC}`], [`Origin: http://${host}`]])
      expect(await refusals([`Host: ${host}`, ...page, ...JSON_BODY], "{}")).toEqual(
        new Set(["421 misdirected-request"]),
      );
  });

  test.each([
    ...[
      "127.0.0.1",
      "localhost:9",
      "LOCALHOST",
      "[::1]:8080",
      "[::1]",
      "log.example",
      "log.example:443",
      "Log.Example:8080",
    ],
    ...["old.example", "log.internal:8080", "[fd00::1]:8080"],
  ])("the host %s is the service's", async (host) => {
    expect(await refusals([`Host: ${host}`, ...JSON_BODY], "{}")).toEqual(new Set([""]));
    // And is so again after one that is not.
    expect((await ask("POST", "/api/v1/verify", ["Host: evil.example"], "{}")).status).toBe(421);
    expect((await ask("POST", "/api/v1/verify", [`Host: ${host}`], "{}")).status).toBe(422);
  });

  test("nothing that was refused is done", async () => {
    const before = await service.entryCount();
    const body = JSON.stringify(registration(newSigner()));
    for (const lines of [["Origin: https://evil.example", ...JSON_BODY], ["Host: evil.example"], [`Origin: ${PUBLIC}`]])
      expect((await ask("POST", "/api/v1/keys/register", lines, body)).status).toBeGreaterThanOrEqual(400);
    expect(await service.entryCount()).toBe(before);
    expect((await ask("POST", "/api/v1/keys/register", [`Origin: ${ALLOWED}`, ...JSON_BODY], body)).status).toBe(200);
    expect(await service.entryCount()).toBe(before + 1);
  });

  test("reads are open to every page, by every name", async () => {
    const reads = operations.filter(({ method, path }) => method === "GET" && !path.startsWith("/tlog/"));
    for (const { path } of reads) {
      const plain = await ask("GET", pathOf({ path }), []);
      const lines = ["Host: evil.example", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site"];
      const foreign = await ask("GET", pathOf({ path }), lines);
      expect([foreign.status, foreign.code], path).toEqual([plain.status, plain.code]);
      expect(foreign.headers.get("access-control-allow-origin"), path).toBe("*");
    }
  });

  test("an answer to a write is seen by pages that may write, and by no other", async () => {
    for (const { method, path } of writes()) {
      const seen = async (origin: string) => {
        const { headers } = await ask(method, pathOf({ path }), [`Origin: ${origin}`]);
        return [headers.get("access-control-allow-origin"), headers.get("vary")];
      };
      expect(await seen(ALLOWED), path).toEqual([ALLOWED, "origin"]);
      expect(await seen(PUBLIC), path).toEqual([PUBLIC, "origin"]);
      expect(await seen("https://evil.example"), path).toEqual([null, null]);
      expect((await ask(method, pathOf({ path }), [])).headers.get("access-control-allow-origin"), path).toBeNull();
    }
  });

  test("a preflight says what a page may send", async () => {
    const paths = new Map<string, string[]>();
    for (const { method, path } of operations) paths.set(path, [...(paths.get(path) ?? []), method]);
    for (const [path, methods] of paths) {
      const offered = async (origin: string) => {
        const wants = [
          "Access-Control-Request-Method: POST",
          "Access-Control-Request-Headers: authorization,content-type",
        ];
        const { status, headers } = await ask("OPTIONS", pathOf({ path }), [`Origin: ${origin}`, ...wants]);
        if (status === 404) return null;
        expect(status).toBe(204);
        const words = ["origin", "methods", "headers"].map((name) => headers.get(`access-control-allow-${name}`));
        return [words[0], words[1]?.split(", ") ?? null, words[2]];
      };
      const isRead = methods.includes("GET");
      const read = isRead ? ["GET", "HEAD"] : [];
      const ofForeign = await offered("https://evil.example");
      // `99999` may be no valid value of the path.
      if (ofForeign === null) continue;
      expect(ofForeign, path).toEqual(isRead ? ["*", read, "*, authorization"] : [null, null, null]);
      const [origin, allowed, headers] = (await offered(ALLOWED))!;
      expect([origin, headers], path).toEqual([isRead ? "*" : ALLOWED, "*, authorization"]);
      expect(new Set(allowed), path).toEqual(new Set([...read, ...methods]));
    }
  });

  test("two Host lines are 400, whatever is asked, and end the connection", async () => {
    const two = ["Host: localhost", "Host: localhost"];
    for (const { method, path } of operations) {
      const { status, headers } = await ask(method, pathOf({ path }), two, method === "POST" ? "{}" : "");
      expect([status, headers.get("connection")], path).toEqual([400, "close"]);
    }
    for (const [method, path] of [
      ["OPTIONS", "/api/v1/health"],
      ["GET", "/nowhere"],
      ["BREW", "/"],
    ] as const)
      expect((await ask(method, path, two)).status).toBe(400);
  });
});
