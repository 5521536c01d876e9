/** Signed notes, verifier keys and cosignatures, against the specifications' own examples and node:crypto. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  cosignatureMessage,
  decodeCosignature,
  encodeCosignature,
  formatNote,
  formatVkey,
  isNoteName,
  parseNote,
  parseSignatureLines,
  parseVkey,
  signatureLine,
  verifyNote,
} from "#cairnlog/engine/verify/index.js";
import { newMlDsaSigner, newNoteSigner, unknownVkey } from "./notes.js";

// The example in c2sp.org/signed-note.
const VKEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
const NOTE = `This is an example message.

\u2014 example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
`;

describe("verifier keys", () => {
  // Those of Go's golang.org/x/mod/sumdb/note, too.
  test.each([
    VKEY,
    "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8",
    newNoteSigner("witness.example/w1", 4).vkey,
    newMlDsaSigner("witness.example/w2").vkey,
  ])("%s is read and written the same", (vkey) => {
    const key = parseVkey(vkey);
    expect(`${key.name}+${key.id}`).toBe(vkey.split("+").slice(0, 2).join("+"));
    expect(formatVkey(key)).toBe(vkey);
  });

  test("a type is part of the key and of its id", () => {
    const signer = newNoteSigner("witness.example/w1", 4);
    expect(parseVkey(signer.vkey).type).toBe("cosignature/v1");
    expect(parseVkey(VKEY).type).toBe("ed25519");
    const [name, id] = signer.vkey.split("+");
    const asPlain = Buffer.concat([Buffer.of(1), signer.point]).toString("base64");
    expect(() => parseVkey(`${name}+${id}+${asPlain}`)).toThrow("misspelt");
  });

  const point = newNoteSigner("a").point;
  const withBytes = (bytes: Uint8Array) => `a+00000000+${Buffer.from(bytes).toString("base64")}`;
  test.each([
    ["nothing", ""],
    ["no plus sign", "example.com/foo"],
    ["no key", "example.com/foo+530d903a"],
    ["an empty key", "example.com/foo+530d903a+"],
    ["no name", VKEY.slice(VKEY.indexOf("+"))],
    ["a space in the name", `a ${VKEY}`],
    ["a line feed after it", `${VKEY}\n`],
    ["an id in upper case", VKEY.replace("530d903a", "530D903A")],
    ["a short id", VKEY.replace("530d903a", "530d903")],
    ["another id", VKEY.replace("530d903a", "530d903b")],
    ["another name", VKEY.replace("foo", "fop")],
    ["loose base64", VKEY.replace(/.$/, "!")],
    ["a short key", withBytes(Uint8Array.of(1, ...point.subarray(1)))],
    ["a long key", withBytes(Uint8Array.of(1, ...point, 0))],
    ["a type only", withBytes(Uint8Array.of(1))],
    ["ECDSA", withBytes(Uint8Array.of(2, ...point))],
    ["ML-DSA-44 under another id", withBytes(Uint8Array.of(6, ...new Uint8Array(1312)))],
    ["a short key of ML-DSA-44", newMlDsaSigner("a").vkey.slice(0, -4)],
    ["a type that nobody knows", unknownVkey("a")],
    ["a point of small order", withBytes(Uint8Array.of(1, 1, ...new Uint8Array(31)))],
    ["no point", withBytes(Uint8Array.of(1, ...new Uint8Array(32).fill(0xff)))],
    ["a long text", `${"a".repeat(8200)}${VKEY}`],
    ["no text", undefined as never],
  ])("%s is refused", (_, vkey) => {
    expect(() => parseVkey(vkey)).toThrow(expect.objectContaining({ code: "invalid-key" }));
  });
});

describe("notes", () => {
  const text = "a text\n\nof three lines\n";
  const log = newNoteSigner("log.example");
  const witness = newNoteSigner("witness.example", 4);
  const keys = [log, witness].map(({ vkey }) => parseVkey(vkey));

  test("the specification's example holds", async () => {
    const verified = await verifyNote(NOTE, [parseVkey(VKEY)]);
    expect(verified?.text).toBe("This is an example message.\n");
    expect(verified?.signatures.map(({ key, time }) => [key.name, time])).toEqual([["example.com/foo", null]]);
    expect(await verifyNote(NOTE.replace("example m", "Example m"), [parseVkey(VKEY)])).toBeNull();
  });

  test("a note is taken apart at its last empty line, and put together again", () => {
    const note = formatNote(text, [log.line(text), witness.line(text, 7)]);
    const parsed = parseNote(note)!;
    expect(parsed.text).toBe(text);
    expect(parsed.signatures.map(({ name, keyId }) => [name, keyId])).toEqual(
      [log, witness].map((signer) => [signer.name, signer.keyId.toString("hex")]),
    );
    expect(
      formatNote(
        parsed.text,
        parsed.signatures.map(({ line }) => line),
      ),
    ).toBe(note);
    const [first] = parsed.signatures;
    expect(signatureLine(first!.name, log.keyId, first!.signature)).toBe(first!.line);
  });

  test("signatures and cosignatures of known keys are found, each with its time", async () => {
    const stranger = newNoteSigner("log.example");
    const lines = [stranger.line(text), log.line(text), witness.line(text, 7), witness.line(text, 8), log.line(text)];
    const verified = await verifyNote(formatNote(text, lines), keys);
    expect(verified?.signatures.map(({ key, time, line }) => [key.name, time, line])).toEqual([
      ["log.example", null, lines[1]],
      ["witness.example", 7, lines[2]],
      ["witness.example", 8, lines[3]],
    ]);
    expect((await verifyNote(witness.note(text, 7), keys))?.signatures).toHaveLength(1);
    expect(await verifyNote(stranger.note(text), keys)).toBeNull();
    expect(await verifyNote(log.note(text), [])).toBeNull();
  });

  test("one line of a known key that does not hold spoils the note", async () => {
    for (const bad of [log.line("other\n"), witness.line("other\n")])
      for (const lines of [
        [bad, log.line(text)],
        [log.line(text), bad],
      ])
        expect(await verifyNote(formatNote(text, lines), keys)).toBeNull();
  });

  test("a cosignature is not a signature, and its time is signed", async () => {
    const pair = newNoteSigner("w.example", 4);
    const asLog = parseVkey(pair.vkey);
    const line = pair.line(text, 1_000);
    const moved = Buffer.from(line.split(" ")[2]!, "base64");
    moved.writeBigUInt64BE(1_001n, 4);
    const asText = `\u2014 w.example ${Buffer.concat([pair.keyId, moved.subarray(12)]).toString("base64")}\n`;
    for (const bad of [`\u2014 w.example ${moved.toString("base64")}\n`, asText])
      expect(await verifyNote(formatNote(text, [bad]), [asLog])).toBeNull();
    expect((await verifyNote(formatNote(text, [line]), [asLog]))?.signatures[0]?.time).toBe(1_000);
  });

  test("times of a cosignature go up to 2^53 − 1", async () => {
    for (const time of [0n, 1n, 2n ** 32n, 2n ** 53n - 1n])
      expect((await verifyNote(witness.note(text, time), keys))?.signatures[0]?.time).toBe(Number(time));
    for (const time of [2n ** 53n, 2n ** 63n, 2n ** 64n - 1n])
      expect(await verifyNote(witness.note(text, time), keys)).toBeNull();
  });

  test("a given function checks the signatures", async () => {
    const asked: string[] = [];
    const check = (_: unknown, message: Uint8Array) => asked.push(Buffer.from(message).toString()) > 0;
    expect(await verifyNote(formatNote(text, [log.line("x\n"), witness.line("x\n", 9)]), keys, check)).not.toBeNull();
    expect(asked).toEqual([text, `cosignature/v1\ntime 9\n${text}`]);
  });

  test("signature lines are read alone, as a witness answers", () => {
    expect(parseSignatureLines(witness.line(text) + log.line(text))).toHaveLength(2);
    expect(parseSignatureLines(`\u2014 odd+name AAAAAAAA\n${log.line(text)}`)).toHaveLength(1);
    for (const odd of ["", "\n", `${log.line(text)}\n`, log.line(text).trimEnd(), "x\n", `\n${log.line(text)}`, null])
      expect(parseSignatureLines(odd)).toBeUndefined();
    expect(parseSignatureLines(log.line(text).repeat(100))).toHaveLength(100);
    expect(parseSignatureLines(log.line(text).repeat(101))).toBeUndefined();
  });

  test("any text is taken apart or refused, and what is taken apart holds together", async () => {
    const part = fc.constantFrom("\n", "\n\n", "\u2014 ", "a", " ", "AAAAAAA=", "AAAAAAAA", "+", "\r", "\t", "\ud800");
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string(),
          fc.array(part).map((all) => all.join("")),
        ),
        async (odd) => {
          const parsed = parseNote(odd);
          expect(await verifyNote(odd, keys)).toBeNull();
          if (!parsed) return;
          expect(odd.startsWith(`${parsed.text}\n\u2014 `)).toBe(true);
          expect(parsed.text.endsWith("\n")).toBe(true);
          for (const { name, line, signature } of parsed.signatures) {
            expect(isNoteName(name) && odd.includes(`\n${line}`)).toBe(true);
            expect(signature.length).toBeGreaterThan(0);
          }
        },
      ),
    );
  });
});

test("cosignatures are read and written the same", () => {
  const key = parseVkey(newNoteSigner("w", 4).vkey);
  const bytesOf = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.oneof(bytesOf(64), bytesOf(2420)), (time, signature) => {
      const bytes = encodeCosignature({ time, signature });
      expect(Buffer.from(bytes).readBigUInt64BE(0)).toBe(BigInt(time));
      expect(decodeCosignature(bytes)).toEqual({ time, signature });
      expect(Buffer.from(cosignatureMessage(key, time, "a\n")!).toString()).toBe(`cosignature/v1\ntime ${time}\na\n`);
    }),
  );
  for (const length of [0, 64, 71, 73, 2427, 2429]) expect(decodeCosignature(new Uint8Array(length))).toBeUndefined();
});
