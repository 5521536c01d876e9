/** The OpenTimestamps codec, tested with bytes written by hand and with hostile bytes. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import {
  OtsTimestamp,
  otsCommitments,
  parseOtsFile,
  parseOtsTimestamp,
  serialiseOtsFile,
  serialiseOtsTimestamp,
} from "#cairnlog/engine/verify/ots/ots.js";
import {
  append,
  attestation,
  BITCOIN,
  bitcoin,
  detached,
  HEADER,
  hash,
  hex,
  PENDING,
  pending,
  prepend,
  type Tree,
  timestamp,
  varbytes,
  varuint,
} from "./otsbytes.js";

const DIGEST = hash("sha256", Buffer.from("a file"));
const URI = "https://c.example/x";
const END = hex("00", pending(URI));
const unknown = attestation("0102030405060708", hex("ff00"));

const bytesOf = (value: Uint8Array) => Buffer.from(value).toString("hex");
const parse = (bytes: Uint8Array) => parseOtsTimestamp(bytes, DIGEST);
const rewritten = (bytes: Uint8Array) => bytesOf(serialiseOtsTimestamp(parse(bytes)));

function refusal(bytes: Uint8Array, read: (bytes: Uint8Array) => unknown = parse): string {
  try {
    read(bytes);
  } catch (error) {
    expect(error).toBeInstanceOf(CairnlogError);
    expect(error).toMatchObject({ code: "invalid-input" });
    return (error as Error).message;
  }
  throw new Error(`${bytesOf(bytes).slice(0, 200)} was accepted`);
}

describe("a detached file", () => {
  test("that is pending", () => {
    const bytes = hex(
      "004f70656e54696d657374616d7073000050726f6f6600bf89e2e884e89294 01 08",
      DIGEST,
      "f010 000102030405060708090a0b0c0d0e0f 08 00 83dfe30d2ef90c8e 0e 0d 68747470733a2f2f632e622f61",
    );
    const file = parseOtsFile(bytes);
    expect(file.hash).toBe("sha256");
    expect(bytesOf(file.timestamp.message)).toBe(bytesOf(DIGEST));
    expect(otsCommitments(file.timestamp)).toEqual([{ kind: "pending", uri: "https://c.b/a" }]);
    expect(bytesOf(serialiseOtsFile(file))).toBe(bytesOf(bytes));
  });

  test("that was upgraded ends as the format says", () => {
    const mac = hex("aabbccddeeff0011");
    const uri = "https://c.b.example/ab";
    const end = hex("ff 00 83dfe30d2ef90c8e 17 16", Buffer.from(uri), "08 00 0588960d73d71901 03 80ea30");
    const bytes = detached(DIGEST, hex("f008", mac, end));
    const file = parseOtsFile(bytes);
    const root = hash("sha256", hex(DIGEST, mac));
    expect(otsCommitments(file.timestamp)).toEqual([
      { kind: "pending", uri },
      { kind: "bitcoin", height: 800_000, merkleRoot: bytesOf(root.reverse()) },
    ]);
    expect(bytesOf(serialiseOtsFile(file))).toBe(bytesOf(bytes));
  });

  test.each([
    ["02", "sha1", 20],
    ["03", "ripemd160", 20],
    ["08", "sha256", 32],
  ] as const)("over a digest of kind %s (%s)", (tag, name, length) => {
    const bytes = hex(HEADER, tag, DIGEST.subarray(0, length), END);
    expect(parseOtsFile(bytes).hash).toBe(name);
    expect(bytesOf(serialiseOtsFile(parseOtsFile(bytes)))).toBe(bytesOf(bytes));
    for (const other of [length - 1, length + 1]) {
      const timestamp = parseOtsTimestamp(END, Buffer.alloc(other, 7));
      expect(() => serialiseOtsFile({ hash: name, timestamp })).toThrow(`The message is not a digest of ${name}.`);
    }
  });

  test("of another magic, version or kind of digest, or with bytes after its end, is refused", () => {
    const bytes = detached(DIGEST, END);
    for (let at = 0; at < HEADER.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1;
      refusal(changed, parseOtsFile);
    }
    for (const tag of ["67", "f2", "f3", "f00101"])
      expect(refusal(hex(HEADER, tag, DIGEST, END), parseOtsFile)).toContain("about a digest that no file has");
    for (const tag of ["00", "09"]) expect(refusal(hex(HEADER, tag, DIGEST, END), parseOtsFile)).toContain("unknown");
    expect(refusal(hex(HEADER.subarray(0, -1), "02", "08", DIGEST, END), parseOtsFile)).toContain("version 2");
    expect(refusal(hex(bytes, "00"), parseOtsFile)).toContain("Bytes follow");
    expect(refusal(Buffer.alloc(0), parseOtsFile)).toContain("ends too early");
  });
});

describe("operations", () => {
  test.each([
    ["append", append(hex("0aff")), hex(DIGEST, "0aff")],
    ["prepend", prepend(hex("0aff")), hex("0aff", DIGEST)],
    ["sha256", hex("08"), hash("sha256", DIGEST)],
    ["sha1", hex("02"), hash("sha1", DIGEST)],
    ["ripemd160", hex("03"), hash("ripemd160", DIGEST)],
    ["reverse", hex("f2"), Buffer.from(DIGEST).reverse()],
    ["hexlify", hex("f3"), Buffer.from(bytesOf(DIGEST))],
  ] as const)("%s", (name, operation, result) => {
    const [branch] = parse(hex(operation, END)).branches;
    expect(branch!.operation.name).toBe(name);
    expect(bytesOf(branch!.next.message)).toBe(bytesOf(result));
    expect(rewritten(hex(operation, END))).toBe(bytesOf(hex(operation, END)));
  });

  test("keccak256 is Keccak as it was before it became SHA-3", () => {
    const node = new OtsTimestamp(Buffer.from("abc")).branch({ name: "keccak256" });
    expect(bytesOf(node.message)).toBe("4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45");
    expect(rewritten(hex("67", END))).toBe(bytesOf(hex("67", END)));
  });

  test("that are not known are refused", () => {
    const known = [0x00, 0x02, 0x03, 0x08, 0x67, 0xf0, 0xf1, 0xf2, 0xf3, 0xff];
    for (let tag = 0; tag < 256; tag++)
      if (!known.includes(tag)) expect(refusal(hex(Buffer.of(tag), END))).toContain("unknown operation");
    expect(refusal(hex("ffff", END))).toContain("unknown operation");
  });
});

describe("the limits", () => {
  test("arguments have 1 to 4096 bytes, results at most 4096", () => {
    refusal(hex("f000", END));
    refusal(hex(append(Buffer.alloc(4097)), END));
    refusal(hex(append(Buffer.alloc(4096)), END));
    expect(parse(hex(append(Buffer.alloc(4096 - 32)), END)).branches[0]!.next.message).toHaveLength(4096);
    expect(refusal(hex(append(Buffer.alloc(4096 - 31)), END))).toContain("too long");
    expect(refusal(hex(prepend(Buffer.alloc(4096 - 31)), END))).toContain("too long");
    expect(parse(hex(append(Buffer.alloc(2048 - 32)), "f3", END))).toBeDefined();
    expect(parseOtsTimestamp(END, Buffer.of(7)).message).toHaveLength(1);
    expect(parseOtsTimestamp(END, Buffer.alloc(4096)).message).toHaveLength(4096);
    expect(refusal(hex(append(Buffer.alloc(2049 - 32)), "f3", END))).toContain("too long");
    for (const length of [0, 4097]) expect(() => new OtsTimestamp(new Uint8Array(length))).toThrow(CairnlogError);
  });

  test("256 messages are nested, and no more", () => {
    const nested = (operations: number) => hex("08".repeat(operations), END);
    expect(rewritten(nested(255))).toBe(bytesOf(nested(255)));
    expect(refusal(nested(256))).toContain("nested");
    expect(refusal(nested(60_000))).toContain("nested");
    const deep = parse(nested(255));
    [...deep.nodes()].at(-1)!.merge(parseOtsTimestamp(hex("08", END), [...deep.nodes()].at(-1)!.message));
    expect(() => serialiseOtsTimestamp(deep)).toThrow(/nested/);
  });

  test("payloads have at most 8192 bytes", () => {
    const withPayload = (length: number) => hex("00", attestation("0102030405060708", Buffer.alloc(length)));
    expect(rewritten(withPayload(8192))).toBe(bytesOf(withPayload(8192)));
    refusal(withPayload(8193));
  });

  test("addresses have at most 1000 characters of a small alphabet", () => {
    expect(rewritten(hex("00", pending("a".repeat(1000))))).toBe(bytesOf(hex("00", pending("a".repeat(1000)))));
    refusal(hex("00", pending("a".repeat(1001))));
    const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._/:";
    for (let code = 0; code < 256; code++) {
      const bytes = hex("00", pending(`https://${String.fromCharCode(code)}`));
      if (allowed.includes(String.fromCharCode(code))) expect(rewritten(bytes)).toBe(bytesOf(bytes));
      else expect(refusal(bytes)).toContain("character");
    }
  });

  test("numbers are at most 2^53 − 1", () => {
    const height = (payload: Uint8Array) => otsCommitments(parse(hex("00", attestation(BITCOIN, payload))));
    for (const value of [0, 127, 128, 800_000, 2 ** 32, Number.MAX_SAFE_INTEGER])
      expect(height(varuint(value))).toMatchObject([{ height: value }]);
    for (const payload of ["ffffffffffffff1f", "ff".repeat(8), `${"80".repeat(8)}01`, "", "80"])
      refusal(hex("00", attestation(BITCOIN, hex(payload))));
    expect(height(hex("8000"))).toMatchObject([{ height: 0 }]);
    expect(rewritten(hex("00", attestation(BITCOIN, hex("8000"))))).toBe(bytesOf(hex("00", bitcoin(0))));
  });

  test("known payloads end where their content ends", () => {
    expect(refusal(hex("00", attestation(PENDING, hex(varbytes(Buffer.from(URI)), "00"))))).toContain("Bytes follow");
    expect(refusal(hex("00", attestation(BITCOIN, hex(varuint(5), "00"))))).toContain("Bytes follow");
    expect(refusal(hex("00", attestation(PENDING, hex("05", "61"))))).toContain("too early");
  });

  test("a proof has at most 65,536 bytes and 4096 items, so no input costs more than 4096 hashes of 4 KB", () => {
    const large = append(Buffer.alloc(4000));
    const chains = Array.from({ length: 200 }, (_, i) => hex("ff", append(Buffer.of(i)), "67".repeat(200), END));
    expect(refusal(hex(large, ...chains, END))).toContain("4096");
    expect(refusal(Buffer.alloc(65_537))).toContain("65536");
    const root = new OtsTimestamp(DIGEST);
    for (let height = 0; height < 4096; height++) root.attest({ kind: "bitcoin", height });
    expect(parse(serialiseOtsTimestamp(root)).attestations).toHaveLength(4096);
    root.attest({ kind: "bitcoin", height: 4096 });
    expect(() => serialiseOtsTimestamp(root)).toThrow(/4096/);
    const wide = new OtsTimestamp(DIGEST);
    for (let i = 0; i < 9; i++) wide.attest({ kind: "unknown", tag: `${i}`.repeat(16), payload: new Uint8Array(8000) });
    expect(() => serialiseOtsTimestamp(wide)).toThrow(/65536/);
    // Eight items of 8,180 bytes with 12 further bytes each (mark, tag, length) are 65,536, without the byte that
    // precedes each item except the last.
    const full = new OtsTimestamp(DIGEST);
    for (let i = 0; i < 8; i++)
      full.attest({ kind: "unknown", tag: `${i}`.repeat(16), payload: new Uint8Array(i ? 8181 : 8174) });
    expect(serialiseOtsTimestamp(full)).toHaveLength(65_536);
    expect(parse(serialiseOtsTimestamp(full)).attestations).toHaveLength(8);
    full.attest({ kind: "pending", uri: "" });
    expect(() => serialiseOtsTimestamp(full)).toThrow(/65536/);
  });
});

describe("what a proof commits to", () => {
  test("unknown attestations are kept as they are", () => {
    expect(rewritten(hex("00", unknown))).toBe(bytesOf(hex("00", unknown)));
    expect(otsCommitments(parse(hex("00", unknown)))).toEqual([{ kind: "unknown", tag: "0102030405060708" }]);
  });

  test("a Bitcoin attestation of what cannot be a Merkle root proves nothing", () => {
    const bytes = hex("02", "00", bitcoin(7));
    expect(otsCommitments(parse(bytes))).toEqual([{ kind: "unknown", tag: BITCOIN }]);
    expect(rewritten(bytes)).toBe(bytesOf(bytes));
  });

  test.each([
    ["a Buffer", (bytes: Buffer) => bytes],
    ["plain bytes", (bytes: Buffer) => new Uint8Array(bytes)],
  ])("is told in the order of the tree, again and again, and changes nothing that was given (%s)", (_, given) => {
    const bytes = hex("ff00", bitcoin(1), "ff", "02", "00", pending("https://a"), "08", "ff00", bitcoin(2), "f2", END);
    const message = given(Buffer.from(DIGEST));
    const tree = parseOtsTimestamp(given(bytes), message);
    const digest = hash("sha256", DIGEST);
    const root = (message: Buffer) => bytesOf(Buffer.from(message).reverse());
    const told = [
      { kind: "bitcoin", height: 1, merkleRoot: root(DIGEST) },
      { kind: "pending", uri: "https://a" },
      { kind: "bitcoin", height: 2, merkleRoot: root(digest) },
      { kind: "pending", uri: URI },
    ];
    expect(otsCommitments(tree)).toEqual(told);
    expect(otsCommitments(tree)).toEqual(told);
    expect([...tree.nodes()].map(({ message }) => bytesOf(message))).toEqual([
      bytesOf(DIGEST),
      bytesOf(hash("sha1", DIGEST)),
      bytesOf(digest),
      root(digest),
    ]);
    expect(bytesOf(message)).toBe(bytesOf(DIGEST));
  });

  test("is read from bytes that may be used again", () => {
    const bytes = detached(DIGEST, hex("f2", "ff00", unknown, append(DIGEST), END));
    const before = Buffer.from(bytes);
    const file = parseOtsFile(bytes);
    expect(bytes.equals(before)).toBe(true);
    bytes.fill(0);
    expect(bytesOf(serialiseOtsFile(file))).toBe(bytesOf(before));
  });

  test("a node that nothing attests cannot be written", () => {
    expect(() => serialiseOtsTimestamp(new OtsTimestamp(DIGEST))).toThrow(/neither/);
  });
});

describe("merging", () => {
  test("adds at the pending node what a calendar knows, and loses nothing", () => {
    const path = append(hex("0a"));
    const tree = parse(hex(path, END));
    const node = tree.branches[0]!.next;
    const answer = parseOtsTimestamp(hex("08 00", bitcoin(800_000)), node.message);
    node.merge(answer);
    node.merge(answer);
    expect(bytesOf(serialiseOtsTimestamp(tree))).toBe(bytesOf(hex(path, "ff", END, "08 00", bitcoin(800_000))));
  });

  test("the same operation twice leads to one node, which has what followed either", () => {
    const other = hex("00", pending("https://other.example"));
    expect(rewritten(hex("ff", "08", END, "08", other))).toBe(bytesOf(hex("08", "ff", END, other)));
    const tree = new OtsTimestamp(DIGEST);
    const node = tree.branch({ name: "sha256" });
    expect(tree.branch({ name: "sha256" })).toBe(node);
    expect(tree.branch({ name: "sha1" })).not.toBe(node);
  });

  test("a bare timestamp ends where its last item ends", () => {
    expect(refusal(hex(END, "00"))).toContain("Bytes follow");
  });

  test("refuses what is about another message", () => {
    const other = parseOtsTimestamp(END, hash("sha256", DIGEST));
    expect(() => parse(END).merge(other)).toThrow(CairnlogError);
  });
});

/** Trees in their canonical order, and the same trees with their items in another order. */
const bytesArbitrary = fc.uint8Array({ minLength: 1, maxLength: 12 });
const attestationArbitrary = fc.oneof(
  fc.stringMatching(/^[a-z/:.]{0,12}$/).map((uri) => ({ order: `8${uri}`, bytes: pending(uri) })),
  fc.nat(2 ** 30).map((height) => ({ order: `0${`${height}`.padStart(12, "0")}`, bytes: bitcoin(height) })),
  fc
    .tuple(fc.constantFrom("9999999999999990", "9999999999999991"), bytesArbitrary)
    .map(([tag, payload]) => ({ order: `${tag}${bytesOf(payload)}`, bytes: attestation(tag, payload) })),
);
const operationArbitrary = fc.oneof(
  fc.constantFrom("02", "03", "08", "67", "f2").map((tag) => ({ order: tag, bytes: hex(tag) })),
  bytesArbitrary.map((argument) => ({ order: `f0${bytesOf(argument)}`, bytes: append(argument) })),
  bytesArbitrary.map((argument) => ({ order: `f1${bytesOf(argument)}`, bytes: prepend(argument) })),
);
type Ordered = { order: string; bytes: Buffer };
type Drawn = { attestations: Ordered[]; operations: [Ordered, Drawn][] };
const { tree: treeArbitrary } = fc.letrec<{ tree: Drawn }>((tie) => ({
  tree: fc.record({
    attestations: fc.uniqueArray(attestationArbitrary, { maxLength: 3, selector: ({ order }) => order }),
    operations: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constant<[Ordered, Drawn][]>([]),
      fc.uniqueArray(fc.tuple(operationArbitrary, tie("tree")), { maxLength: 3, selector: ([{ order }]) => order }),
    ),
  }),
}));
const byOrder = (a: Ordered, b: Ordered) => (a.order < b.order ? -1 : 1);
const filled = ({ attestations, operations }: Drawn): Tree => ({
  attestations: (attestations.length + operations.length ? attestations : [{ bytes: bitcoin(1) }]).map((a) => a.bytes),
  operations: operations.map(([{ bytes }, next]) => [bytes, filled(next)] as const),
});
const inOrder = ({ attestations, operations }: Drawn): Drawn => ({
  attestations: attestations.toSorted(byOrder),
  operations: operations.toSorted(([a], [b]) => byOrder(a, b)).map(([operation, next]) => [operation, inOrder(next)]),
});

