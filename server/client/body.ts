/** Reading the body of an answer, as far as that is bearable: whoever answers chose its length. */

/** A page of 200 entries has 2 MB when they are long; longer pages are asked for in smaller parts. */
export const MAX_ANSWER_BYTES = 16 * 2 ** 20;

/** An answer that is longer than any honest one. */
export class OversizedAnswer extends Error {}

/** The whole body. @throws OversizedAnswer beyond `MAX_ANSWER_BYTES`, and what the connection throws */
export async function readBody({ body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  if (body === null) return new Uint8Array();
  // Not every browser can iterate over a stream.
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    length += part.value.length;
    if (length > MAX_ANSWER_BYTES) {
      // Closes the connection. It may be broken already, which changes nothing.
      reader.cancel().catch(() => {});
      throw new OversizedAnswer(`The answer is longer than ${MAX_ANSWER_BYTES} bytes.`);
    }
    parts.push(part.value);
  }
  const whole = new Uint8Array(length);
  let end = 0;
  for (const part of parts) {
    whole.set(part, end);
    end += part.length;
  }
  return whole;
}

/** The seconds that an answer asks to be waited for (`Retry-After`), at least one; undefined where it names none. */
export function secondsAsked(headers: Headers): number | undefined {
  const text = headers.get("retry-after");
  const seconds = text !== null && /^\d{1,9}$/.test(text) ? Number(text) : 0;
  // Zero would be asking again without a pause.
  return seconds > 0 ? seconds : undefined;
}
