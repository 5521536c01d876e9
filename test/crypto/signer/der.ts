/** The other spelling of a P-256 signature. */

/** DER, as base64, of a P-256 signature in 64 bytes of base64. */
export function derOf(text: string): string {
  const bytes = Buffer.from(text, "base64");
  const integers = [bytes.subarray(0, 32), bytes.subarray(32)].flatMap((half) => {
    const start = half.findIndex((byte) => byte !== 0);
    const digits = [...(half[start]! >= 0x80 ? [0] : []), ...half.subarray(start)];
    return [0x02, digits.length, ...digits];
  });
  return Buffer.from([0x30, integers.length, ...integers]).toString("base64");
}
