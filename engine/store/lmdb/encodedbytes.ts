/** At most so many bytes are before the content of a value in msgpackr's encoding. */
const HEAD_BYTES = 9;
/** UTF-8 of one unit of a text. */
const UNIT_BYTES = 3;
const SHORT_TEXT = 1024;

/** Upper bound of the bytes in which a row is encoded, without encoding it. Rows are plain data of a few levels. */
export function encodedBytes(value: unknown): number {
  if (typeof value === "string")
    return HEAD_BYTES + (value.length < SHORT_TEXT ? UNIT_BYTES * value.length : Buffer.byteLength(value));
  if (typeof value !== "object" || value === null) return HEAD_BYTES;
  if (ArrayBuffer.isView(value)) return HEAD_BYTES + value.byteLength;
  let sum = HEAD_BYTES;
  if (Array.isArray(value)) for (const item of value) sum += encodedBytes(item);
  // A record may be preceded by the names of its members.
  else for (const key in value) sum += encodedBytes(key) + encodedBytes((value as Record<string, unknown>)[key]);
  return sum;
}
