/** The `traceparent` of W3C Trace Context: in which trace of the client, or of a proxy, a request is a step. */

/** Version, trace, step, flags. Later versions may have more behind a hyphen; `ff` is none. */
const FORM = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;

/** The trace that a header names, in 32 hexadecimal digits; the empty string for a header of another form, or none. */
export function traceOf(header: string): string {
  const [, version, trace = "", more] = FORM.exec(header) ?? [];
  return version === "00" && more !== undefined ? "" : trace;
}
