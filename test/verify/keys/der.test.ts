/** A strict reader of DER, by X.690: every value has one encoding. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DerReader, TAG } from "#cairnlog/engine/verify/keys/publickey.js";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const integer = (text: string) => {
  const reader = new DerReader(hex(text));
  const value = Buffer.from(reader.readUnsigned()).toString("hex");
  reader.end();
  return value;
};
/** X.690 §8.1.3, §10.1. */
function element(tag: number, contents: Uint8Array): Buffer {
  const { length } = contents;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), contents]);
}

describe("an element", () => {
  it.each([0, 1, 127, 128, 129, 255, 256, 257, 511, 512, 65_535])(
    "of %d bytes is read, and what follows it",
    (length) => {
      const contents = Buffer.alloc(length, 7);
      const reader = new DerReader(
        Buffer.concat([element(TAG.sequence, contents), element(TAG.bitString, Buffer.alloc(0))]),
      );
      expect(Buffer.from(reader.read(TAG.sequence)).equals(contents)).toBe(true);
      expect(() => reader.end()).toThrow("bytes after the DER element");
      expect(reader.read(TAG.bitString)).toHaveLength(0);
      reader.end();
    },
  );

  it.each([
    ["a length in two bytes where one is enough", "30 81 01 00", "DER length is not minimal"],
    ["a length in two bytes where one is just enough", `30 81 7f ${"00".repeat(127)}`, "DER length is not minimal"],
    ["a length in three bytes where two are enough", `30 82 00 ff ${"00".repeat(255)}`, "DER length is not minimal"],
    ["an indefinite length", "30 80 00 00", "DER length out of range"],
    ["a length in four bytes", `30 83 01 00 00 ${"00".repeat(65_536)}`, "DER length out of range"],
    ["the reserved length", "30 ff 00", "DER length out of range"],
    ["another tag", "31 00", "unexpected DER tag"],
    ["no bytes", "", "truncated DER element"],
    ["no length", "30", "truncated DER element"],
    ["half a length", "30 82 01", "truncated DER element"],
    ["contents that are missing", "30 01", "truncated DER element"],
    ["contents that are cut short", "30 03 01 02", "truncated DER element"],
  ])("with %s is refused", (_, bytes, reason) => {
    expect(() => new DerReader(hex(bytes)).read(TAG.sequence)).toThrow(new RangeError(reason));
  });

  it("is read where the one before it ends, whatever they hold", () => {
    const elements = fc.array(fc.tuple(fc.constantFrom(...Object.values(TAG)), fc.uint8Array({ maxLength: 300 })));
    fc.assert(
      fc.property(elements, (list) => {
        const reader = new DerReader(Buffer.concat(list.map(([tag, contents]) => element(tag, contents))));
        for (const [tag, contents] of list) expect(new Uint8Array(reader.read(tag))).toEqual(contents);
        reader.end();
      }),
    );
  });
});

describe("an INTEGER", () => {
  it.each([
    ["02 01 00", ""],
    ["02 01 01", "01"],
    ["02 01 7f", "7f"],
    ["02 02 00 80", "80"],
    ["02 02 00 ff", "ff"],
    ["02 02 01 00", "0100"],
    ["02 03 00 80 00", "8000"],
  ])("%s is %j", (bytes, value) => expect(integer(bytes)).toBe(value));

  it.each([
    ["02 00", "DER INTEGER is empty or negative"],
    ["02 01 80", "DER INTEGER is empty or negative"],
    ["02 02 ff 00", "DER INTEGER is empty or negative"],
    ["02 02 00 00", "DER INTEGER has a superfluous zero byte"],
    ["02 02 00 7f", "DER INTEGER has a superfluous zero byte"],
    ["02 03 00 00 80", "DER INTEGER has a superfluous zero byte"],
    ["02 01 01 00", "bytes after the DER element"],
    ["03 01 01", "unexpected DER tag"],
  ])("%s is refused", (bytes, reason) => expect(() => integer(bytes)).toThrow(new RangeError(reason)));
});

it("the tags are those of X.690", () => {
  expect(TAG).toEqual({ integer: 2, bitString: 3, sequence: 0x30 });
});
