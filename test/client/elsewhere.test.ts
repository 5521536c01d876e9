/**
 * Where a client sends its requests: to the addresses that its user named, and nowhere else, whatever a service answers.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { connect } from "#cairnlog/server/cli/service.js";
import { Http } from "#cairnlog/server/client/http.js";
import { type ClientError, createClient } from "#cairnlog/server/client/index.js";
import { notLeader } from "#cairnlog/server/http/routes/nodes.js";
import { fetchText } from "#cairnlog/server/monitor/tlog.js";
import { Health } from "#cairnlog/server/wire/health.js";

interface Seen {
  readonly target: string;
  readonly body: string;
}

/** A server that records what it is asked, and answers by `answer`. */
class Recorder {
  readonly seen: Seen[] = [];
  readonly server: Server;
  answer: (request: IncomingMessage, response: ServerResponse) => void = healthy;
  constructor() {
    this.server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      this.seen.push({ target: `${request.method} ${request.url}`, body: Buffer.concat(chunks).toString() });
      this.answer(request, response);
    });
  }
  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }
}

const HEALTH = { status: "ok", version: "1.0.0" };
function healthy(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(HEALTH));
}
const leaderIs = (leader: string) => (_: IncomingMessage, response: ServerResponse) => {
  const problem = {
    type: "about:blank",
    title: "Service Unavailable",
    status: 503,
    detail: "Not here.",
    code: "not-leader",
  };
  const headers = { "content-type": "application/problem+json", "cairnlog-leader": leader, "retry-after": "1" };
  response.writeHead(503, headers).end(JSON.stringify(problem));
};

const [hostile, honest, third] = [new Recorder(), new Recorder(), new Recorder()];
beforeAll(async () => {
  for (const { server } of [hostile, honest, third])
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  for (const { server } of [hostile, honest, third]) server.close().closeAllConnections();
});
beforeEach(() => {
  for (const one of [hostile, honest, third]) {
    one.seen.length = 0;
    one.answer = healthy;
  }
});

const refusal = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail("it was answered"),
    (error: unknown) => error as ClientError,
  );

describe("the leader that a node names", () => {
  test("is asked, if the user named it, and everything from then on", async () => {
    hostile.answer = leaderIs(honest.url);
    const http = new Http([`${hostile.url}/`, `${honest.url}/api/v1`], fetch);
    await http.post(Health, "/a", { x: 1 });
    await http.get(Health, "/b");
    expect(hostile.seen).toEqual([{ target: "POST /api/v1/a", body: '{"x":1}' }]);
    expect(honest.seen.map(({ target }) => target)).toEqual(["POST /api/v1/a", "GET /api/v1/b"]);
  });

  test("is asked below the path that the user named", async () => {
    hostile.answer = leaderIs(honest.url);
    await new Http([hostile.url, `${honest.url}/log/`], fetch).get(Health, "/a");
    expect(honest.seen).toEqual([{ target: "GET /log/api/v1/a", body: "" }]);
  });

  const to = (form: string) => form.replaceAll("HOST", honest.url.slice("http://".length));
  test.each([
    ...["http://HOST", "http://HOST/", "http://HOST/latest?x#", "http://HOST?", "http://HOST#", "http://user@HOST"],
    ...[
      "HTTP://HOST",
      "//HOST",
      "HOST",
      "http:HOST",
      "http:\\\\HOST",
      "http://HOST,http://HOST",
      " http://HOST/ ",
      "",
      "null",
    ],
  ])("%j is not asked, if the user did not name it", async (form) => {
    hostile.answer = leaderIs(to(form));
    for (const named of [hostile.url, [hostile.url], [hostile.url, third.url]]) {
      const error = await refusal(createClient({ server: named }).health());
      expect(error).toMatchObject({ code: "not-leader", status: 503, retryAfter: 1 });
      expect(error.message.includes("name it, too")).toBe(form === "http://HOST");
    }
    expect([honest.seen, third.seen]).toEqual([[], []]);
  });

  test.each(["http://HOST/latest?x#", "http://HOST/", "http://user@HOST"])(
    "%j is more than an origin, and is not asked, whatever the user named",
    async (form) => {
      hostile.answer = leaderIs(to(form));
      await refusal(createClient({ server: [hostile.url, honest.url] }).health());
      expect(honest.seen).toEqual([]);
    },
  );

  test("never has a client give up TLS", async () => {
    const asked: string[] = [];
    const pretended: typeof fetch = async (input) => {
      asked.push(new URL(String(input)).origin);
      const problem = { type: "about:blank", title: "x", status: 503, detail: "Not here.", code: "not-leader" };
      return new Response(JSON.stringify(problem), { status: 503, headers: { "cairnlog-leader": "http://b.example" } });
    };
    await refusal(new Http(["https://a.example", "http://b.example"], pretended).get(Health, "/a"));
    expect(asked).toEqual(["https://a.example"]);
  });

  test("is not looked for without end: two nodes that name each other", async () => {
    hostile.answer = leaderIs(honest.url);
    honest.answer = leaderIs(hostile.url);
    const http = new Http([hostile.url, honest.url], fetch);
    expect(await refusal(http.get(Health, "/a"))).toMatchObject({ code: "not-leader" });
    expect(hostile.seen.length + honest.seen.length).toBe(4);
  });

  test("is written by a node as an origin, or not at all", () => {
    expect(notLeader("https://b.log.example").headers["cairnlog-leader"]).toBe("https://b.log.example");
    for (const told of ["https://b.log.example/x", "https://b.log.example/", "b.log.example\r\nx: y", "", null]) {
      const { headers, message } = notLeader(told);
      expect(headers).not.toHaveProperty("cairnlog-leader");
      expect(message).toContain("Which one is not known now.");
    }
  });
});

test("no address is an address of a service", () => {
  for (const server of [[], "ftp://a.example", ["http://a.example", "b.example"]])
    expect(() => createClient({ server })).toThrow(TypeError);
});

describe.each([301, 302, 303, 307, 308])("a redirect, %i", (status) => {
  test.each<[string, () => Promise<unknown>]>([
    ["a read", () => new Http(hostile.url, fetch).get(Health, "/a")],
    ["a write", () => new Http(hostile.url, fetch).post(Health, "/a", {})],
    ["a deletion", () => new Http(hostile.url, fetch).delete(Health, "/a")],
    ["bytes", () => new Http(hostile.url, fetch).bytes("/a")],
    ["what is not below the API", () => new Http(hostile.url, fetch).rootBytes("/tlog/checkpoint")],
    ["a command without a client", () => connect(hostile.url).get("/log")],
    ["a monitor", () => fetchText(`${hostile.url}/tlog/vkey`, fetch)],
  ])("%s does not follow it, even to an address that is named", async (_, work) => {
    hostile.answer = (__, response) => response.writeHead(status, { location: `${honest.url}/` }).end();
    await refusal(work());
    expect(hostile.seen).toHaveLength(1);
    expect(honest.seen).toEqual([]);
  });
});
