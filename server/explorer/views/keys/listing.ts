/**
 * The keys of a list. The service pages by order of registration and cannot filter by status, so this filters by
 * status.
 */
import { KeyPage } from "../../../../engine/contract/identity/keys.js";
import { MAX_PER_PAGE } from "../../../../engine/verify/keys/contract.js";
import type { KeySummary } from "../../../client/index.js";
import { http } from "../../state/service.js";

export const KEYS_PER_PAGE = 25;
/** Number of requests in a search by status before the reader is asked whether to continue. */
const MAX_REQUESTS = 5;

export interface KeyFilter {
  /** A part of the pseudonym; empty for all. */
  readonly pseudonym: string;
  /** Empty for all. */
  readonly status: string;
}

export interface ListedKeys {
  readonly keys: readonly KeySummary[];
  /** Number of places in the list, which nearly all have keys, of every status. */
  readonly total: number;
  /** Number of places in the list whose keys were compared; null without a filter by status. */
  readonly lookedAt: number | null;
}

/** @param before what a search by the same status has found, to be continued @throws ClientError */
export async function fetchKeys(filter: KeyFilter, page: number, before: ListedKeys | null): Promise<ListedKeys> {
  if (filter.status) return withStatus(filter, before);
  const { keys, total } = await onePage(filter, page, KEYS_PER_PAGE);
  return { keys, total, lookedAt: null };
}

/** Every key with the status among as many keys as may be searched. */
async function withStatus(filter: KeyFilter, before: ListedKeys | null): Promise<ListedKeys> {
  const found = [...(before?.keys ?? [])];
  const first = Math.floor((before?.lookedAt ?? 0) / MAX_PER_PAGE) + 1;
  for (let page = first; ; page++) {
    const { keys, total } = await onePage(filter, page, MAX_PER_PAGE);
    found.push(...keys.filter(({ status }) => status === filter.status));
    // Not every place has a key: some have named themselves in a later one.
    const lookedAt = Math.min(page * MAX_PER_PAGE, total);
    if (lookedAt === total || page === first + MAX_REQUESTS - 1) return { keys: found, total, lookedAt };
  }
}

const onePage = ({ pseudonym }: KeyFilter, page: number, perPage: number) =>
  http.get(KeyPage, pseudonym ? "/keys/search" : "/keys", {
    pseudonym: pseudonym || undefined,
    page,
    per_page: perPage,
  });
