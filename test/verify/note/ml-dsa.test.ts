/** ML-DSA-44 in notes and policies, against vectors of Wycheproof, of a log in Go, and of OpenSSL. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  cosignatureMessage,
  formatNote,
  formatVkey,
  parsePolicy,
  parseVkey,
  verifyByPolicy,
  verifyNote,
} from "#cairnlog/engine/verify/index.js";
import { checkpointOf, newMlDsaSigner, newNoteSigner, unknownVkey } from "./notes.js";

const vectors = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../vectors/ml-dsa-44/${name}.json`, import.meta.url), "utf8"));
const wycheproof: { id: number; comment: string; [part: string]: string | number | boolean }[] =
  vectors("wycheproof").tests;
const torchwood: { vkey: string; note: string } = vectors("torchwood");
const openssl: { vkey: string; cosignatures: { time: number; message: string; note: string }[] } = vectors("openssl");

describe("signatures of Wycheproof", () => {
  test.each(wycheproof)("$id: $comment", async ({ publicKey, message, signature, valid }) => {
    const { verifyMlDsa44 } = await import("#cairnlog/engine/verify/keys/ml-dsa.js");
    const [key, signed, by] = [publicKey, message, signature].map((text) => Buffer.from(String(text), "base64"));
    expect(await verifyMlDsa44(key!, signed!, by!)).toBe(valid);
  });
});

describe("the checkpoint of a log in Go", () => {
  const key = () => parseVkey(torchwood.vkey);

  test("is signed by the log's key, without a time", async () => {
    expect(key()).toMatchObject({ name: "example.com/mldsa-log", id: "b5df45c5", type: "subtree/v1", key: null });
    expect(formatVkey(key())).toBe(torchwood.vkey);
    const verified = await verifyNote(torchwood.note, [key()]);
    expect(verified?.signatures.map(({ key: by, time }) => [by.name, time])).toEqual([["example.com/mldsa-log", 0]]);
  });

  test("passes a policy that names the log", async () => {
    const verdict = await verifyByPolicy(torchwood.note, parsePolicy(`log ${torchwood.vkey}\nquorum none`));
    expect(verdict).toMatchObject({ checkpoint: { origin: "example.com/mldsa-log", treeSize: 1 }, hasQuorum: true });
  });

  test("of another size or root is not", async () => {
    for (const [from, to] of [
      ["\n1\n", "\n2\n"],
      ["+zoE", "+zoF"],
    ] as const)
      expect(await verifyNote(torchwood.note.replace(from, to), [key()])).toBeNull();
  });
});

describe("cosignatures of OpenSSL", () => {
  const { vkey, cosignatures } = openssl;

  test.each(cosignatures)("at the time $time", async ({ time, message, note }) => {
    const key = parseVkey(vkey);
    const [text] = note.split(/(?<=\n)\n/) as [string];
    expect(Buffer.from(cosignatureMessage(key, time, text)!).toString("hex")).toBe(message);
    expect((await verifyNote(note, [key]))?.signatures).toEqual([expect.objectContaining({ key, time })]);
    // A checkpoint of another log, and another time.
    expect(await verifyNote(note.replace("log.example/1", "log.example/2"), [key])).toBeNull();
    const line = note.slice(note.lastIndexOf(" ") + 1);
    const moved = Buffer.from(line, "base64");
    moved[11]! ^= 1;
    expect(await verifyNote(note.replace(line, `${moved.toString("base64")}\n`), [key])).toBeNull();
  });

  test("say nothing about extension lines", async () => {
    const { note, time } = cosignatures[0]!;
    const extended = note.replace("\n\n", "\nan extension\n\n");
    expect((await verifyNote(extended, [parseVkey(vkey)]))?.signatures[0]?.time).toBe(time);
  });

  test("commit to the name of the witness", async () => {
    const { note } = cosignatures[0]!;
    const other = newMlDsaSigner("other.example");
    expect(await verifyNote(note.replace("witness.example/pq", other.name), [parseVkey(other.vkey)])).toBeNull();
    const { material } = parseVkey(vkey);
    const renamed = { ...parseVkey(vkey), name: "other.example", material };
    expect(await verifyNote(note.replace("witness.example/pq", "other.example"), [renamed])).toBeNull();
  });
});

describe("what ML-DSA-44 cannot sign", () => {
  const root = Buffer.alloc(32, 1);
  const longest = "n".repeat(255);
  const text = checkpointOf(longest, 3, root);

  test("names of up to 255 bytes it can", async () => {
    const signer = newMlDsaSigner(longest);
    expect((await verifyNote(signer.note(text, 5), [parseVkey(signer.vkey)]))?.signatures[0]?.time).toBe(5);
  });

  test("longer ones, and what is no checkpoint, are not signed, whatever the line has", async () => {
    const [signer, long] = [newMlDsaSigner("w"), newMlDsaSigner("é".repeat(127))];
    for (const [by, said] of [
      [signer, checkpointOf(`${longest}x`, 3, root)],
      [signer, "a text\n"],
      [signer, checkpointOf("log.example", 3, Buffer.alloc(31))],
    ] as const) {
      expect(cosignatureMessage(parseVkey(by.vkey), 5, said)).toBeUndefined();
      expect(await verifyNote(by.note(text).replace(text, said), [parseVkey(by.vkey)])).toBeNull();
    }
    // Counted in bytes.
    expect(cosignatureMessage(parseVkey(long.vkey), 5, text)).toBeDefined();
    const longer = { ...parseVkey(long.vkey), name: "é".repeat(128) };
    expect(cosignatureMessage(longer, 5, text)).toBeUndefined();
  });

  test("signatures of other lengths, and by other algorithms", async () => {
    const signer = newMlDsaSigner("w");
    const said = checkpointOf("log.example", 3, root);
    const own = Buffer.from(signer.line(said).split(" ")[2]!, "base64");
    const ed25519 = newNoteSigner("w", 4);
    const lineOf = (bytes: Uint8Array) => `\u2014 w ${Buffer.from(bytes).toString("base64")}\n`;
    for (const bytes of [own.subarray(0, -1), Buffer.concat([own, Buffer.of(0)]), own.subarray(0, 76)])
      expect(await verifyNote(formatNote(said, [lineOf(bytes)]), [parseVkey(signer.vkey)])).toBeNull();
    const asEd25519 = Buffer.concat([ed25519.keyId, own.subarray(4)]);
    expect(await verifyNote(formatNote(said, [lineOf(asEd25519)]), [parseVkey(ed25519.vkey)])).toBeNull();
  });
});

test("a line of a key of an unknown type is passed over, also when a known key has its name and id", async () => {
  const signer = newNoteSigner("log.example");
  const said = checkpointOf("log.example", 3, Buffer.alloc(32, 1));
  const vkey = unknownVkey(signer.name).replace("01234567", signer.keyId.toString("hex"));
  const { witnesses } = parsePolicy(`witness W ${vkey}\nquorum none`);
  const unknown = witnesses[0]!.key;
  expect(await verifyNote(signer.note(said), [unknown])).toBeNull();
  expect((await verifyNote(signer.note(said), [unknown, parseVkey(signer.vkey)]))?.text).toBe(said);
});