describe("any tree", () => {
  test("is written in canonical order, however it came", () => {
    fc.assert(
      fc.property(treeArbitrary, (drawn) => {
        const canonical = timestamp(filled(inOrder(drawn)));
        expect(rewritten(timestamp(filled(drawn)))).toBe(bytesOf(canonical));
        expect(rewritten(canonical)).toBe(bytesOf(canonical));
      }),
      { numRuns: 300 },
    );
  });

  test("cut short anywhere is refused", () => {
    fc.assert(
      fc.property(treeArbitrary, (drawn) => {
        const bytes = detached(DIGEST, timestamp(filled(drawn)));
        for (let length = 0; length < bytes.length; length++) refusal(bytes.subarray(0, length), parseOtsFile);
      }),
      { numRuns: 20 },
    );
  });

  test("with any bytes changed is refused, or read as something else that can be written", () => {
    const change = fc.record({ at: fc.nat(), drop: fc.nat(3), insert: fc.uint8Array({ maxLength: 4 }) });
    fc.assert(
      fc.property(treeArbitrary, fc.array(change, { minLength: 1, maxLength: 4 }), (drawn, changes) => {
        let bytes = detached(DIGEST, timestamp(filled(drawn)));
        for (const { at, drop, insert } of changes) {
          const from = at % (bytes.length + 1);
          bytes = hex(bytes.subarray(0, from), insert, bytes.subarray(from + drop));
        }
        try {
          const written = serialiseOtsFile(parseOtsFile(bytes));
          expect(bytesOf(serialiseOtsFile(parseOtsFile(written)))).toBe(bytesOf(written));
        } catch (error) {
          expect(error).toBeInstanceOf(CairnlogError);
        }
      }),
      { numRuns: 1000 },
    );
  });

  test("no bytes at all make it fail in any other way", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          otsCommitments(parse(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(CairnlogError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
