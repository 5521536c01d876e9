import { describe, expect, it } from "vitest";
import { resolvePredicate } from "#cairnlog/engine/registry/attestations/manifest.js";
import { BASE, failure } from "../world.js";

const codeOf = async (type: unknown, isOperator = false, base = BASE) =>
  (await failure(() => resolvePredicate(type, base, isOperator))).code;

describe("predicates", () => {
  it.each([
    ["authorship", "https://x-service.example/predicates/authorship/v1"],
    ["editorial_review", "https://x-service.example/predicates/editorial-review/v1"],
    ["peer_review", "https://x-service.example/predicates/peer-review/v1"],
    ["publication", "https://x-service.example/predicates/publication/v1"],
  ])("%s resolves to its canonical URL for anyone, as does the URL itself", (type, url) => {
    for (const isOperator of [true, false]) {
      expect(resolvePredicate(type, BASE, isOperator)).toBe(url);
      expect(resolvePredicate(url, BASE, isOperator)).toBe(url);
    }
  });

  it.each([
    "https://example.org/",
    "https://example.org",
    "https://example.org/a?b=c#d",
    "https://other.x-service.example/predicates/x",
    "https://x-service.example.evil.example/predicates/x",
    "https://notx-service.example/predicates/x",
    "https://x-service.example:8443/predicates/x",
    "https://x-service.example/",
    "https://x-service.example/predicate/x",
    "https://x-service.example/predicates-of-others/x",
    "https://x-service.example/predicates",
    "https://x-service.example/other/predicates/x",
    "https://x-service.example/?/predicates/x",
    "https://x-service.example/#/predicates/x",
    "https://example.org/predicates/%zz%",
    "https://example.org/%25252525",
  ])("%s is anyone's, as it is spelt", (url) => {
    expect(resolvePredicate(url, BASE, false)).toBe(url);
  });

  it.each([
    ["a novel one", "https://x-service.example/predicates/vault-publication/v1"],
    ["the folder itself", "https://x-service.example/predicates/"],
    ["another version", "https://x-service.example/predicates/authorship/v2"],
    ["a canonical one with a slash", "https://x-service.example/predicates/authorship/v1/"],
    ["a canonical one with a query", "https://x-service.example/predicates/authorship/v1?"],
    ["a canonical one with a fragment", "https://x-service.example/predicates/authorship/v1#"],
    ["a canonical one in capitals", "https://x-service.example/predicates/Authorship/v1"],
    ["host in capitals", "https://X-SERVICE.example/predicates/x"],
    ["scheme in capitals", "HTTPS://x-service.example/predicates/x"],
    ["path in capitals", "https://x-service.example/Predicates/x"],
    ["default port", "https://x-service.example:443/predicates/x"],
    ["default port with zeros", "https://x-service.example:00443/predicates/x"],
    ["empty port", "https://x-service.example:/predicates/x"],
    ["userinfo", "https://user:secret@x-service.example/predicates/x"],
    ["empty userinfo", "https://@x-service.example/predicates/x"],
    ["trailing dot of the host", "https://x-service.example./predicates/x"],
    ["encoded host", "https://x-service%2Eexample/predicates/x"],
    ["full-width host", "https://ｘ-service.example/predicates/x"],
    ["ideographic full stop", "https://x-service。example/predicates/x"],
    ["dot segment", "https://x-service.example/./predicates/x"],
    ["double-dot segment", "https://x-service.example/other/../predicates/x"],
    ["too many double dots", "https://x-service.example/../../predicates/x"],
    ["encoded dot segment", "https://x-service.example/other/%2e%2E/predicates/x"],
    ["half-encoded dot segment", "https://x-service.example/other/.%2e/predicates/x"],
    ["doubly encoded dot segment", "https://x-service.example/other/%252e%252e/predicates/x"],
    ["encoded letter", "https://x-service.example/%70redicates/x"],
    ["doubly encoded letter", "https://x-service.example/%2570redicates/x"],
    ["triply encoded letter", "https://x-service.example/%252570redicates/x"],
    ["encoded digits of an encoding", "https://x-service.example/%25%37%30redicates/x"],
    ["encoded slash", "https://x-service.example/predicates%2Fx"],
    ["doubly encoded slash", "https://x-service.example/predicates%252Fx"],
    ["encoded backslash", "https://x-service.example/predicates%5Cx"],
    ["encoded slash and dots", "https://x-service.example/other%2f..%2fpredicates/x"],
    ["leaves the base only when decoded", "https://x-service.example/predicates/..%2fother"],
    ["leaves the base by dots, but reads as the operator's", "https://x-service.example/predicates/../other"],
    ["backslash in the path", "https://x-service.example\\predicates\\x"],
    ["backslashes everywhere", "https:\\\\x-service.example\\predicates/x"],
    ["doubled slash before", "https://x-service.example//predicates/x"],
    ["doubled slash within", "https://x-service.example/predicates//x"],
    ["doubled slash behind", "https://x-service.example/predicates//"],
    ["three slashes", "https:///x-service.example/predicates/x"],
    ["one slash", "https:/x-service.example/predicates/x"],
    ["no slash", "https:x-service.example/predicates/x"],
    ["space before", " https://x-service.example/predicates/x"],
    ["tab inside", "https://x-service.example/pred\ticates/x"],
    ["line feed inside the host", "https://x-serv\nice.example/predicates/x"],
    ["a dot at the end", "https://x-service.example/predicates/."],
    ["two dots at the end", "https://x-service.example/predicates/x/.."],
  ])("reserved: %s", async (_, url) => {
    expect(await codeOf(url)).toBe("forbidden");
  });

  it("the operator may use any well-formed URL under the base", async () => {
    for (const url of [`${BASE}/vault-publication/v1`, `${BASE}/`, "https://x-service.example:443/predicates/x"])
      expect(resolvePredicate(url, BASE, true)).toBe(url);
    expect(await codeOf("https:\\\\x-service.example\\predicates/x", true)).toBe("invalid-input");
    expect(await codeOf(" https://x-service.example/predicates/x", true)).toBe("invalid-input");
  });

  it.each([
    ["unknown word", "approval"],
    ["another case", "Authorship"],
    ["empty", ""],
    ["null", null],
    ["number", 1],
    ["object", { toString: 1 }],
    ["array of a valid one", ["authorship"]],
    ["inherited name", "constructor"],
    ["http", "http://example.org/x"],
    ["http under the base's host", "http://x-service.example/predicates/x"],
    ["urn", "urn:example:x"],
    ["relative", "/predicates/x"],
    ["no host", "https://"],
    ["scheme in capitals", "HTTPS://example.org/x"],
    ["one slash", "https:/example.org/x"],
    ["space", "https://example.org/a b"],
    ["not ASCII", "https://example.org/é"],
    ["lone surrogate", "https://example.org/\ud800"],
    ["line feed", "https://example.org/x\n"],
    ["backslash", "https://example.org\\x"],
    ["bad port", "https://example.org:99999/x"],
  ])("invalid: %s", async (_, type) => {
    expect(await codeOf(type)).toBe("invalid-input");
  });

  it("accepts 512 characters and no more", async () => {
    const url = "https://example.org/".padEnd(512, "x");
    expect(resolvePredicate(url, BASE, false)).toBe(url);
    expect(await codeOf(`${url}x`)).toBe("invalid-input");
  });

  it("reserves nothing but the path of a base that has a port and encodings of its own", async () => {
    const base = "https://x.example:8443/a%20b";
    expect(await codeOf("https://x.example:8443/a%20b/x", false, base)).toBe("forbidden");
    expect(await codeOf("https://x.example:8443/a%2520b/x", false, base)).toBe("forbidden");
    expect(resolvePredicate("https://x.example/a%20b/x", base, false)).toBe("https://x.example/a%20b/x");
    expect(resolvePredicate("https://x.example:8443/ab/x", base, false)).toBe("https://x.example:8443/ab/x");
  });

  it("reserves a whole host when the base is one", async () => {
    expect(await codeOf("https://x.example/anything", false, "https://x.example")).toBe("forbidden");
    expect(resolvePredicate("https://y.example/anything", "https://x.example", false)).toBe(
      "https://y.example/anything",
    );
  });
});
