/** The page at /docs: complete, valid, and readable without scripts on any screen. */
import { beforeAll, describe, expect, test } from "vitest";
import { docsPages } from "#cairnlog/server/http/docs/page.js";
import { operationsOf } from "../../contract/tour.js";
import type { Document } from "../contract.js";
import { type Reply, startTestService, type TestService } from "../harness.js";

const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const PAGES = [
  ["/docs", "text/html; charset=utf-8"],
  ["/docs/style.css", "text/css; charset=utf-8"],
] as const;

let service: TestService;
let page: Reply;
let document: Document;
beforeAll(async () => {
  service = await startTestService();
  page = await service.send("GET", "/docs");
  document = await service.openApi();
});

const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1]!);

describe.each(PAGES)("GET %s", (path, type) => {
  test("is served under a policy that allows a style sheet of its own and nothing else", async () => {
    const { status, headers } = await service.send("GET", path);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe(type);
    expect(headers.get("content-security-policy")).toBe(POLICY);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  });

  test("has a tag, by which it is not sent again, and answers HEAD", async () => {
    const get = await service.send("GET", path);
    const etag = get.headers.get("etag")!;
    expect(etag).toMatch(/^"[\w-]{43}"$/);
    expect(get.headers.get("cache-control")).toBe("no-cache");
    const held = await service.send("GET", path, { headers: { "if-none-match": etag } });
    expect([held.status, held.text, held.headers.get("etag")]).toEqual([304, "", etag]);
    const head = await service.send("HEAD", path);
    expect([head.status, head.text, head.headers.get("etag")]).toEqual([200, "", etag]);
    expect(head.headers.get("content-length")).toBe(`${get.bytes.length}`);
  });

  test("refuses other methods", async () => {
    expect((await service.send("POST", path)).status).toBe(405);
  });
});

describe("the page", () => {
  test("shows every operation with a request, and every schema", () => {
    for (const { id, method, path } of operationsOf(document)) {
      expect(page.text).toContain(`id="${id}"`);
      const fixed = path.split("{")[0]!;
      expect(page.text, id).toMatch(new RegExp(`curl &#34;\\$SERVER${fixed}[^]*?</pre>`));
      if (method === "DELETE") expect(page.text).toContain(`-X ${method}`);
    }
    for (const name of Object.keys(document.components.schemas)) expect(page.text).toContain(`id="schema-${name}"`);
    for (const [name, { content }] of Object.entries<Document>(document.components.responses))
      expect(page.text.includes(`id="answer-${name}"`), name).toBe(content !== undefined);
  });

  test("has no links that lead nowhere, or elsewhere, and asks for its style sheet alone", () => {
    const ids = all(page.text, / id="([^"]*)"/g);
    expect(new Set(ids).size).toBe(ids.length);
    for (const target of all(page.text, / href="([^"]*)"/g))
      if (target.startsWith("#")) expect(ids, target).toContain(target.slice(1));
      else expect(["docs/style.css", "api/v1/openapi.json", "./"]).toContain(target);
    expect(page.text).not.toMatch(/ (?:src|style|on\w+)=|<script|<style|<iframe|url\(/);
    expect(all(page.text, /<form ([^>]*)>/g)).toEqual(['role="search" action="docs"']);
    expect((page.text.match(/<link /g) ?? []).length).toBe(1);
  });

  test("is well-formed: every element that is opened is closed, in order", () => {
    expectWellFormed(page.text);
  });

  test("shows any content of the document as text", () => {
    const hostile = `"><script>alert(1)</script>'&<b>`;
    const poisoned = JSON.parse(JSON.stringify(document), (name, value) =>
      typeof value === "string" && ["description", "summary", "example", "title", "pattern"].includes(name)
        ? hostile
        : value,
    );
    const text = docsPages(poisoned, false)("");
    expectWellFormed(text);
    expect(text).not.toContain("<script");
    expect(text).not.toContain("<b>");
    expect(text).toContain("&#60;script&#62;");
  });
});

describe("a search", () => {
  const found = async (search: string) => {
    const reply = await service.send("GET", `/docs?${new URLSearchParams({ search })}`);
    expect(reply.status, search).toBe(200);
    expectWellFormed(reply.text);
    return {
      ...reply,
      ids: all(reply.text, /<p class="name"><a id="(\w+)" href="#\w+">\w+<\/a><\/p>\n?/g).filter(isOperation),
    };
  };
  const isOperation = (id: string) => operationsOf(document).some((operation) => operation.id === id);

  test.each([
    ["reveal", ["post_claims_entry_id_reveal"]],
    ["  DELETE   webhooks ", ["delete_webhooks_webhook_id"]],
    ["ephemeral_public_key", ["post_claims"]],
    ["possession_signature account", ["post_users"]],
    ["unheard-of", []],
  ])("for %j finds %j", async (search, expected) => {
    const { ids, text } = await found(search);
    expect(ids).toEqual(expected);
    expect(text).toContain(`${expected.length || "None"} of ${operationsOf(document).length}.`);
    expect(text).toContain(`value="${search.trim()}"`);
  });

  test("for nothing is the whole page", async () => {
    for (const path of ["/docs?search=", "/docs?search=+", "/docs?other=1"])
      expect((await service.send("GET", path)).text).toBe(page.text);
  });

  test("has no links that lead nowhere", async () => {
    const { text } = await found("claim");
    const ids = all(text, / id="([^"]*)"/g);
    for (const target of all(text, / href="#([^"]*)"/g)) expect(ids).toContain(target);
  });

  test("stands on the page as text, and is not longer than a page can use", async () => {
    const { text } = await found(`"><script>alert(1)</script>'&<b>`);
    expect(text).not.toMatch(/<script|<b>/);
    expect(text).toContain("&#60;script&#62;");
    const length = Number(/maxlength="(\d+)"/.exec(page.text)![1]);
    expect((await service.send("GET", `/docs?search=${"x".repeat(length)}`)).status).toBe(200);
    expect((await service.send("GET", `/docs?search=${"x".repeat(length + 1)}`)).status).toBe(422);
  });
});

test("the page leads to the log, where the service shows it", async () => {
  const back = '<a href="./">The log</a>';
  expect(page.text).toContain(back);
  expect((await service.send("GET", "/")).status).toBe(200);
  const without = await startTestService({ SERVICE_EXPLORER: "off" });
  expect((await without.send("GET", "/docs")).text).not.toContain(back);
});

/** Elements that may be without an end tag. */
const VOID = new Set(["meta", "link", "wbr", "input", "!doctype"]);

function expectWellFormed(text: string): void {
  const open: string[] = [];
  for (const [tag, end, name] of text.matchAll(/<(\/?)([!\w]+)[^<>]*>|<|>/g)) {
    expect(name, `${tag} stands alone`).toBeDefined();
    if (end) expect(open.pop()).toBe(name);
    else if (!VOID.has(name!)) open.push(name!);
  }
  expect(open).toEqual([]);
}
