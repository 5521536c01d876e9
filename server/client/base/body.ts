/** Reads the bodies of answers up to a maximum size, because the server chooses their length. */

/**
 * The largest answer that there can be: an entry bundle (c2sp.org/tlog-tiles) of 256 entries, each of 65,535 bytes behind its
 * length. A page of 200 long entries has 2 MB. If a page is longer than this maximum, the client asks for smaller pages.
 */
const MAX_ANSWER_BYTES = 256 * (2 + 0xffff);
/** The largest bundle of published entries: 256 encrypted claims have 90 MB. */
const MAX_BUNDLE_BYTES = 2 ** 27;

/** An answer that exceeds the maximum size. */
export class OversizedAnswer extends Error {}

/**
 * The whole body.
 * @param isBundle whether it is a bundle of published entries
 * @throws OversizedAnswer beyond the maximum size, and the errors of the connection
 */
export async function readBody({ body }: Response, isBundle?: boolean): Promise<Uint8Array<ArrayBuffer>> {
  const longest = isBundle ? MAX_BUNDLE_BYTES : MAX_ANSWER_BYTES;
  if (body === null) return new Uint8Array();
  // Some browsers cannot iterate over a stream.
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    length += part.value.length;
    if (length > longest) {
      // Closes the connection. If it is broken already, nothing has to be done.
      reader.cancel().catch(() => {});
      throw new OversizedAnswer(`It has more than ${longest} bytes.`);
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

/** The requests that a limit has left, if the answer says so. */
export function requestsLeft(headers: Headers): number | undefined {
  const text = headers.get("ratelimit-remaining");
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** The seconds in the `Retry-After` of an answer, at least one; undefined if it has none. */
export function secondsAsked(headers: Headers): number | undefined {
  const text = headers.get("retry-after");
  const seconds = text !== null && /^\d{1,9}$/.test(text) ? Number(text) : 0;
  // Zero would mean to try again without a pause.
  return seconds > 0 ? seconds : undefined;
}
