/**
 * What a tiled log serves (c2sp.org/tlog-tiles): checkpoint, tiles, entry bundles. Lengths are checked here, contents are
 * not: the server chose them.
 */
import { type TileName, tilePath } from "../../../engine/verify/index.js";
import type { Http } from "../../client/http.js";
import { ClientError } from "../../client/index.js";

export const FULL_TILE = 256;
export const HASH_BYTES = 32;
const LENGTH_BYTES = 2;

/** The entries of a bundle: the data of each leaf. */
export interface Bundle {
  readonly entries: readonly Uint8Array[];
  /** The entries as they were served, each with its length before it. */
  readonly bytes: Uint8Array;
}

export class ServedTiles {
  readonly #http: Http;

  /** @param http of the address before `/checkpoint` */
  constructor(http: Http) {
    this.#http = http;
  }

  get url(): string {
    return this.#http.server;
  }

  /** @throws ClientError */
  async checkpoint(): Promise<string> {
    return new TextDecoder().decode(await this.#http.rootBytes("/checkpoint"));
  }

  /** The first `width` hashes of a tile. @throws ClientError, also for an answer of another length */
  async tile(level: number, index: number, width: number): Promise<Uint8Array> {
    const { bytes, isFull } = await this.#fetch({ level, index, width });
    if (bytes.length !== HASH_BYTES * (isFull ? FULL_TILE : width)) throw this.#malformed({ level, index, width });
    return bytes.subarray(0, HASH_BYTES * width);
  }

  /** The first `width` entries of a bundle. @throws ClientError, also for an answer that is no such bundle */
  async bundle(index: number, width: number): Promise<Bundle> {
    const name = { level: "entries", index, width } as const;
    const { bytes, isFull } = await this.#fetch(name);
    const bundle = readBundle(bytes, width);
    // A full bundle in place of a partial one has more entries.
    if (!bundle || (bundle.bytes.length !== bytes.length && !(isFull && width < FULL_TILE)))
      throw this.#malformed(name);
    return bundle;
  }

  /** A log may remove partial tiles and bundles when there is the full one. */
  async #fetch(name: TileName): Promise<{ readonly bytes: Uint8Array; readonly isFull: boolean }> {
    const isFull = name.width === FULL_TILE;
    try {
      return { bytes: await this.#http.rootBytes(`/${tilePath(name)}`), isFull };
    } catch (error) {
      if (isFull || !(error instanceof ClientError) || error.status !== 404) throw error;
    }
    return { bytes: await this.#http.rootBytes(`/${tilePath({ ...name, width: FULL_TILE })}`), isFull: true };
  }

  #malformed(name: TileName): ClientError {
    return new ClientError(
      "malformed-answer",
      `${this.url} answered /${tilePath(name)} with something else than that.`,
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
