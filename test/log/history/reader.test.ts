/** Single entries of a history from elsewhere: which digests, times and sizes are taken, and what is unusual. */
import { createHash } from "node:crypto";
import { blake3 } from "@noble/hashes/blake3.js";
import { sha512 } from "@noble/hashes/sha2.js";
import { sha3_256 } from "@noble/hashes/sha3.js";
import canonicalize from "canonicalize";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import {
  createHistoryReader,
  type HistoryReader,
  MAX_ENTRY_BYTES,
  NO_PREDECESSOR,
  type Predecessor,
  predecessorOf,
} from "#cairnlog/engine/log/apply/entry.js";
import type { Entry } from "#cairnlog/engine/verify/tree/entry.js";
import { detached, pending, timestamp } from "../../verify/ots/otsbytes.js";
import { chain, line, type MadeEntry, momentNumber } from "./entries.js";

let reader: HistoryReader;
beforeAll(async () => {
  reader = await createHistoryReader({});
});

const read = (entry: object, previous: Predecessor = NO_PREDECESSOR, proof: Uint8Array | null = null) =>
  reader.read(line(entry), previous, 7, proof);
const refused = (message: string, code = "invalid-input") =>
  expect.objectContaining({ code, message: expect.stringContaining(message) });

const [entry] = chain([{ payload: { n: 1 } }]) as [MadeEntry];
/** What a first version 1 entry hashes: its payload alone. */
const PREIMAGE = new TextEncoder().encode('{"n":1}');
const own = { algorithm: "sha2-256", digest_hex: entry.entry_hash, is_primary: true };
const digest = (algorithm: string, digest_hex: string, is_primary = false) => ({ algorithm, digest_hex, is_primary });
const withDigests = (...entry_hashes: object[]) => ({ ...entry, entry_hashes });
const KNOWN = (
  [
    ["sha2-512", sha512],
    ["sha3-256", sha3_256],
    ["blake3", blake3],
  ] as const
).map(([name, compute]) => digest(name, Buffer.from(compute(PREIMAGE)).toString("hex")));

describe("the digests of an entry", () => {
  test("that are known are computed again, and all of them are kept in their order", () => {
    const checked = read(withDigests(...KNOWN, own));
    expect(checked.warnings).toEqual([]);
    expect(checked.digests).toEqual([...KNOWN, own].map(({ digest_hex }) => digest_hex));
    for (const { algorithm, digest_hex } of KNOWN) {
      const wrong = digest(algorithm, `${digest_hex.slice(0, -2)}${digest_hex.endsWith("00") ? "01" : "00"}`);
      expect(() => read(withDigests(own, wrong))).toThrow(
        refused(`The ${algorithm} digest does not match the content.`),
      );
    }
  });

  test("that are not known are named, with the place of the entry", () => {
    const found = read({ ...withDigests(own, digest("md5", "ab".repeat(16)), digest("x", entry.entry_hash)), id: 3 });
    expect(found.warnings).toEqual(
      ["md5", "x"].map((name) => ({
        leafIndex: 7,
        id: 3,
        code: "unknown-digest",
        message: `The digest algorithm "${name}" is not known: not checked.`,
      })),
    );
  });

  test.each<[string, object[]]>([
    ["none", []],
    ["one that is not primary", [{ ...own, is_primary: false }]],
    ["two that are primary", [own, { ...KNOWN[0]!, is_primary: true }]],
    [
      "another algorithm",
      [
        { ...KNOWN[0]!, is_primary: true },
        { ...own, is_primary: false },
      ],
    ],
    ["another algorithm with the same digest", [{ ...own, algorithm: "md5" }]],
    ["another digest than entry_hash", [{ ...own, digest_hex: "ab".repeat(32) }]],
  ])("have one that is primary, SHA-256 and entry_hash, so %s is refused", (_, digests) => {
    expect(() => read(withDigests(...digests))).toThrow(
      refused("Exactly one of entry_hashes must be primary: sha2-256, equal to entry_hash."),
    );
  });

  test("are 4 to 256 bytes in lower-case hexadecimal", () => {
    for (const bytes of [4, 256]) expect(read(withDigests(own, digest("x", "ab".repeat(bytes))))).toBeDefined();
    for (const text of ["ab".repeat(3), "ab".repeat(257), "abababababa", "AB".repeat(4), " abababab", "abababab "])
      expect(() => read(withDigests(own, digest("x", text))), text).toThrow(
        refused("A digest_hex is not lower-case hexadecimal."),
      );
  });

  test("are of different algorithms", () => {
    expect(() => read(withDigests(own, digest("x", "abababab"), digest("x", "cdcdcdcd")))).toThrow(
      refused("A digest algorithm appears more than once in entry_hashes."),
    );
  });
});

