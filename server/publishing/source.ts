/** The entries of a service as they are published: with the head of every size, and the keys that sign these. */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { importPublicKey, type ServerKey } from "../../engine/crypto/keys/spki.js";
import { isSigned } from "../../engine/log/history/head.js";
import { type Entry, OperatorKeys, parsePublicKey, type TreeHead } from "../../engine/verify/index.js";
import { ClientError, isOversized } from "../client/error.js";
import type { Http } from "../client/http.js";
import { FULL_TILE } from "../client/log/served.js";
import { type BundledEntry, bundleText } from "../client/static/bundle.js";
import * as wire from "../wire/log/log.js";

const compress = promisify(gzip);

/** Entries on a page, and the smaller pages that are requested if an answer is too long. Each divides a bundle. */
const PAGE_SIZES = [128, 16, 1] as const;

export class SourceEntries {
  readonly #http: Http;

  /** @param http of the service, whose `/tlog` is published */
  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * The first `width` entries of a bundle, unchecked.
   * @throws ClientError, also if the service has not as many
   */
  async bundle(index: number, width: number): Promise<readonly BundledEntry[]> {
    const first = index * FULL_TILE;
    const [{ heads }, entries] = await Promise.all([
      this.#http.get(wire.TreeHeads, "/log/heads", { from: first + 1, limit: width }),
      this.#entries(first, width),
    ]);
    const bySize = new Map(heads.map((head) => [head.tree_size, head as TreeHead]));
    return entries.map((entry, i) => ({ entry, head: bySize.get(first + i + 1) ?? null }));
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

  /** The leaf index of an entry. @throws ClientError */
  async leafIndexOf(id: number): Promise<number> {
    return (await this.#http.get(wire.InclusionProof, `/log/${id}/proof`)).leaf_index;
  }

  /**
   * The keys that sign the heads.
   * @param pinned PEM of a key that must be among them
   * @throws ClientError; CairnlogError as `OperatorKeys.verify` does
   */
  async operators(pinned: string | null): Promise<OperatorKeys> {
    const { public_key, operators } = await this.#http.get(wire.OperatorPublicKey, "/log/operator-key");
    return OperatorKeys.verify(operators, parsePublicKey(pinned ?? public_key));
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
