/**
 * What a tiled log serves (c2sp.org/tlog-tiles): checkpoint, tiles, entry bundles. Lengths are checked here, contents are
 * not: the server chose them.
 */
import { type TileName, tilePath } from "../../../engine/verify/index.js";
import { ClientError, isAbsence } from "../base/error.js";

export const FULL_TILE = 256;
export const HASH_BYTES = 32;
const LENGTH_BYTES = 2;

/** Where the files of a log are read: a web server, a folder, a bucket. */
export interface Files {
  /** Its address or name, without a slash at the end. */
  readonly server: string;
  /**
   * The bytes of a file, or `range` of them: from the first one to that behind the last one.
   * @throws ClientError, with a status for which `isAbsence` holds if there is none
   */
  rootBytes(path: string, range?: Range): Promise<Uint8Array>;
}

export interface Range {
  readonly from: number;
  readonly to: number;
}

/** The entries of a bundle: the data of each leaf. */
export interface Bundle {
  readonly entries: readonly Uint8Array[];
  /** The entries as they were served, each with its length before it. */
  readonly bytes: Uint8Array;
}

/** The log denies something that was asked for. */
export class NotServed extends ClientError {
  /** @param answer the refusal of the last of `paths` */
  constructor(url: string, paths: readonly string[], answer: ClientError) {
    const [first, other] = paths;
    const what = other === undefined ? `does not have ${first}` : `has neither ${first} nor ${other}`;
    // A service of ours says why.
    const why = answer.code === "malformed-answer" ? "" : ` ${answer.detail}`;
    super(answer.code, `${url} ${what} (${answer.status}).${why}`, { status: answer.status, cause: answer });
  }
}

export class ServedTiles {
  readonly #http: Files;
  readonly #prefix: string;

  /** @param prefix of all paths, from the address of `http` on */
  constructor(http: Files, prefix = "") {
    this.#http = http;
    this.#prefix = prefix;
  }

  get url(): string {
    return this.#http.server;
  }

  /** @throws ClientError, `NotServed` if there is none */
  checkpoint(): Promise<string> {
    return this.text("/checkpoint");
  }

  /** @throws ClientError, `NotServed` if there is none */
  async text(path: string): Promise<string> {
    return new TextDecoder().decode(await this.file(path));
  }

  /** The bytes of a file, or a range of them. @throws ClientError, `NotServed` if there is none */
  async file(path: string, range?: Range): Promise<Uint8Array> {
    return (await this.#first([this.#prefix + path], range)).bytes;
  }

  /** The first `width` hashes of a tile. @throws ClientError, also for an answer of another length; `NotServed` */
  async tile(level: number, index: number, width: number): Promise<Uint8Array> {
    const { bytes, isFull } = await this.#fetch({ level, index, width });
    if (bytes.length !== HASH_BYTES * (isFull ? FULL_TILE : width)) throw this.malformed({ level, index, width });
    return bytes.subarray(0, HASH_BYTES * width);
  }

  /** The first `width` entries of a bundle. @throws ClientError, also for an answer that is no such bundle; `NotServed` */
  async bundle(index: number, width: number): Promise<Bundle> {
    const name = { level: "entries", index, width } as const;
    const { bytes, isFull } = await this.#fetch(name);
    const bundle = readBundle(bytes, width);
    // A full bundle in place of a partial one has more entries.
    if (!bundle || (bundle.bytes.length !== bytes.length && !(isFull && width < FULL_TILE))) throw this.malformed(name);
    return bundle;
  }

  /** A log may remove partial tiles and bundles when there is the full one. */
  async #fetch(name: TileName): Promise<{ readonly bytes: Uint8Array; readonly isFull: boolean }> {
    const full = this.#path({ ...name, width: FULL_TILE });
    const { bytes, path } = await this.#first(name.width === FULL_TILE ? [full] : [this.#path(name), full]);
    return { bytes, isFull: path === full };
  }

  /** The first of the paths that the log has, from number `at` on. @throws ClientError, `NotServed` if it has none of them */
  async #first(
    paths: readonly string[],
    range?: Range,
    at = 0,
  ): Promise<{ readonly bytes: Uint8Array; readonly path: string }> {
    const path = paths[at]!;
    try {
      return { bytes: await this.#http.rootBytes(path, range), path };
    } catch (error) {
      if (!isAbsence(error)) throw error;
      if (at < paths.length - 1) return this.#first(paths, range, at + 1);
      throw new NotServed(this.url, paths, error);
    }
  }

  #path(name: TileName): string {
    return `${this.#prefix}/${tilePath(name)}`;
  }

  /** The error for an answer that is not that tile or bundle. */
  malformed(name: TileName): ClientError {
    return new ClientError(
      "malformed-answer",
      `${this.url} answered ${this.#path(name)} with something else than that.`,
    );
  }
}

/** The first `width` entries in the bytes of a bundle; undefined if it has not as many. */
export function readBundle(bytes: Uint8Array, width: number): Bundle | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries: Uint8Array[] = [];
  let at = 0;
  while (entries.length < width) {
    if (at + LENGTH_BYTES > bytes.length) return undefined;
    const start = at + LENGTH_BYTES;
    at = start + view.getUint16(at);
    if (at > bytes.length) return undefined;
    entries.push(bytes.subarray(start, at));
  }
  return { entries, bytes: bytes.subarray(0, at) };
}
