/** Lists of the service as async iterables: pages are asked for as they are wanted. */
import type { Static, TSchema } from "typebox";
import type { Headers, Http, Query } from "./http.js";

const PER_PAGE = 200;

/** A list and where to begin in it. */
export interface Listing<S extends TSchema, K extends keyof Static<S>> {
  readonly schema: S;
  readonly path: string;
  /** The member of the page that holds its items. */
  readonly member: K;
  readonly query?: Query;
  readonly headers?: () => Promise<Headers>;
  /** Items to leave out at the beginning; whole pages of them are not asked for. */
  readonly skip?: number;
  /** Items of a page; 200 unless given. */
  readonly perPage?: number;
}

type Item<List> = List extends readonly (infer T)[] ? T : never;

/** Every item from `skip` on, until the list ends. A list that grows meanwhile is followed to where it ends then. */
export async function* pages<S extends TSchema, K extends keyof Static<S>>(
  http: Http,
  { schema, path, member, query = {}, headers, skip = 0, perPage = PER_PAGE }: Listing<S, K>,
): AsyncGenerator<Item<Static<S>[K]>, void, undefined> {
  let ahead = skip % perPage;
  for (let page = Math.floor(skip / perPage) + 1; ; page++) {
    const answer = await http.get(schema, path, { ...query, page, per_page: perPage }, await headers?.());
    const items = answer[member] as Item<Static<S>[K]>[];
    yield* items.slice(ahead);
    ahead = 0;
    // Whoever answers may claim any `total`; only a full page can have one behind it.
    if (items.length < perPage) return;
  }
}
