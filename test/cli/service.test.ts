/** Requests of commands that need no client: the address that they go to, and what is made of the answers. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { readNumber } from "#cairnlog/server/cli/connection/connection.js";
import { connect, ServiceError } from "#cairnlog/server/cli/connection/service.js";
import { UsageError } from "#cairnlog/server/cli/line/usage.js";

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("the address of a service", () => {
  test.each([
    ["", "/api/v1/log/sth"],
    ["/", "/api/v1/log/sth"],
    ["//", "/api/v1/log/sth"],
    ["/api/v1", "/api/v1/log/sth"],
    ["/api/v1/", "/api/v1/log/sth"],
    ["/mirror", "/mirror/api/v1/log/sth"],
    ["/mirror/", "/mirror/api/v1/log/sth"],
    ["//mirror", "//mirror/api/v1/log/sth"],
    ["/api/v1/mirror", "/api/v1/mirror/api/v1/log/sth"],
  ])("may end with %j", async (end, asked) => {
    const paths: string[] = [];
    const url = await serve((request, response) => {
      paths.push(`${request.method} ${request.url}`);
      response.end('{"tree_size": 7}');
    });
    expect(await connect(url + end).get("/log/sth")).toEqual({ tree_size: 7 });
    expect(paths).toEqual([`GET ${asked}`]);
  });

  test.each(["", "nowhere", "http://", "xhttp://127.0.0.1", "file:///tmp", "http:/127.0.0.1"])("is not %j", (text) => {
    expect(() => connect(text)).toThrow(UsageError);
    expect(() => connect(text)).toThrow(`--server must be an address such as http://127.0.0.1:8080, not ${text}`);
  });

  // As a browser shows them; fetch refuses a user.
  test.each(["http://127.0.0.1/#/entry/5", "http://127.0.0.1/?entry=5", "http://u:p@127.0.0.1", "http://u@127.0.0.1"])(
    "is not %s",
    (text) => {
      const refused = {
        name: "Error",
        message: expect.stringMatching(/^--server (?:ends before|has a user or password)/),
      };
      expect(() => connect(text)).toThrow(expect.objectContaining(refused));
    },
  );
});

describe("an answer that is none is an error with a sentence", () => {
  test.each([
    [500, '{"detail": "It is broken."}', "It is broken."],
    [500, "<h1>It is broken</h1>", "URL answered 500 without saying why."],
    [404, "", "URL answered 404 without saying why."],
    [502, "{}", "URL answered 502 without saying why."],
    [503, "null", "URL answered 503 without saying why."],
    [200, "<h1>It works</h1>", "URL answered 200 without saying why."],
    [200, "null", "URL answered 200 without saying why."],
  ])("%i %s", async (status, body, sentence) => {
    const url = await serve((_, response) => response.writeHead(status).end(body));
    const error = await connect(url)
      .get("/x")
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ServiceError);
    expect((error as Error).message).toBe(sentence.replace("URL", url));
  });

  test("also when the connection ends", async () => {
    const url = await serve((_, response) => response.destroy());
    await expect(connect(url).get("/x")).rejects.toThrow(
      new ServiceError(`No service answers at ${url}. Is it running?`),
    );
  });
});

describe("a number", () => {
  test.each([
    ["0", 0],
    ["007", 7],
    ["999999999999999", 999_999_999_999_999],
  ])("may be %s", (text, value) => {
    expect(readNumber(text, "LEAF")).toBe(value);
  });

  test.each([undefined, "", "-1", "+1", " 1", "1 ", "1\n", "1.5", "1e3", "0x10", "one", "1000000000000000"])(
    "is not %j",
    (text) => {
      expect(() => readNumber(text, "LEAF")).toThrow(new UsageError("LEAF must be a whole number"));
    },
  );
});
