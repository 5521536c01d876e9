/** What is read of a request: its id, where it ends, who sent it, and the headers that outlive the library's object. */
import { describe, expect, test } from "vitest";
import { parseNetwork, UNKNOWN } from "#cairnlog/server/http/transport/client-address.js";
import { Request, remoteAddress } from "#cairnlog/server/http/transport/request.js";
import type { TransportRequest, TransportResponse } from "#cairnlog/server/http/transport/transport.js";
import { traceOf } from "#cairnlog/server/process/tracing.js";

type Line = readonly [name: string, value: string];

/** A request of the library with these header lines. It throws once `isGone`. */
function incomingOf(lines: readonly Line[], query?: string, params: readonly string[] = []) {
  const state = { isGone: false };
  const alive = <T>(value: T): T => {
    if (state.isGone) throw new Error("the request is gone");
    return value;
  };
  const incoming: TransportRequest = {
    getCaseSensitiveMethod: () => alive("GET"),
    getQuery: () => alive(query),
    getParameter: (i) => alive(params[i]),
    forEach: (each) => {
      for (const [name, value] of alive(lines)) each(name, value);
    },
  };
  return { incoming, state };
}
const requestOf = (lines: readonly Line[], method = "GET", query?: string, params?: readonly string[]) =>
  new Request(incomingOf(lines, query, params).incoming, method, params?.length ?? 0);

