/** Lists of the service as async iterables. A page is requested when its items are needed. */
import type { Static, TSchema } from "typebox";
import { ClientError, isOversized } from "./error.js";
import type { Headers, Http, Query } from "./http.js";
import type { Authority } from "./session.js";

/** Items on a page, and the smaller pages that are requested if an answer is too long. */
const PAGE_SIZES = [200, 40, 1] as const;

/** How many pages without an item may follow each other where items have left places behind: a million places. */
const LONGEST_GAP = 5_000;

/** A list, and the place in it to begin. */
interface Listing<S extends TSchema, K extends keyof Static<S>> {
  readonly schema: S;
  readonly path: string;
  /** The member of the page that holds its items. */
  readonly member: K;
  readonly query?: Query;
  /** Whose list it is, if it is one's own. */
  readonly auth?: Pick<Authority, "withSession">;
  /** Number of items to skip at the beginning. Pages of skipped items are not requested. */
  readonly skip?: number;
  /** The number by which the items are ordered, which is different for each item; absent if they have none. */
  readonly place?: (item: Item<Static<S>[K]>) => number | undefined;
  /** Whether the list begins with the newest items, so that it grows at its beginning. */
  readonly newestFirst?: boolean;
  /** Whether items have left places behind: then a page may have fewer, and its `total` counts the places. */
  readonly hasGaps?: boolean;
  /** Maximum number of items on a page; 200 if absent. */
  readonly perPage?: number;
}

type Item<List> = List extends readonly (infer T)[] ? T : never;

/**
 * Every item from `skip` on, up to the end of the list. Items that are added meanwhile are included.
 * @throws ClientError, `malformed-answer` for items that are repeated or out of order, and for a gap without an end
 */
export async function* pages<S extends TSchema, K extends keyof Static<S>>(
  http: Http,
  listing: Listing<S, K>,
): AsyncGenerator<Item<Static<S>[K]>, void, undefined> {
  const { schema, path, member, query = {}, auth, skip = 0, place = () => undefined, newestFirst = false } = listing;
  const { perPage: widest = PAGE_SIZES[0], hasGaps } = listing;
  const sizes = [widest, ...PAGE_SIZES.filter((narrower) => narrower < widest)];
  let previous: number | undefined;
  let size = 0;
  let gap = 0;
  for (let at = skip; ; ) {
    const perPage = sizes[size]!;
    let answer: Static<S>;
    try {
      const asked = { ...query, page: Math.floor(at / perPage) + 1, per_page: perPage };
      const ask = (headers?: Headers) => http.get(schema, path, asked, headers);
      answer = await (auth ? auth.withSession(ask) : ask());
    } catch (error) {
      if (!isOversized(error) || perPage === 1) throw error;
      size++;
      continue;
    }
    const page = answer[member] as Item<Static<S>[K]>[];
    if (page.length > perPage) throw malformed(path, `has more than ${perPage} items on a page`);
    const items = page.slice(at % perPage);
    let isShifted = newestFirst;
    for (const item of items) {
      const next = place(item);
      if (previous !== undefined && next !== undefined && (newestFirst ? next >= previous : next <= previous)) {
        // New items since the last page have moved older ones from that page to this one.
        if (isShifted) continue;
        throw repeated(path);
      }
      isShifted = false;
      previous = next;
      yield item;
    }
    // Whoever reads the list gets a word in with each item only.
    gap = items.length ? 0 : gap + 1;
    if (gap > LONGEST_GAP) throw malformed(path, "has a gap without an end");
    const places = perPage - (at % perPage);
    // The server may claim any `total`. Without gaps, only a full page can have a next one.
    if (hasGaps ? at + places >= (answer as { readonly total: number }).total : items.length < places) return;
    if (isShifted) throw repeated(path);
    at += places;
  }
}

const malformed = (path: string, fault: string): ClientError =>
  new ClientError("malformed-answer", `The list ${path} ${fault}.`);

const repeated = (path: string): ClientError => malformed(path, "repeats items or has them out of order");
