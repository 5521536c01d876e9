/**
 * Static files: read once, served from memory, in the smallest encoding that the client takes. A build leaves `name.br`
 * and `name.gz` of each and not the file itself, which would be a sixth of the package: taking all of the explorer out of
 * gzip costs 20 ms at the start, where making gzip would cost 100 and making brotli seven seconds.
 */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, gunzipSync, gzipSync } from "node:zlib";
import { Answer } from "./answer.js";
import { type Keep, tagged, unlessHeld } from "./caching.js";
import type { Request } from "./request.js";

/** Content codings, the smallest first. */
const ENCODINGS = ["br", "gzip"] as const;

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** A page's own files and nothing else; no script or style that stands in the page itself. */
const STRICT_POLICY = [
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

/** One file in every encoding. */
export class StaticFile {
  readonly #identity: Answer;
  readonly #encoded: Readonly<Record<(typeof ENCODINGS)[number], Answer>>;

  /**
   * @param edit changes a text before it is served
   * @throws when `path` with `.br` or `.gz` behind it is no file
   */
  constructor(path: string, keep: Keep, edit?: (text: string) => string) {
    const contentType = TYPES[extname(path)] ?? "application/octet-stream";
    const answer = (body: Buffer, encoding?: string) => {
      const headers = encoding === undefined ? HEADERS : { ...HEADERS, "content-encoding": encoding };
      return tagged(new Answer(body, { contentType, headers }), keep);
    };
    const gzip = readFileSync(`${path}.gz`);
    const built = gunzipSync(gzip);
    if (edit) {
      const body = Buffer.from(edit(built.toString("utf8")));
      this.#identity = answer(body);
      this.#encoded = { br: answer(brotliCompressSync(body), "br"), gzip: answer(gzipSync(body), "gzip") };
      return;
    }
    this.#identity = answer(built);
    this.#encoded = { br: answer(readFileSync(`${path}.br`), "br"), gzip: answer(gzip, "gzip") };
  }

  answer({ acceptEncoding, ifNoneMatch }: Request): Answer {
    const accepted = acceptedEncodings(acceptEncoding);
    const chosen = ENCODINGS.find((encoding) => accepted.has(encoding));
    return unlessHeld(chosen ? this.#encoded[chosen] : this.#identity, ifNoneMatch);
  }
}

/** Every file of a folder whose names carry hashes of their contents, by name. @throws when there is no such folder */
export function readHashedFiles(folder: string): ReadonlyMap<string, StaticFile> {
  const names = readdirSync(folder).flatMap((name) => (name.endsWith(".gz") ? [name.slice(0, -3)] : []));
  return new Map(names.map((name) => [name, new StaticFile(join(folder, name), "forever")]));
}

/** RFC 9110 §12.5.3, as far as browsers use it: a list of names, of which `q=0` refuses one. */
function acceptedEncodings(header: string): ReadonlySet<string> {
  const parts = header.toLowerCase().split(",");
  return new Set(parts.flatMap((part) => (/;\s*q=0(?:\.0*)?\s*$/.test(part) ? [] : part.split(";")[0]!.trim())));
}
