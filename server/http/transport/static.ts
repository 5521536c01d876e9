/**
 * Static files: read once, served from memory, in the smallest encoding that the client takes. A build leaves `name.br` of
 * each file, which is the smallest. The other encodings are made when a client first asks for them.
 */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompressSync, brotliDecompress, brotliDecompressSync, gzip } from "node:zlib";
import { Answer } from "./answer.js";
import { type Keep, tagged, unlessHeld } from "./caching.js";
import type { Request } from "./request.js";

/** Content codings, the smallest first. A client that takes none of them gets the plain file. */
const ENCODINGS = ["br", "gzip", "identity"] as const;
type Encoding = (typeof ENCODINGS)[number];
/** On the thread pool: to compress the largest file takes longer than a turn of the event loop may. */
const [decompressed, gzipped] = [promisify(brotliDecompress), promisify(gzip)];

/** By the ending of a name. */
export const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** A page's own files and nothing else; no script or style that stands in the page itself. */
const STRICT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
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
  readonly #brotli: Buffer;
  readonly #keep: Keep;
  readonly #contentType: string;
  readonly #made = new Map<Encoding, Promise<Answer>>();

  /**
   * @param edit changes a text before it is served
   * @throws when `path` with `.br` behind it is no file
   */
  constructor(path: string, keep: Keep, edit?: (text: string) => string) {
    const built = readFileSync(`${path}.br`);
    this.#brotli = edit ? brotliCompressSync(edit(brotliDecompressSync(built).toString("utf8"))) : built;
    this.#keep = keep;
    this.#contentType = TYPES[extname(path)] ?? "application/octet-stream";
  }

  async answer({ acceptEncoding, ifNoneMatch }: Request): Promise<Answer> {
    const accepted = acceptedEncodings(acceptEncoding);
    const encoding = ENCODINGS.find((name) => accepted.has(name)) ?? "identity";
    const making = this.#made.get(encoding) ?? this.#make(encoding);
    this.#made.set(encoding, making);
    return unlessHeld(await making, ifNoneMatch);
  }

  async #make(encoding: Encoding): Promise<Answer> {
    const headers = encoding === "identity" ? HEADERS : { ...HEADERS, "content-encoding": encoding };
    return tagged(new Answer(await this.#encoded(encoding), { contentType: this.#contentType, headers }), this.#keep);
  }

  async #encoded(encoding: Encoding): Promise<Buffer> {
    if (encoding === "br") return this.#brotli;
    const plain = await decompressed(this.#brotli);
    return encoding === "gzip" ? gzipped(plain) : plain;
  }
}

/** Every file of a folder whose names carry hashes of their contents, by name. @throws when there is no such folder */
export function readHashedFiles(folder: string): ReadonlyMap<string, StaticFile> {
  const names = readdirSync(folder).flatMap((name) => (name.endsWith(".br") ? [name.slice(0, -3)] : []));
  return new Map(names.map((name) => [name, new StaticFile(join(folder, name), "forever")]));
}

/** RFC 9110 §12.5.3, as far as browsers use it: a list of names, of which `q=0` refuses one. */
function acceptedEncodings(header: string): ReadonlySet<string> {
  const parts = header.toLowerCase().split(",");
  return new Set(parts.flatMap((part) => (/;\s*q=0(?:\.0*)?\s*$/.test(part) ? [] : part.split(";")[0]!.trim())));
}