describe("an id", () => {
  test("of the service is no other request's, however many there are", () => {
    const { incoming } = incomingOf([]);
    const count = 2 ** 16 + 10;
    const ids = new Set<string>();
    for (let i = 0; i < count; i++) {
      const { id } = new Request(incoming, "GET", 0);
      if (!/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(id)) expect.fail(id);
      ids.add(id);
    }
    expect(ids.size).toBe(count);
  });

  test.each(["a", "Trace_1.a-B", "x".repeat(128)])("%s of the client is kept", (id) => {
    expect(requestOf([["x-request-id", id]]).id).toBe(id);
  });

  test.each(["", "a b", " a", "a ", "x".repeat(129), "<a>", "a\n", "é"])("%j of the client is not", (id) => {
    expect(requestOf([["x-request-id", id]]).id).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe("the trace of a traceparent", () => {
  const [trace, step] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
  const of = (...values: readonly string[]) =>
    traceOf(requestOf(values.map((value): Line => ["traceparent", value])).traceparent);

  test.each([`00-${trace}-${step}-01`, `00-${trace}-${step}-00`, `cc-${trace}-${step}-01`, `cc-${trace}-${step}-01-x`])(
    "%s is taken",
    (value) => expect(of(value)).toBe(trace),
  );

  test.each([
    "",
    `00-${trace}-${step}`,
    `00-${trace}-${step}-01-x`,
    `00-${trace}-${step}-01-`,
    `ff-${trace}-${step}-01`,
    `00-${"0".repeat(32)}-${step}-01`,
    `00-${trace}-${"0".repeat(16)}-01`,
    `00-${trace.toUpperCase()}-${step}-01`,
    `00-${trace}0-${step}-01`,
    `cc-${trace}-${step}-01x`,
    ` 00-${trace}-${step}-01`,
    `00-${trace}-${step}-01\n`,
  ])("%j is not", (value) => expect(of(value)).toBe(""));

  test("of two headers neither is", () => {
    const value = `00-${trace}-${step}-01`;
    for (const count of [2, 3]) expect(of(...Array(count).fill(value))).toBe("");
  });
});

describe("where a request ends", () => {
  const LENGTH: Line = ["content-length", "2"];
  const CHUNKED: Line = ["transfer-encoding", "chunked"];
  test.each<[string, readonly Line[], string]>([
    ["GET", [], "plain"],
    ["HEAD", [], "plain"],
    ["OPTIONS", [], "plain"],
    // What may have a body, and a length that the library does not see.
    ["POST", [], "loose"],
    ["DELETE", [], "loose"],
    ["GET", [LENGTH], "plain"],
    ["POST", [LENGTH], "plain"],
    ["POST", [["a", ""], LENGTH, ["b", "chunked"]], "plain"],
    ["POST", [CHUNKED], "loose"],
    ["GET", [CHUNKED], "loose"],
    ["HEAD", [["transfer-encoding", "CHUNKED"]], "loose"],
    ["POST", [LENGTH, LENGTH], "ambiguous"],
    ["GET", [LENGTH, LENGTH], "ambiguous"],
    ["POST", [LENGTH, CHUNKED], "ambiguous"],
    ["POST", [CHUNKED, CHUNKED], "ambiguous"],
    ["HEAD", [CHUNKED, LENGTH], "ambiguous"],
    ["POST", [["content-length", ""]], "ambiguous"],
    ["POST", [["content-length", ""], LENGTH], "ambiguous"],
    ["POST", [["transfer-encoding", "gzip"]], "ambiguous"],
    ["GET", [["transfer-encoding", "gzip, chunked"]], "ambiguous"],
  ])("%s %j: %s", (method, lines, framing) => {
    expect(requestOf(lines, method).framing).toBe(framing);
  });
});

test("method, query and the named parts of the path are as they were sent", () => {
  const request = requestOf([], "POST", "a=%20&b", ["p%2F", "q"]);
  expect(request).toMatchObject({ method: "POST", query: "a=%20&b", params: ["p%2F", "q"], address: UNKNOWN });
  expect(requestOf([])).toMatchObject({ query: "", params: [] });
});

test("headers are there when the library's object is gone", () => {
  const names = { authorization: "Bearer a.b.c", "if-none-match": '"tag"', "accept-encoding": "br" };
  const { incoming, state } = incomingOf(Object.entries(names));
  const request = new Request(incoming, "GET", 0);
  const headers = ({ authorization, ifNoneMatch, acceptEncoding }: Request) => [
    authorization,
    ifNoneMatch,
    acceptEncoding,
  ];
  state.isGone = true;
  expect(headers(request)).toEqual(Object.values(names));
  expect(headers(requestOf([]))).toEqual(["", "", ""]);
});

test("the lines of X-Forwarded-For are one list, which counts behind a trusted proxy only", () => {
  const { incoming } = incomingOf([
    // The client's own invention, and below it the lines of two proxies.
    ["x-forwarded-for", "198.51.100.7"],
    ["x-forwarded", "192.0.2.99"],
    ["x-forwarded-for", "203.0.113.5"],
    ["x-forwarded-for", "10.0.0.3"],
  ]);
  const request = new Request(incoming, "GET", 0);
  const socket = (address: string) =>
    ({ getRemoteAddressAsText: () => Uint8Array.from(Buffer.from(address)).buffer }) as unknown as TransportResponse;
  const trusted = [parseNetwork("10.0.0.0/8")!];
  expect(remoteAddress(request, socket("10.0.0.1"), trusted)).toBe("203.0.113.5");
  expect(remoteAddress(request, socket("192.0.2.1"), trusted)).toBe("192.0.2.1");
  expect(remoteAddress(request, socket("10.0.0.1"), [])).toBe("10.0.0.1");
  expect(remoteAddress(request, socket(""), trusted)).toBe(UNKNOWN);
  expect(remoteAddress(request, socket("2001:DB8:0:0:0:0:0:1"), [])).toBe("2001:db8::1");
});

describe("a body is announced", () => {
  test.each<[readonly Line[], boolean]>([
    [[], false],
    [[["content-length", "0"]], false],
    [[["content-length", "1"]], true],
    [[["content-length", "00"]], true],
    [[["transfer-encoding", "chunked"]], true],
  ])("%j: %s", (lines, hasBody) => expect(requestOf(lines, "POST").hasBody).toBe(hasBody));
});

test("of lines that come twice the first counts, and two hosts are seen", () => {
  const names = ["host", "origin", "sec-fetch-site", "content-type", "authorization", "if-none-match"];
  const request = requestOf([...names, ...names].map((name, i) => [name, `${name} ${i}`]));
  const { host, origin, fetchSite, contentType, authorization, ifNoneMatch } = request;
  expect([host, origin, fetchSite, contentType, authorization, ifNoneMatch]).toEqual(
    names.map((name, i) => `${name} ${i}`),
  );
  expect(request.hasTwoHosts).toBe(true);
  expect(requestOf([["host", "a"]]).hasTwoHosts).toBe(false);
  expect(
    requestOf([
      ["host", ""],
      ["host", "a"],
    ]),
  ).toMatchObject({ hasTwoHosts: true, host: "" });
});
