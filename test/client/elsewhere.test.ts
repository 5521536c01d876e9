/**
 * Where a client sends its requests: to the addresses that its user named, and nowhere else, whatever a service answers.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import {
  request as ask,
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from "node:http";
import { request as askSecurely, createServer as createSecureServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Health } from "#cairnlog/engine/contract/service/health.js";
import { connect } from "#cairnlog/server/cli/connection/service.js";
import { Http } from "#cairnlog/server/client/base/http.js";
import { type ClientError, createClient } from "#cairnlog/server/client/index.js";
import { notLeader } from "#cairnlog/server/http/routes/roles/roles.js";
import { fetchText } from "#cairnlog/server/monitor/tlog.js";
import { temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";

interface Seen {
  readonly target: string;
  readonly body: string;
}

const recorders: Recorder[] = [];
afterAll(() => {
  for (const { server } of recorders) server.close().closeAllConnections();
});

/** A server that records what it is asked, and answers by `answer`. */
class Recorder {
  readonly seen: Seen[] = [];
  readonly server: Server;
  readonly #scheme: "http" | "https";
  answer: (request: IncomingMessage, response: ServerResponse) => void = healthy;

  /** @param tls with TLS, key and certificate */
  constructor(tls: ServerOptions | null = null) {
    const receive = async (request: IncomingMessage, response: ServerResponse) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      this.seen.push({ target: `${request.method} ${request.url}`, body: Buffer.concat(chunks).toString() });
      this.answer(request, response);
    };
    this.#scheme = tls ? "https" : "http";
    this.server = tls ? createSecureServer(tls, receive) : createServer(receive);
    recorders.push(this);
  }
  get url(): string {
    return `${this.#scheme}://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
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

const listening = ({ server }: Recorder) => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

const [hostile, honest, third] = [new Recorder(), new Recorder(), new Recorder()];
beforeAll(async () => {
  for (const recorder of [hostile, honest, third]) await listening(recorder);
});
beforeEach(() => {
  for (const one of [hostile, honest, third]) {
    one.seen.length = 0;
    one.answer = healthy;
  }
});

const CERTIFICATE = selfSigned();

/** A key and a certificate for 127.0.0.1. */
function selfSigned(): { readonly key: string; readonly cert: string } {
  const folder = temporaryFolder();
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const options = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const subject = ["-subj", "/CN=node", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", ...options, ...subject, "-keyout", key, "-out", cert], { stdio: "ignore" });
  return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
}

/** A `fetch` that trusts the certificate; that of Node trusts none that is given while it runs. */
const fetcher: typeof fetch = async (input, init) => {
  const url = new URL(String(input));
  const options = {
    method: init?.method ?? "GET",
    headers: init?.headers as OutgoingHttpHeaders,
    agent: false,
  } as const;
  const request =
    url.protocol === "https:" ? askSecurely(url, { ...options, ca: CERTIFICATE.cert }) : ask(url, options);
  request.end(init?.body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const headers = Object.entries(response.headers).map(([name, value]) => [name, `${value}`] as [string, string]);
  return new Response(await text(response), { status: response.statusCode!, headers });
};

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

  describe("of a node that was asked over TLS", () => {
    const secure = new Recorder(CERTIFICATE);
    beforeAll(() => listening(secure));
    beforeEach(() => {
      secure.seen.length = 0;
    });

    test.each([
      ["the same host and port", () => secure.url.replace("https:", "http:")],
      ["another port, which the user named, too", () => honest.url],
      ["another host of that port", () => honest.url.replace("127.0.0.1", "localhost")],
      ["a port that nobody named", () => third.url],
      ["with a name and a password", () => honest.url.replace("//", "//user:password@")],
      ["with a path", () => `${honest.url}/api/v1`],
      ["with TLS and a path", () => `${secure.url}/elsewhere`],
      ["with TLS, a name and a password", () => secure.url.replace("//", "//user:password@")],
      ["with TLS, on a port that nobody named", () => third.url.replace("http:", "https:")],
    ])("%s: is not asked", async (_, leader) => {
      secure.answer = leaderIs(leader());
      const named = [secure.url, honest.url, honest.url.replace("127.0.0.1", "localhost")];
      for (const work of [
        () => new Http(named, fetcher).get(Health, "/a"),
        () => new Http(named, fetcher).post(Health, "/a", {}, { authorization: "Bearer secret" }),
        () => createClient({ server: named, fetch: fetcher }).health(),
      ])
        expect(await refusal(work())).toMatchObject({ code: "not-leader" });
      expect([honest.seen, third.seen]).toEqual([[], []]);
      expect(secure.seen.map(({ target }) => target)).toEqual([
        "GET /api/v1/a",
        "POST /api/v1/a",
        "GET /api/v1/health",
      ]);
    });

    test("and is silent: no other is asked but those with TLS", async () => {
      const [gone, other] = [new Recorder(CERTIFICATE), new Recorder(CERTIFICATE)];
      for (const one of [gone, other]) await listening(one);
      const { url } = gone;
      gone.server.close();
      const headers = { authorization: "Bearer secret" };
      const alone = new Http([url, honest.url], fetcher);
      expect(await refusal(alone.get(Health, "/a", {}, headers))).toMatchObject({ code: "no-answer" });
      await new Http([url, honest.url, other.url], fetcher).get(Health, "/a", {}, headers);
      expect([honest.seen, other.seen.length]).toEqual([[], 1]);
    });

    test("with TLS, is asked if the user named it", async () => {
      const other = new Recorder(CERTIFICATE);
      await listening(other);
      secure.answer = leaderIs(other.url);
      await new Http([secure.url, other.url], fetcher).get(Health, "/a");
      expect(other.seen).toHaveLength(1);
    });
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

test("a session is not shown to a service that has not shown the log of the pinned key, with a question either", async () => {
  const service = new Recorder();
  service.server.listen(0, "127.0.0.1");
  await once(service.server, "listening");
  const operatorKey = newSigner().publicKey;
  const session = {
    token: "a.b.c",
    fingerprint: `sha256:${"0".repeat(64)}`,
    pseudonym: "",
    expires_at: "2099-01-01T00:00:00Z",
  };
  const client = createClient({ server: service.url, operatorKey, session });
  await expect(client.inbox.list().next()).rejects.toThrow();
  expect(service.seen.map(({ target }) => target)).toEqual(["GET /api/v1/log/operator-key"]);
});
