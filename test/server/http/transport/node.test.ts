/** The parts of serving over `node:http` that need no socket: finding a route, refusing a head, reading a request. */
import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import {
  refusalBytes,
  refusalHeaders,
  refusalOf,
  refusalOfError,
} from "#cairnlog/server/http/servers/node/refusals.js";
import { NodeRequest, splitTarget } from "#cairnlog/server/http/servers/node/request.js";
import { Router } from "#cairnlog/server/http/servers/node/router.js";

describe("a path leads to its route", () => {
  const paths = ["/a", "/a/{x}", "/a/b", "/a/{x}/c", "/{y}/b/d", "/a/b/{z}/e", "/{u}/{v}/{w}/f"];
  const router = new Router(new Map(paths.map((path) => [path, path])));

  test.each<[string, string, string[]]>([
    ["/a", "/a", []],
    ["/a/x", "/a/{x}", ["x"]],
    // A part that is written out goes first.
    ["/a/b", "/a/b", []],
    // If that leads nowhere, the name is tried, and nothing is left of the first try.
    ["/a/b/c", "/a/{x}/c", ["b"]],
    ["/a/b/d", "/{y}/b/d", ["a"]],
    ["/a/b/g/e", "/a/b/{z}/e", ["g"]],
    ["/a/b/g/f", "/{u}/{v}/{w}/f", ["a", "b", "g"]],
    ["/a/%62", "/a/{x}", ["%62"]],
    ["/a/{x}", "/a/{x}", ["{x}"]],
  ])("%s", (path, value, params) => {
    expect(router.find(path)).toEqual({ value, params });
  });

  test.each(["", "/", "/A", "/a/", "/a//c", "/a/b/", "/a/b/c/d", "/a/b/g/h", "a", "//b/d"])(
    "%j leads nowhere",
    (path) => {
      expect(router.find(path)).toBeNull();
    },
  );

  test("a route of the empty path is one, too", () => {
    expect(new Router(new Map([["/", 1]])).find("/")).toEqual({ value: 1, params: [] });
  });
});

describe("a head is refused", () => {
  const head = (more: Partial<Pick<IncomingMessage, "httpVersion" | "rawHeaders" | "url">> = {}) =>
    refusalOf({ httpVersion: "1.1", rawHeaders: ["Host", "x"], url: "/", ...more } as IncomingMessage);
  const lines = (count: number) => ["Host", "x", ...Array.from({ length: count - 1 }, () => ["a", "b"]).flat()];

  test.each<[string, Parameters<typeof head>[0]]>([
    ["a plain one", {}],
    ["98 lines", { rawHeaders: lines(98) }],
    ["Host in another case", { rawHeaders: ["a", "b", "HOST", "x"] }],
    ["Host as a value", { rawHeaders: ["Host", "x", "a", "host"] }],
    ["the whole server", { url: "*" }],
    ["a query", { url: "/?http://x" }],
  ])("not for %s", (_, more) => {
    expect(head(more)).toBeNull();
  });

  test.each<[string, Parameters<typeof head>[0], string, RegExp]>([
    ["HTTP/1.0", { httpVersion: "1.0" }, "505 HTTP Version Not Supported", /does not support HTTP\/1\.0/],
    ["99 lines", { rawHeaders: lines(99) }, "431 Request Header Fields Too Large", /more than 98 header lines/],
    ["no Host", { rawHeaders: ["a", "host"] }, "400 Bad Request", /one Host/],
    ["two Hosts", { rawHeaders: ["Host", "x", "host", "x"] }, "400 Bad Request", /one Host/],
    ["a whole URL", { url: "http://x/" }, "400 Bad Request", /a path/],
  ])("for %s", (_, more, status, sentence) => {
    expect(head(more)).toEqual({ status, sentence: expect.stringMatching(sentence) });
  });
});

test.each<[object, string | null, RegExp]>([
  [{ code: "ERR_HTTP_REQUEST_TIMEOUT" }, "408 Request Timeout", /in time/],
  [{ code: "HPE_HEADER_OVERFLOW", reason: "" }, "431 Request Header Fields Too Large", /too long/],
  [{ code: "HPE_INVALID_METHOD", reason: "Invalid method" }, "400 Bad Request", /read: Invalid method\.$/],
  [{ code: "HPE_INVALID_METHOD" }, "400 Bad Request", /read: HPE_INVALID_METHOD\.$/],
  [{ code: "ECONNRESET" }, null, /./],
  [{}, null, /./],
])("bytes that the parser does not take: %j", (fault, status, sentence) => {
  const error = Object.assign(new Error("x"), fault) as Parameters<typeof refusalOfError>[0];
  expect(refusalOfError(error)).toEqual(status && { status, sentence: expect.stringMatching(sentence) });
});

test("a refusal is a whole answer, whose length is counted in bytes", () => {
  const refusal = { status: "400 Bad Request", sentence: "Schön ist das nicht." };
  const [head, body] = refusalBytes(refusal).split("\r\n\r\n");
  const [first, ...lines] = head!.split("\r\n");
  expect([first, body]).toEqual(["HTTP/1.1 400 Bad Request", refusal.sentence]);
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/).slice(0, 2)));
  const fixed = {
    connection: "close",
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-length": "21",
  };
  expect(headers).toEqual({ ...fixed, date: expect.stringMatching(/^\w{3}, \d\d .* GMT$/) });
  expect(refusalHeaders(refusal)).toEqual(Object.entries(fixed).flat());
});

test.each([
  ["/a", "/a", ""],
  ["/a?", "/a", ""],
  ["/a?b=c?d", "/a", "b=c?d"],
  ["?b", "", "b"],
])("the target %s has a path and a query", (target, path, query) => {
  expect(splitTarget(target)).toEqual([path, query]);
});

test("a request gives what was sent", () => {
  const headers = { host: "x", "set-cookie": ["a", "b"] };
  const rawHeaders = ["Host", "x", "Set-Cookie", "a", "SET-COOKIE", "b"];
  const request = new NodeRequest(
    { method: "GET", headers, rawHeaders } as unknown as IncomingMessage,
    ["p", "q"],
    "r=s",
  );
  expect([request.getCaseSensitiveMethod(), request.getQuery()]).toEqual(["GET", "r=s"]);
  expect([0, 1, 2].map((i) => request.getParameter(i))).toEqual(["p", "q", undefined]);
  const seen: [string, string][] = [];
  request.forEach((...line) => void seen.push(line));
  expect(seen).toEqual([
    ["host", "x"],
    ["set-cookie", "a"],
    ["set-cookie", "b"],
  ]);
});
