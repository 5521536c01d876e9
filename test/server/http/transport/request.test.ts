/** What is read of a request: its id, where it ends, who sent it, and the headers that outlive the library's object. */
import { describe, expect, test } from "vitest";
import { parseNetwork, UNKNOWN } from "#cairnlog/server/http/transport/client-address.js";
import { addressOf, Request } from "#cairnlog/server/http/transport/request.js";
import type { TransportRequest, TransportResponse } from "#cairnlog/server/http/transport/transport.js";

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
    getHeader: (name) => alive(lines.find(([given]) => given === name)?.[1] ?? ""),
    forEach: (each) => {
      for (const [name, value] of alive(lines)) each(name, value);
    },
  };
  return { incoming, state };
}
const requestOf = (lines: readonly Line[], method = "GET", query?: string, params?: readonly string[]) =>
  new Request(incomingOf(lines, query, params).incoming, method, params?.length ?? 0, UNKNOWN);

describe("an id", () => {
  test("of the service is no other request's, however many there are", () => {
    const { incoming } = incomingOf([]);
    const count = 2 ** 16 + 10;
    const ids = new Set<string>();
    for (let i = 0; i < count; i++) {
      const { id } = new Request(incoming, "GET", 0, UNKNOWN);
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

describe("where a request ends", () => {
  const LENGTH: Line = ["content-length", "2"];
  const CHUNKED: Line = ["transfer-encoding", "chunked"];
  test.each<[string, readonly Line[], string]>([
    ["GET", [], "plain"],
    ["HEAD", [], "plain"],
    ["POST", [], "plain"],
    ["GET", [LENGTH], "plain"],
    ["POST", [LENGTH], "plain"],
    ["POST", [["a", ""], LENGTH, ["b", "chunked"]], "plain"],
    ["POST", [CHUNKED], "chunked"],
    ["GET", [CHUNKED], "chunked"],
    ["HEAD", [["transfer-encoding", "CHUNKED"]], "chunked"],
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

test("headers are there before and after the library's object is gone", () => {
  const names = { authorization: "Bearer a.b.c", "if-none-match": '"tag"', "accept-encoding": "br" };
  const { incoming, state } = incomingOf(Object.entries(names));
  const request = new Request(incoming, "GET", 0, UNKNOWN);
  const headers = ({ authorization, ifNoneMatch, acceptEncoding }: Request) => [
    authorization,
    ifNoneMatch,
    acceptEncoding,
  ];
  expect(headers(new Request(incoming, "GET", 0, UNKNOWN))).toEqual(Object.values(names));
  request.copyRest();
  state.isGone = true;
  expect(headers(request)).toEqual(Object.values(names));
  expect(headers(requestOf([]))).toEqual(["", "", ""]);
});

test("the lines of X-Forwarded-For are one list, which counts behind a trusted proxy only", () => {
  const { incoming } = incomingOf([
    ["x-forwarded-for", "198.51.100.7, 203.0.113.5"],
    ["x-forwarded", "192.0.2.99"],
    ["x-forwarded-for", "10.0.0.3"],
  ]);
  const socket = (address: string) =>
    ({ getRemoteAddressAsText: () => Uint8Array.from(Buffer.from(address)).buffer }) as unknown as TransportResponse;
  const trusted = [parseNetwork("10.0.0.0/8")!];
  expect(addressOf(incoming, socket("10.0.0.1"), trusted)).toBe("203.0.113.5");
  expect(addressOf(incoming, socket("192.0.2.1"), trusted)).toBe("192.0.2.1");
  expect(addressOf(incoming, socket("10.0.0.1"), [])).toBe("10.0.0.1");
  expect(addressOf(incoming, socket(""), trusted)).toBe(UNKNOWN);
  expect(addressOf(incoming, socket("2001:DB8:0:0:0:0:0:1"), [])).toBe("2001:db8::1");
});
