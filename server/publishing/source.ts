/** Where entries that are published come from, each with the head of its size, and the keys that sign the heads. */
import { promisify } from "node:util";
import { gunzipSync, gzip } from "node:zlib";
import * as wire from "../../engine/contract/log/log.js";
import { importPublicKey, type ServerKey } from "../../engine/crypto/keys/spki.js";
import { isSigned } from "../../engine/log/apply/head.js";
import { type Entry, OperatorKeys, parseIJson, parsePublicKey, type TreeHead } from "../../engine/verify/index.js";
import { ClientError, isOversized } from "../client/base/error.js";
import type { Http } from "../client/base/http.js";
import { FULL_TILE, NotServed, type ServedTiles } from "../client/log/served.js";
import { type BundledEntry, bundleText, parseBundle } from "../client/static/bundle.js";
import { entriesPath, OPERATOR_KEY } from "../client/static/layout.js";

const compress = promisify(gzip);

/** Entries on a page, and the smaller pages that are requested if an answer is too long. Each divides a bundle. */
const PAGE_SIZES = [128, 16, 1] as const;

/** Nothing of what it gives is checked, but for the chain of keys. */
export interface EntrySource {
  /**
   * The first `width` entries of a bundle.
   * @throws ClientError, also if the source has not as many
   */
  bundle(index: number, width: number): Promise<SourceBundle>;
  /**
   * The keys that sign the heads.
   * @param pinned PEM of a key that must be among them
   * @throws ClientError; CairnlogError as `OperatorKeys.verify` does
   */
  operators(pinned: string | null): Promise<OperatorKeys>;
}

interface SourceBundle {
  readonly entries: readonly BundledEntry[];
  /** The bundle as it is published, if it was already. */
  readonly gzip?: Uint8Array;
}

/** A service, follower or mirror. */
export class ServiceEntries implements EntrySource {
  readonly #http: Http;

  /** @param http of the service, whose `/tlog` is published */
  constructor(http: Http) {
    this.#http = http;
  }

  async bundle(index: number, width: number): Promise<SourceBundle> {
    const first = index * FULL_TILE;
    const [{ heads }, entries] = await Promise.all([
      this.#http.get(wire.TreeHeads, "/log/heads", { from: first + 1, limit: width }),
      this.#entries(first, width),
    ]);
    const bySize = new Map(heads.map((head) => [head.tree_size, head as TreeHead]));
    return { entries: entries.map((entry, i) => ({ entry, head: bySize.get(first + i + 1) ?? null })) };
  }

  async #entries(first: number, width: number): Promise<readonly Entry[]> {
    let size = 0;
    const entries: Entry[] = [];
    while (entries.length < width) {
      const per_page = PAGE_SIZES[size]!;
      const page = Math.floor((first + entries.length) / per_page) + 1;
      try {
        const got = await this.#http.get(wire.EntryPage, "/log", { page, per_page });
        entries.push(...(got.entries as Entry[]));
        const isShort = got.entries.length < per_page && entries.length < width;
        if (isShort || got.entries.length > per_page)
          throw new ClientError(
            "malformed-answer",
            `${this.#http.server} does not list as many entries as it has signed.`,
          );
      } catch (error) {
        if (!isOversized(error) || per_page === 1) throw error;
        size++;
      }
    }
    return entries.slice(0, width);
  }

  async operators(pinned: string | null): Promise<OperatorKeys> {
    const { public_key, operators } = await this.#http.get(wire.OperatorPublicKey, "/log/operator-key");
    return OperatorKeys.verify(operators, parsePublicKey(pinned ?? public_key));
  }
}

/** What `cairnlog publish --entries` has made elsewhere. */
export class PublishedEntries implements EntrySource {
  readonly #served: ServedTiles;

  constructor(served: ServedTiles) {
    this.#served = served;
  }

  /** Whether there are entries. @throws ClientError */
  static async areAt(served: ServedTiles): Promise<boolean> {
    return (await absentIf404(served.file(`/${OPERATOR_KEY}`))) !== undefined;
  }

  async bundle(index: number, width: number): Promise<SourceBundle> {
    const gzip = await absentIf404(this.#served.file(`/${entriesPath(index, width)}`));
    // Its publisher may have removed a partial bundle.
    const bytes = gzip ?? (await this.#served.file(`/${entriesPath(index, FULL_TILE)}`));
    const entries = await parseBundle(bytes);
    if (!entries || entries.length < width)
      throw new ClientError(
        "malformed-answer",
        `${this.#served.url} has something else than ${width} entries in bundle ${index}.`,
      );
    // What no hash covers is not passed on.
    return gzip && isPlain(gzip, entries) ? { entries, gzip } : { entries: entries.slice(0, width) };
  }

  async operators(pinned: string | null): Promise<OperatorKeys> {
    const bytes = await this.#served.file(`/${OPERATOR_KEY}`);
    const shown = parseIJson(new TextDecoder().decode(bytes)) as { public_key?: unknown; operators?: unknown } | null;
    return OperatorKeys.verify(shown?.operators, parsePublicKey(pinned ?? String(shown?.public_key)));
  }
}

/** Whether a bundle has the text of these entries, and no further one. A server on the way may have decompressed it. */
function isPlain(gzip: Uint8Array, entries: readonly BundledEntry[]): boolean {
  return gzip[0] === 0x1f && gunzipSync(gzip).toString() === bundleText(entries);
}

async function absentIf404<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof NotServed) return undefined;
    throw error;
  }
}

/** The bytes of a bundle as it is published. */
export const compressedBundle = (entries: readonly BundledEntry[]): Promise<Buffer> =>
  compress(bundleText(entries), { level: 9 });

/** What is wrong with the signatures of heads; undefined if the operator has signed each. */
export async function headFault(
  entries: readonly BundledEntry[],
  operators: OperatorKeys,
): Promise<string | undefined> {
  const keys = new Map<string, ServerKey>();
  for (const { head } of entries) {
    if (!head) continue;
    const { fingerprint, pem } = operators.keyAt(head.tree_size);
    const key = keys.get(fingerprint) ?? importPublicKey(pem);
    keys.set(fingerprint, key);
    if (head.key_id !== fingerprint || !(await isSigned(head, key, null)))
      return `The head of size ${head.tree_size} is not signed by the operator key ${fingerprint}.`;
  }
  return undefined;
}
