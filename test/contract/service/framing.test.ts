/**
 * The end of a request, where two readers could disagree. Another request follows each request, as an attacker would
 * smuggle it past a proxy. It must never be answered.
 */
import { connect } from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import { chooseTransport } from "#cairnlog/server/http/servers/choose.js";
import { startTestService, type TestService, WANTED_TRANSPORT } from "../../server/harness.js";
import { newSigner, registration } from "../../server/signers.js";

const OVER_UWS = (await chooseTransport(WANTED_TRANSPORT)).transport.name === "uws";
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

const SMUGGLED = "GET /api/v1/health HTTP/1.1\r\nHost: x\r\nX-Request-Id: smuggled\r\n\r\n";
const post = (...headers: string[]) =>
  `${["POST /api/v1/keys/register HTTP/1.1", "Host: localhost", ...headers].join("\r\n")}\r\n\r\n`;
const get = (...headers: string[]) => `${["GET /livez HTTP/1.1", "Host: x", ...headers].join("\r\n")}\r\n\r\n`;

/** Sends `parts` one after the other. Returns everything that is received until the service closes the connection. */
function untilClosed(parts: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    let received = "";
    const socket = connect(service.server.address.port, "127.0.0.1").setNoDelay();
    socket
      .on("data", (data) => {
        received += data.toString("latin1");
      })
      .on("error", () => {})
      .on("close", () => resolve(received));
    let at = 0;
    const next = () => {
      if (at < parts.length && !socket.destroyed) socket.write(parts[at++]!, () => setTimeout(next, 20));
    };
    next();
  });
}

const together = (request: string) => [request + SMUGGLED];
const apart = (request: string) => [request, SMUGGLED];
/** The head of the answer that ends a connection. */
const last = async (request: string) => (await untilClosed([request])).split("\r\n\r\n")[0]!;

describe("a length that can be read in two ways is 400, and the end of its connection", () => {
  const body = "{}";
  const chunks = `2\r\n${body}\r\n0\r\n\r\n`;
  const requests: [string, string][] = [
    ["two lengths", post("Content-Length: 2", "Content-Length: 4") + body],
    ["two lengths, the first the longer", post("Content-Length: 90", "Content-Length: 2") + body],
    ["the same length twice", post("Content-Length: 2", "Content-Length: 2") + body],
    ["no number, then one", post("Content-Length:", "Content-Length: 2") + body],
    ["no number", post("Content-Length:") + body],
    ["two lengths on a GET", get("Content-Length: 2", "Content-Length: 4") + body],
    ["a coding that is none", post("Transfer-Encoding: xchunked") + chunks],
    ["a coding that chunks do not end", post("Transfer-Encoding: chunked, identity") + chunks],
    ["two codings", post("Transfer-Encoding: gzip, chunked") + chunks],
    ["chunks twice", post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + chunks],
    ["chunks, and something else", post("Transfer-Encoding: chunked", "Transfer-Encoding: identity") + chunks],
    ["chunks on a GET, badly", get("Transfer-Encoding: cow") + chunks],
  ];
  test.each(requests)("%s", async (_, request) => {
    expect(await last(request)).toMatch(/^HTTP\/1\.1 400 .*\r\nconnection: close/is);
    const before = await service.entryCount();
    for (const parts of [together(request), apart(request)]) expect(await untilClosed(parts)).not.toContain("smuggled");
    expect(await service.entryCount()).toBe(before);
  });
});

