/** Keys of a list. The service pages by order of registration and does not filter by status: that is done here. */
import type { KeySummary } from "../../../client/index.js";
import { KeyPage } from "../../../wire/identity/keys.js";
import { http } from "../../state/service.js";

export const PER_PAGE = 25;
/** The service's maximum. */
const MAX_PER_PAGE = 200;
/** Requests for keys of a status before the reader is asked whether to look on. */
const MAX_REQUESTS = 5;

export interface KeyFilter {
  /** A part of the pseudonym; empty for all. */
  readonly pseudonym: string;
  /** Empty for all. */
  readonly status: string;
}

export interface Keys {
  readonly keys: readonly KeySummary[];
  /** Keys of every status that the list has. */
  readonly total: number;
  /** How many keys were looked at for their status; null without one. */
  readonly lookedAt: number | null;
}

/** @param reach how many times the reader has asked to look on @throws ClientError */
export async function listKeys(filter: KeyFilter, page: number, reach: number): Promise<Keys> {
  if (filter.status) return withStatus(filter, reach);
  const { keys, total } = await onePage(filter, page, PER_PAGE);
  return { keys, total, lookedAt: null };
}

/** Every key of the status among as many as may be looked at. */
async function withStatus(filter: KeyFilter, reach: number): Promise<Keys> {
  const found: KeySummary[] = [];
  let lookedAt = 0;
  for (let page = 1; ; page++) {
    const { keys, total } = await onePage(filter, page, MAX_PER_PAGE);
    lookedAt += keys.length;
    found.push(...keys.filter(({ status }) => status === filter.status));
    if (lookedAt >= total || keys.length === 0 || page === reach * MAX_REQUESTS)
      return { keys: found, total, lookedAt };
  }
}

const onePage = ({ pseudonym }: KeyFilter, page: number, perPage: number) =>
  http.get(KeyPage, pseudonym ? "/keys/search" : "/keys", {
    pseudonym: pseudonym || undefined,
    page,
    per_page: perPage,
  });
