/**
 * Texts and JSON values for property tests, in one place, so that every property is tested with texts that are easily
 * serialised wrongly. A mixture of all characters would not be enough, because code that escapes has a shortcut for
 * texts without special characters.
 */
import fc from "fast-check";

/** Many backslashes and quotation marks, and the letters of escapes. */
const ESCAPES = [...'\\\\\\\\""""/\'ubfnrt0123dDeE'];
/** Characters that JSON must escape, and others that careless code misreads. */
const CONTROLS = [
  ...Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code)),
  ..."\x7f\x80\x9f\u2028\u2029",
];

/** Any character. fast-check's own unit `binary` makes a table of all of them in each process, which takes 0.8 s. */
export const anyCharacter = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));

/** Well-formed texts: of ASCII only, of control characters, of the characters in escapes, and of all characters. */
export function texts(length: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> {
  const of = (unit: NonNullable<fc.StringConstraints["unit"]>) => fc.string({ ...length, unit });
  return fc.oneof(
    of("grapheme-ascii"),
    of(fc.constantFrom(...CONTROLS)),
    of(fc.constantFrom(...ESCAPES)),
    of("grapheme"),
    of(anyCharacter),
  );
}

/** JSON values whose texts and names are `texts`. */
export function jsonValues({ maxDepth = 3 } = {}): fc.Arbitrary<unknown> {
  const number = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer());
  const values = [texts(), number, fc.boolean(), fc.constant(null)];
  return fc.anything({ key: texts(), values, maxDepth });
}