describe("an entry after another one", () => {
  const V2 = { chain_version: 2 as const };
  const [first, second] = chain([V2, V2]) as [MadeEntry, MadeEntry];
  const behind = (made: MadeEntry) => predecessorOf(made as Entry);
  const next = (wanted: object) => chain([wanted], first)[0]!;

  test("follows it, whether that one was just read or is on disk", () => {
    for (const previous of [behind(first), read(first)]) {
      const { id, entryHash, chainVersion, micros, canonicalTimestamp, isEnd } = read(second, previous);
      expect({ id, entryHash, chainVersion, micros, canonicalTimestamp, isEnd }).toEqual(behind(second));
      expect(behind(second)).toEqual({
        id: 2,
        entryHash: second.entry_hash,
        chainVersion: 2,
        micros: Date.parse(second.timestamp) * 1000,
        canonicalTimestamp: second.timestamp,
        isEnd: false,
      });
    }
  });

  test("may be of the same moment, and not earlier if its hash covers the time", () => {
    const earlier = momentNumber(0);
    expect(read(next({ ...V2, timestamp: first.timestamp }), behind(first)).warnings).toEqual([]);
    expect(() => read(next({ ...V2, timestamp: earlier }), behind(first))).toThrow(
      refused("The timestamp of this version 2 entry is earlier than that of the entry before."),
    );
    // No hash covers the time of a version 1 entry, so it may be anything.
    expect(read(next({ timestamp: earlier }), behind(first)).id).toBe(2);
    const [old] = chain([{ timestamp: "2020-01-01" }]) as [MadeEntry];
    expect(behind(old)).toMatchObject({ chainVersion: 1, canonicalTimestamp: undefined });
    const [late] = chain([{ ...V2, timestamp: "1999-01-01T00:00:00Z" }], old);
    expect(read(late!, behind(old)).chainVersion).toBe(2);
  });

  test("is unusual if version 1 follows version 2, and otherwise not", () => {
    const codes = (made: object, previous?: Predecessor) => read(made, previous).warnings.map(({ code }) => code);
    expect(codes(next({}), behind(first))).toEqual(["v1-after-v2"]);
    expect(codes(next({ chain_version: null }), behind(first))).toEqual(["v1-after-v2"]);
    expect(codes(second, behind(first))).toEqual([]);
    expect(codes(entry)).toEqual([]);
    const [old] = chain([{ chain_version: null }]) as [MadeEntry];
    expect(behind(old).chainVersion).toBe(1);
    for (const version of [1, 2] as const)
      expect(codes(chain([{ chain_version: version }], old)[0]!, behind(old))).toEqual([]);
  });

  test("has a higher id and the link, and the first one has neither", () => {
    expect(read({ ...second, id: 40 }, behind(first)).id).toBe(40);
    expect(() => read({ ...second, id: 1 }, behind(first))).toThrow(
      refused("The id 1 does not ascend: the entry before has 1."),
    );
    expect(() => read({ ...second, previous_hash: null }, behind(first))).toThrow(
      refused("previous_hash is not the entry_hash of the entry before"),
    );
    expect(() => read(second)).toThrow(refused("this history lacks its beginning"));
  });
});

describe("the proof of an entry", () => {
  const proofOf = (hash: string) =>
    detached(Buffer.from(hash, "hex"), timestamp({ attestations: [pending("https://a.example")], operations: [] }));
  const right = proofOf(entry.entry_hash);

  test("is the given one, or else the one in the entry, or none", () => {
    const inside = { ...entry, ots_proof: Buffer.from("inside").toString("base64") };
    expect(read(inside, NO_PREDECESSOR, right).otsProof).toEqual(right);
    expect(Buffer.from(read(inside).otsProof!).toString()).toBe("inside");
    for (const none of [entry, { ...entry, ots_proof: null }]) expect(read(none).otsProof).toBeNull();
    expect(read(inside).json.toString()).toBe(JSON.stringify(entry));
  });

  test("is unusual if it is not about this entry", () => {
    const codes = (proof: Uint8Array) => read(entry, NO_PREDECESSOR, proof).warnings.map(({ code }) => code);
    expect(codes(right)).toEqual([]);
    for (const proof of [Buffer.from("no proof"), proofOf("ab".repeat(32))])
      expect(codes(proof)).toEqual(["unreadable-proof"]);
  });
});

