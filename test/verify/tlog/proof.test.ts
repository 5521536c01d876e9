/** Proof files: reading and writing them, and what they prove. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatTlogProof, parsePolicy, parseTlogProof, verifyTlogProof } from "#cairnlog/engine/verify/index.js";
import { checkpointOf, newNoteSigner } from "../note/notes.js";
import { hashOf, plainInclusion, plainRoot } from "./plain-rfc6962.js";

const log = newNoteSigner("log.example/1");
const witness = newNoteSigner("witness.example", 4);
const leaves = Array.from({ length: 21 }, (_, i) => hashOf(0, Uint8Array.of(i)));
const text = checkpointOf(log.name, leaves.length, plainRoot(leaves));
const checkpoint = `${text}\n${log.line(text)}${witness.line(text)}`;
const policy = parsePolicy(`log ${log.vkey}\nwitness W ${witness.vkey}\nquorum W\n`);
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");

/** A proof file by its definition. */
const fileOf = (index: number, extra: string[] = []) =>
  [
    "c2sp.org/tlog-proof@v1",
    ...extra,
    `index ${index}`,
    ...plainInclusion(index, leaves).map(base64),
    "",
    checkpoint,
  ].join("\n");

describe("a file", () => {
  test.each([
    ["without extra data", fileOf(3), null],
    ["with extra data", fileOf(3, ["extra AQID"]), Uint8Array.of(1, 2, 3)],
    ["with empty extra data", fileOf(3, ["extra "]), new Uint8Array()],
  ])("%s is read and written the same", (_, file, extra) => {
    const proof = parseTlogProof(file);
    expect(proof).toEqual({ index: 3, extra, hashes: plainInclusion(3, leaves), checkpoint });
    expect(formatTlogProof(proof)).toBe(file);
  });

  test("of a log with one entry has no hashes", () => {
    const file = `c2sp.org/tlog-proof@v1\nindex 0\n\n${checkpoint}`;
    expect(parseTlogProof(file)).toMatchObject({ index: 0, hashes: [] });
    expect(formatTlogProof(parseTlogProof(file))).toBe(file);
  });

  const good = fileOf(3);
  const hash = base64(leaves[0]!);
  test.each([
    ["nothing", ""],
    ["another version", good.replace("@v1", "@v2")],
    ["a line before", `\n${good}`],
    ["carriage returns", good.replaceAll("\n", "\r\n")],
    ["no index", good.replace("index 3\n", "")],
    ["an index with a zero before it", good.replace("index 3", "index 03")],
    ["an index beyond 2^53", good.replace("index 3", "index 9007199254740993")],
    ["a negative index", good.replace("index 3", "index -3")],
    ["extra data after the index", good.replace("index 3\n", "index 3\nextra AQID\n")],
    ["extra data twice", good.replace("index", "extra AQID\nextra AQID\nindex")],
    ["extra data that is not base64", good.replace("index", "extra AQI\nindex")],
    ["a short hash", good.replace("index 3\n", "index 3\nAQID\n")],
    ["64 hashes", good.replace("index 3\n", `index 3\n${`${hash}\n`.repeat(64)}`)],
    ["64 hashes and extra data", good.replace("index 3\n", `extra AQID\nindex 3\n${`${hash}\n`.repeat(64)}`)],
    ["no checkpoint", good.slice(0, good.indexOf("\n\n"))],
    ["no text", undefined as never],
  ])("%s is refused", (_, file) => {
    expect(() => parseTlogProof(file)).toThrow(expect.objectContaining({ code: "invalid-input" }));
  });

  test("63 hashes are read", () => {
    const file = `c2sp.org/tlog-proof@v1\nextra AQID\nindex 3\n${`${hash}\n`.repeat(63)}\n${checkpoint}`;
    expect(parseTlogProof(file).hashes).toHaveLength(63);
  });

  test("any content comes back", () => {
    fc.assert(
      fc.property(
        fc.maxSafeNat(),
        fc.option(fc.uint8Array()),
        fc.array(fc.uint8Array({ minLength: 32, maxLength: 32 }), { maxLength: 63 }),
        fc.string(),
        (index, extra, hashes, note) => {
          const proof = { index, extra, hashes, checkpoint: note };
          expect(parseTlogProof(formatTlogProof(proof))).toEqual(proof);
        },
      ),
    );
  });
});

describe("a proof", () => {
  test("holds for its own entry, for every entry", async () => {
    for (const [index, leafHash] of leaves.entries()) {
      const proof = parseTlogProof(fileOf(index));
      const verdict = await verifyTlogProof(proof, leafHash, policy);
      expect(verdict).toMatchObject({ isValid: true, checkpoint: { origin: log.name, treeSize: leaves.length } });
      const other = leaves[(index + 1) % leaves.length]!;
      expect(await verifyTlogProof(proof, other, policy)).toMatchObject({ isValid: false });
      const moved = { ...proof, index: index + 1 };
      expect(await verifyTlogProof(moved, leafHash, policy)).toMatchObject({ isValid: false });
    }
  });

  test("needs a log and a quorum of the policy, and says what is missing", async () => {
    const proof = parseTlogProof(fileOf(3));
    const reason = async (told: object, by = policy) => {
      const verdict = await verifyTlogProof({ ...proof, ...told }, leaves[3]!, by);
      return verdict.isValid ? null : verdict.reason;
    };
    expect(await reason({})).toBeNull();
    expect(await reason({ checkpoint: log.note(text) })).toContain("quorum");
    expect(await reason({ checkpoint: witness.note(text) })).toContain("not validly signed");
    expect(await reason({ checkpoint: "" })).toContain("not validly signed");
    expect(await reason({ hashes: [] })).toContain("number 3 of the 21");
    const stranger = newNoteSigner(log.name);
    expect(await reason({}, parsePolicy(`log ${stranger.vkey}\nquorum none`))).toContain("not validly signed");
    expect(await reason({}, parsePolicy(`log ${log.vkey}\nquorum none`))).toBeNull();
  });
});
