import { describe, expect, it } from "vitest";
import { checkIdentifiers, IDENTIFIER_TYPES } from "#cairnlog/engine/registry/endorsements/identifiers.js";
import { Faults } from "#cairnlog/engine/registry/shared/input.js";
import { failure } from "../world.js";

/** The paths in the errors about a list of identifiers. */
async function faultPaths(value: unknown): Promise<string[]> {
  const faults = new Faults();
  const checked = checkIdentifiers(value, "/external_identifiers", faults);
  if (checked !== undefined) return [];
  return (await failure(() => faults.check())).paths;
}
const isAccepted = async (type: string, value: unknown) => (await faultPaths([{ type, value }])).length === 0;

/** Published identifiers of well-known holders. */
const PUBLISHED: Readonly<Record<string, readonly string[]>> = {
  // ORCID's own examples, "Structure of the ORCID Identifier".
  orcid: ["0000-0002-1825-0097", "0000-0001-5109-3700", "0000-0002-1694-233X", "0009-0001-5055-9262"],
  // Stephen Hawking, in both spellings; two that end in ten, computed by hand from ISO 7064.
  isni: ["0000000121032683", "0000 0001 2103 2683", "000000012281955X", "0000 0001 2150 090X"],
  // Harvard, Caltech, California Digital Library, Cambridge, DataCite, Crossref.
  ror: ["03vek6s52", "05dxps055", "03yrm5c26", "013meh722", "04wxnsj81", "02twcfp32", "00f54p054", "042nb2s44"],
  doi: [
    "10.1000/182",
    "10.1038/nphys1170",
    "10.1000.10/123",
    "10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-O",
  ],
  wikidata: ["Q42", "Q1", "Q131964297"],
  github: ["octocat", "a", "A-1", "a".repeat(39), "0-0-0"],
  "email-domain": ["example.org", "mail.example.co.uk", "xn--bcher-kva.example", "EXAMPLE.ORG", "1.example"],
  url: ["https://example.org", "http://example.org/~alice?x=1#me", "https://[2001:db8::1]/"],
};

const REFUSED: Readonly<Record<string, readonly unknown[]>> = {
  orcid: [
    "0000-0002-1825-0098",
    "0000-0002-1694-2330",
    "0000-0002-1694-233x",
    "0000000218250097",
    "https://orcid.org/0000-0002-1825-0097",
    "0000-0002-1825-0097\n",
    " 0000-0002-1825-0097",
    "٠٠٠٠-0002-1825-0097",
  ],
  isni: ["0000000121032684", "0000-0001-2103-2683", "000000012103268", "0000  0001 2103 2683"],
  ror: [
    "03vek6s53",
    "03vek6s25",
    "13vek6s52",
    "03VEK6S52",
    "03vekis52",
    "03vekls52",
    "03vekos52",
    "03vekus52",
    "03vek6s5",
  ],
  doi: ["11.1000/182", "10.100/182", "10.1000", "10.1000/", "10.1000/a b", "doi:10.1000/182", "10.1000/\u0007"],
  wikidata: ["42", "q42", "Q0", "Q042", "Q", "P31", "Q1234567890123"],
  github: ["", "-a", "a-", "a--b", "a_b", "a".repeat(40), "octo cat"],
  "email-domain": [
    "org",
    "alice@example.org",
    "example..org",
    "-a.example",
    "a-.example",
    "example.1",
    `${"a".repeat(64)}.org`,
    `${"a.".repeat(126)}org`,
  ],
  url: [
    "example.org",
    "javascript:alert(1)",
    "ftp://example.org",
    "https://",
    "https://a b.example",
    "https://x@evil.example",
    "https://example.org:99999",
    `https://example.org/${"a".repeat(2048)}`,
  ],
};

describe.each(IDENTIFIER_TYPES)("$type", ({ type, example, pattern, url_template }) => {
  it("accepts its own example, which matches its pattern", async () => {
    expect(await isAccepted(type, example)).toBe(true);
    expect(new RegExp(pattern, "u").test(example)).toBe(true);
    if (url_template !== null) expect(URL.canParse(url_template.replace("{value}", example))).toBe(true);
  });

  it.each(PUBLISHED[type]!)("accepts %s", async (value) => {
    expect(await isAccepted(type, value)).toBe(true);
    expect(new RegExp(pattern, "u").test(value)).toBe(true);
  });

  it.each([...REFUSED[type]!, 7, null, undefined, {}, "", "x".repeat(100_000)])("refuses %j", async (value) => {
    expect(await faultPaths([{ type, value }])).toEqual(["/external_identifiers/0/value"]);
  });
});

describe("check digits", () => {
  const digits = "0123456789X";
  it.each(["orcid", "isni", "ror"])("exactly one ending of an identifier is right: %s", async (type) => {
    for (const value of PUBLISHED[type]!) {
      const tail = type === "ror" ? 2 : 1;
      const endings = type === "ror" ? Array.from({ length: 100 }, (_, i) => `${i}`.padStart(2, "0")) : [...digits];
      const right: string[] = [];
      for (const ending of endings) if (await isAccepted(type, value.slice(0, -tail) + ending)) right.push(ending);
      expect(right).toEqual([value.slice(-tail)]);
    }
  });

  it.each(["0000-0002-1825-0097", "0000-0001-5109-3700"])(
    "every neighbouring pair swapped is noticed: %s",
    async (value) => {
      for (let i = 0; i + 1 < value.length; i++) {
        const swapped = value.slice(0, i) + value[i + 1] + value[i] + value.slice(i + 2);
        if (swapped !== value) expect(await isAccepted("orcid", swapped)).toBe(false);
      }
    },
  );
});

describe("a list", () => {
  it("may be absent or empty", () => {
    const faults = new Faults();
    expect(checkIdentifiers(undefined, "", faults)).toBeNull();
    expect(checkIdentifiers(null, "", faults)).toBeNull();
    expect(checkIdentifiers([], "", faults)).toEqual([]);
    faults.check();
  });

  it("keeps the type and the value of each, in order", () => {
    const given = [
      { type: "ror", value: "03vek6s52", since: 2019 },
      { type: "orcid", value: "0000-0002-1825-0097" },
      { type: "ror", value: "03vek6s52" },
    ];
    expect(checkIdentifiers(given, "", new Faults())).toEqual(given.map(({ type, value }) => ({ type, value })));
  });

  it("names every place that is wrong", async () => {
    expect(await faultPaths("orcid")).toEqual(["/external_identifiers"]);
    expect(await faultPaths({ 0: { type: "orcid" } })).toEqual(["/external_identifiers"]);
    const list = [
      7,
      null,
      [],
      {},
      { type: "passport", value: "1" },
      { type: "constructor", value: "x" },
      { type: "wikidata" },
    ];
    expect(await faultPaths([{ type: "wikidata", value: "Q1" }, ...list])).toEqual([
      "/external_identifiers/1",
      "/external_identifiers/2",
      "/external_identifiers/3",
      "/external_identifiers/4/type",
      "/external_identifiers/5/type",
      "/external_identifiers/6/type",
      "/external_identifiers/7/value",
    ]);
  });
});