test("an entry has 16 MiB at most, and is UTF-8, wherever its bytes lie", () => {
  const bytes = (size: number) => reader.read(Buffer.alloc(size, " "), NO_PREDECESSOR, 0, null);
  expect(() => bytes(MAX_ENTRY_BYTES + 1)).toThrow(
    refused(`The entry is longer than ${16 * 2 ** 20} bytes.`, "payload-too-large"),
  );
  expect(() => bytes(MAX_ENTRY_BYTES)).toThrow(refused("Malformed JSON"));
  const around = Buffer.concat([Buffer.from("{["), line(entry), Buffer.from("]}")]);
  expect(reader.read(around.subarray(2, -2), NO_PREDECESSOR, 0, null).event.payload).toEqual({ n: 1 });
  expect(() => reader.read(Buffer.from([0x22, 0xff, 0x22]), NO_PREDECESSOR, 0, null)).toThrow(refused("not UTF-8"));
});

test("a time must be one that the log can count, and it means an instant in every spelling", () => {
  const at = (text: string) => read({ ...entry, timestamp: text });
  expect(at("2020-01-01 02:00+02").event.timestamp).toBe("2020-01-01T00:00:00.000000Z");
  expect(at("2020-01-01 02:00+02")).toMatchObject({
    micros: Date.UTC(2020, 0, 1) * 1000,
    canonicalTimestamp: undefined,
  });
  expect(at("2255-01-01T00:00:00Z").micros).toBe(Date.UTC(2255, 0, 1) * 1000);
  for (const text of ["1684-01-01", "2256-01-01"]) expect(() => at(text), text).toThrow(refused("1685 and 2255"));
  expect(() => at("noon")).toThrow(refused("The timestamp is not an ISO 8601 date and time."));
});

test("only where events are checked must an entry be one", async () => {
  const strict = await createHistoryReader({ checksEvents: true });
  const [odd] = chain([{ chain_version: 2, event_type: "of nobody" }]) as [MadeEntry];
  expect(read(odd).event).toMatchObject({ id: 1, leafIndex: 7, event_type: "of nobody" });
  expect(() => strict.read(line(odd), NO_PREDECESSOR, 0, null)).toThrow(refused("The event type"));
  expect(strict.read(line(entry), NO_PREDECESSOR, 0, null).id).toBe(1);
});

describe("an entry that is spelled as this log spells entries", () => {
  const TIMESTAMP = "2026-01-01T00:00:00.000000Z";
  /** @param payload JSON text, which the hash covers as it is */
  const spelled = (payload: string): string => {
    const preimage = `service.log.entry.v2\0{"payload":${payload},"previous_hash":null,"timestamp":"${TIMESTAMP}"}`;
    const hash = createHash("sha256").update(preimage).digest("hex");
    return (
      `{"id":1,"timestamp":"${TIMESTAMP}","event_type":"note","payload":${payload},"previous_hash":null,` +
      `"entry_hash":"${hash}","chain_version":2,` +
      `"entry_hashes":[{"algorithm":"sha2-256","digest_hex":"${hash}","is_primary":true}]}`
    );
  };
  const readText = (text: string) => reader.read(Buffer.from(text, "utf8"), NO_PREDECESSOR, 0, null);
  /** @param levels of the whole entry */
  const nested = (levels: number) => `{"a":${"[".repeat(levels - 2)}${"]".repeat(levels - 2)}}`;

  test.each([
    ["a member twice", '{"a":1,"a":1}'],
    ["a member that sets a prototype", '{"__proto__":{}}'],
    ["half of a surrogate pair", '{"a":"\\ud800"}'],
    ["more than 64 levels", nested(65)],
    ["a number that a double does not hold", '{"a":12345678901234567890}'],
  ])("is refused with %s", (_, payload) => {
    expect(() => readText(spelled(payload))).toThrow(expect.objectContaining({ code: "not-i-json" }));
  });

  test("is taken with 64 levels, and its bytes are served as they are", () => {
    const text = spelled(nested(64));
    expect(readText(text).json.toString("utf8")).toBe(text);
  });

  test("is read as one with white space", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue()), (payload) => {
        const text = spelled(canonicalize(payload)!);
        const outcome = (given: string) => {
          try {
            return readText(given);
          } catch (error) {
            return { code: (error as { code?: string }).code, message: (error as Error).message };
          }
        };
        expect(outcome(text)).toEqual(outcome(`${text} `));
      }),
    );
  });
});
