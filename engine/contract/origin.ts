/** Origins: who is called, and nothing else (RFC 6454). */

/**
 * Whether a text is the origin of an http: or https: URL, spelled as browsers spell it: in lower case, without the
 * default port, and with nothing behind the port. Two texts for which this is true name one origin only if they are equal.
 */
export function isOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && (url.protocol === "https:" || url.protocol === "http:") && url.origin === text;
}
