/**
 * Static files: read once, served from memory, in the smallest encoding that the client takes. They were compressed when
 * they were built: beside `name` stand `name.br` and `name.gz`.
 */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { Answer } from "./answer.js";
import { type Keep, tagged, unlessHeld } from "./caching.js";
import type { Request } from "./request.js";

/** Content codings, the smallest first. */
const ENCODINGS = [
  { name: "br", suffix: ".br" },
  { name: "gzip", suffix: ".gz" },
] as const;
const COMPRESSED = new RegExp(`(?:${ENCODINGS.map(({ suffix }) => `\\${suffix}`).join("|")})$`);

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** A page's own files and nothing else; no script or style that stands in the page itself. */
export const STRICT_POLICY = [
  "default-src 'none'",
  // Compiling WebAssembly counts as evaluating.
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Sent with every static file. */
const HEADERS = {
  "content-security-policy": STRICT_POLICY,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  vary: "accept-encoding",
};

/** One file in every encoding it has. */
export class StaticFile {
  readonly #identity: Answer;
  readonly #encoded: ReadonlyMap<string, Answer>;

  constructor(path: string, keep: Keep) {
    const contentType = TYPES[extname(path)] ?? "application/octet-stream";
    const answer = (file: string, headers: Readonly<Record<string, string>>) =>
      tagged(new Answer(readFileSync(file), { contentType, headers: { ...HEADERS, ...headers } }), keep);
    this.#identity = answer(path, {});
    this.#encoded = new Map(
      ENCODINGS.map(({ name, suffix }) => [name, answer(path + suffix, { "content-encoding": name })]),
    );
  }

  answer({ acceptEncoding, ifNoneMatch }: Request): Answer {
    const accepted = acceptedEncodings(acceptEncoding);
    const chosen = ENCODINGS.find(({ name }) => accepted.has(name));
    return unlessHeld((chosen && this.#encoded.get(chosen.name)) ?? this.#identity, ifNoneMatch);
  }
}

/** Every file of a folder whose names carry hashes of their contents, by name. @throws when there is no such folder */
export function readHashedFiles(folder: string): ReadonlyMap<string, StaticFile> {
  const names = readdirSync(folder).filter((name) => !COMPRESSED.test(name));
  return new Map(names.map((name) => [name, new StaticFile(join(folder, name), "forever")]));
}

/** RFC 9110 §12.5.3, as far as browsers use it: a list of names, of which `q=0` refuses one. */
function acceptedEncodings(header: string): ReadonlySet<string> {
  const parts = header.toLowerCase().split(",");
  return new Set(parts.flatMap((part) => (/;\s*q=0(?:\.0*)?\s*$/.test(part) ? [] : part.split(";")[0]!.trim())));
}
