/** Where a log is published: a folder, or a bucket. Whoever can write there decides what readers get, so nothing is believed. */

/** An object, as it was read. */
export interface Stored {
  readonly bytes: Uint8Array;
  /** By which the store knows this content; null where it has no such name. */
  readonly tag: string | null;
}

/** An object, as it was listed. */
export interface StoredFile {
  readonly path: string;
  /** Milliseconds since 1970, by the store's clock. */
  readonly modified: number;
}

/** Paths are those of tlog-tiles, such as `tile/0/000`. Every method throws a sentence if the store fails. */
export interface Target {
  /** How the user named it. */
  readonly name: string;
  /** The whole object; undefined if it is not there. */
  read(path: string): Promise<Stored | undefined>;
  /**
   * Makes an object, whole and on disk, or leaves the one that is there as it is.
   * @returns whether it was made
   */
  create(path: string, bytes: Uint8Array): Promise<boolean>;
  /**
   * Replaces an object if it is still the one that was read. Everything that was created before is on disk by then.
   * @returns whether it was
   */
  replace(path: string, bytes: Uint8Array, before: Stored): Promise<boolean>;
  remove(path: string): Promise<void>;
  /** All objects below a folder, each full tile before its partial ones. */
  list(folder: string): AsyncIterable<StoredFile>;
}

/** Milliseconds after which nobody needs what was replaced: a partial tile, or the draft of a publisher that was killed. */
export const LEFT_FOR_MS = 24 * 60 * 60_000;