describe("refusals by the library itself", () => {
  const requests: [string, string][] = [
    ["a length and chunks", `${post("Content-Length: 2", "Transfer-Encoding: chunked")}0\r\n\r\n`],
    ["chunks and a length", `${post("Transfer-Encoding: chunked", "Content-Length: 2")}0\r\n\r\n`],
    ["lengths in one line", `${post("Content-Length: 2, 2")}{}`],
    ["a signed length", `${post("Content-Length: +2")}{}`],
    ["a negative length", `${post("Content-Length: -2")}{}`],
    ["a length in hexadecimal", `${post("Content-Length: 0x2")}{}`],
    ["a length beyond 64 bits", `${post("Content-Length: 18446744073709551618")}{}`],
    ["identity", `${post("Transfer-Encoding: identity")}{}`],
    ["a chunk of negative size", `${post("Transfer-Encoding: chunked")}-2\r\n{}\r\n0\r\n\r\n`],
    ["a chunk size with a prefix", `${post("Transfer-Encoding: chunked")}0x2\r\n{}\r\n0\r\n\r\n`],
    ["a chunk size beyond 64 bits", `${post("Transfer-Encoding: chunked")}10000000000000002\r\n{}\r\n0\r\n\r\n`],
    ["HTTP/1.0", "GET /livez HTTP/1.0\r\nHost: x\r\n\r\n"],
    ["HTTP/1.0 with chunks", post("Transfer-Encoding: chunked").replace("1.1", "1.0")],
    ["HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["HTTP/0.9", "GET /livez\r\n"],
    ["lines without CR", "GET /livez HTTP/1.1\nHost: x\n\n"],
    ["an address instead of a path", "GET http://x/livez HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["CONNECT", "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["TLS", "\x16\x03\x01\0\xc8\x01\0\0\xc4\x03\x03"],
  ];
  test.each(requests)("%s", async (_, request) => {
    for (const parts of [together(request), apart(request)]) {
      const received = await untilClosed(parts);
      expect(received).toMatch(/^HTTP\/1\.1 (400|505) /);
      expect(received).not.toContain("smuggled");
    }
  });
});

/** The HTTP library answers by itself, or uWebSockets.js waits for more; the service is not asked. */
describe("docs/spec §12.2: requests that are not read", () => {
  const chunked = post("Transfer-Encoding: chunked");
  const bare = "GET /livez HTTP/1.1\r\n";

  test("HTTP/1.0 is refused in words", async () => {
    for (const head of ["GET /livez HTTP/1.0\r\n\r\n", "GET /livez HTTP/1.0\r\nHost: x\r\nConnection: close\r\n\r\n"]) {
      const received = await untilClosed([head]);
      expect(received).toMatch(/^HTTP\/1\.1 505 HTTP Version Not Supported\r\n/);
      expect(received).toContain("does not support HTTP/1.0");
    }
  });

  test("no Host among other header lines is 400 at once", async () => {
    expect(await untilClosed([`${bare}Accept: */*\r\n\r\n`])).toMatch(/^HTTP\/1\.1 400 /);
  });

  const trailer = `${chunked}2\r\n{}\r\n0\r\nX: y\r\n\r\n`;
  const extension = `${chunked}2;a=b\r\n{}\r\n0\r\n\r\n`;
  const unreadable: [string, string][] = [
    ["no header line at all", `${bare}\r\n`],
    ["a folded header line", `${bare}Host: x\r\nA: b\r\n c\r\n\r\n`],
    ["white space before the colon", `${bare}Host: x\r\nA : b\r\n\r\n`],
    ["a control character in a header", `${bare}Host: x\r\nA: \x01\r\n\r\n`],
    ["99 header lines", `${bare}Host: x\r\n${"a: b\r\n".repeat(98)}\r\n`],
  ];

  test("nothing of it is done, and nothing behind it is a request", async () => {
    const before = await service.entryCount();
    const texts = [["a trailer", trailer], ["a chunk extension", extension], ...unreadable];
    const all = await Promise.all(texts.map(async ([what, text]) => [what, await untilClosed([text!, SMUGGLED])]));
    for (const [what, received] of all)
      expect(received, what).toMatch(/^(HTTP\/1\.1 (400|422|431|505) (?!.*smuggled).*)?$/s);
    expect(await service.entryCount()).toBe(before);
  });

  test("trailers and chunk extensions: uWebSockets.js ends the connection, node:http ignores them", async () => {
    expect(await last(trailer)).toMatch(OVER_UWS ? /^HTTP\/1\.1 (422|505) / : /^HTTP\/1\.1 422 /);
    if (!OVER_UWS) expect(await last(extension)).toMatch(/^HTTP\/1\.1 422 /);
  });

  test.each(OVER_UWS ? [] : unreadable)("%s: node:http refuses it at once and in words", async (_, text) => {
    expect(await untilClosed([text])).toMatch(/^HTTP\/1\.1 4(00|31) .*\r\n\r\nThe (request|head) .*\.$/s);
  });

  test("two Hosts are 400, and end the connection", async () => {
    for (const request of [
      get("Host: y"),
      get("Host: localhost"),
      `${post("Host: localhost", "Content-Length: 2")}{}`,
    ]) {
      expect(await last(request)).toMatch(/^HTTP\/1\.1 400 .*\r\nconnection: close/is);
      for (const parts of [together(request), apart(request)])
        expect(await untilClosed(parts)).not.toContain("smuggled");
    }
  });

  test("a header line without a name is 400 over node:http, and hides no body of a write from uWebSockets.js", async () => {
    for (const length of [`Content-Length: ${SMUGGLED.length}`, "Transfer-Encoding: chunked"]) {
      const request = post(": x", length) + SMUGGLED;
      for (const path of ["/api/v1/keys/register", "/api/v1/log/verify"]) {
        const received = await untilClosed([request.replace("/api/v1/keys/register", path)]);
        if (!OVER_UWS) expect(received).toMatch(/^HTTP\/1\.1 400 /);
        expect(received).not.toContain("smuggled");
      }
    }
  });
});

describe("chunks", () => {
  const register = (spell: (text: string) => string, coding = "chunked") => {
    const body = JSON.stringify(registration(newSigner()));
    return post(`Transfer-Encoding: ${coding}`) + spell(body);
  };
  const size = (text: string) => text.length.toString(16);

  test.each(["chunked", "Chunked"])("%s: a body, and the last of its connection", async (coding) => {
    const request = register((text) => `${size(text)}\r\n${text}\r\n0\r\n\r\n`, coding);
    expect(await last(request)).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close/is);
  });

  const spellings: [string, (text: string) => string][] = [
    ["as they should be", (text) => `${size(text)}\r\n${text}\r\n0\r\n\r\n`],
    ["with something else than CRLF behind the data", (text) => `${size(text)}\r\n${text}XX0\r\n\r\n`],
    ["with LF for CRLF", (text) => `${size(text)}\n${text}\n0\n\n`],
    ["with a trailer", (text) => `${size(text)}\r\n${text}\r\n0\r\nX: y\r\n\r\n`],
    ["with something else than CRLF at the end", (text) => `${size(text)}\r\n${text}\r\n0\r\nXX`],
    ["with a request for a trailer", (text) => `${size(text)}\r\n${text}\r\n0\r\n`],
  ];
  test.each(spellings)("%s: the bytes behind it are not a request", async (_, spell) => {
    // Some are refused at once, and some after a signature was made.
    for (const request of [post("Transfer-Encoding: chunked") + spell("[]"), register(spell)])
      for (const parts of [together, apart]) expect(await untilClosed(parts(request))).not.toContain("smuggled");
  });
});

describe("several requests on one connection", () => {
  test("one after the other are answered in their order", async () => {
    const ids = ["a", "b", "c", "d"];
    const received = await service.raw(ids.map((id) => get(`X-Request-Id: ${id}`)).join(""), 10_000, ids.length);
    expect([...received.matchAll(/x-request-id: (\w+)/gi)].map((match) => match[1])).toEqual(ids);
  });

  test("one that comes before a slow one is answered ends the connection, and no answer goes to the wrong request", async () => {
    const slow = JSON.stringify(registration(newSigner()));
    const received = await untilClosed([
      post(`Content-Length: ${slow.length}`, "X-Request-Id: slow") + slow + SMUGGLED,
    ]);
    expect(received).toBe("");
  });
});
