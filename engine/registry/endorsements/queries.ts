/**
 * Queries for endorsements: single records, lists that a key received or issued, and alerts about a key. A status
 * depends on the clock, so a list reads the edges of the key, in narrow rows, and lets other work run in between.
 *
 * Anybody may make any number of offers to a key. So a query reads the oldest of them only, up to a limit, and what the
 * key itself has accepted is read from a table of its own, in which offers do not stand in the way.
 */

import { turn } from "../../base/turns.js";
import type * as contract from "../../contract/signing/endorsements.js";
import type { Value } from "../../contract/types.js";
import type { Log } from "../../log/log.js";
import { type Clock, formatTimestamp, parseTimestamp } from "../../log/state/clock.js";
import type { EndorsementEdgeRow, EndorsementRow } from "../../store/schema/rows.js";
import type { RowOf } from "../../store/schema/schema.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { ENDORSEMENT_CATEGORIES, ENDORSEMENT_STATUSES, type EndorsementStatus } from "../../verify/keys/contract.js";
import { canonicalTimestamp } from "../../verify/tree/entry.js";
import {
  alertRecord,
  type EndorsementTime,
  endorsementStatus,
  endorsementTime,
  type RevocationAlert,
} from "../events/endorsements.js";
import { type PageRequest, readPaging } from "../keys/directory.js";
import type { Keys } from "../keys/keys.js";
import { invalidInput } from "../shared/input.js";
import type { ExternalIdentifier } from "./identifiers.js";

export const DEFAULT_ACTIVATION_DELAY_S = 86_400;
/** Edges that are read before other work gets a turn: about a millisecond. */
const SLICE = 256;
/** Edges of a key that one query reads: about 40 ms of work. */
const MAX_EDGES = 10_000;
const LAST_ID = Number.MAX_SAFE_INTEGER;

/** An endorsement as it is served. */
export type Endorsement = Value<typeof contract.Endorsement>;

type EndorsementPage = Value<typeof contract.EndorsementPage>;
type AlertPage = Value<typeof contract.AlertPage>;

/** Selects the endorsements in a list; all, if absent. */
type EndorsementFilter = Partial<Value<typeof contract.EndorsementQuery>>;

/** The number of a key's endorsements with each status. */
type StatusCounts = Readonly<Record<EndorsementStatus, number>>;

/** The values that trust computes for an endorser. */
export interface EndorserTrust {
  standings(fingerprints: Iterable<string>): Promise<ReadonlyMap<string, EndorserStanding>>;
}
export interface EndorserStanding {
  /** The weight of each endorsement of the key, 0 to 1, by the number of its endorsements. */
  readonly discount: number;
  /** Whether the key has enough trust to endorse others. */
  readonly may_endorse: boolean;
}

/** The side of an endorsement that a list is about. */
type Side = "received" | "issued";
const TABLE_OF = { received: "endorsementsByEndorsed", issued: "endorsementsByEndorser" } as const;
type EdgeTable = (typeof TABLE_OF)[Side] | "acceptedEndorsements";

/** Statuses that an endorsement has only if the endorsed key has accepted it. */
const ACCEPTED: readonly (EndorsementStatus | undefined)[] = ["pending_activation", "active", "acceptance_revoked"];

interface Parts {
  readonly log: Log;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly activationDelay: number;
  readonly trust: EndorserTrust;
}

export class EndorsementQueries {
  readonly #parts: Parts;
  /** Seconds from acceptance to effect. */
  readonly activationDelay: number;

  /** Use `openRegistry`. */
  constructor(parts: Parts) {
    this.#parts = parts;
    this.activationDelay = parts.activationDelay;
  }

  /**
   * Endorsements that a key received, oldest offer first (`GET /endorsements/{fingerprint}`).
   * @throws CairnlogError `not-found` if there is no such key; `invalid-input` for paging, or an unknown status or
   *   category; `overloaded`, `closed` if trust cannot be computed
   */
  received(fingerprint: string, filter: EndorsementFilter = {}): Promise<EndorsementPage> {
    return this.#list("received", fingerprint, filter);
  }

  /**
   * Endorsements that the key issued (`GET /endorsements/{fingerprint}/issued`). @throws CairnlogError as `received`
   * does
   */
  issued(fingerprint: string, filter: EndorsementFilter = {}): Promise<EndorsementPage> {
    return this.#list("issued", fingerprint, filter);
  }

  /**
   * Alerts that a key is compromised, oldest first (`GET /endorsements/revocation-alerts/{fingerprint}`).
   * @throws CairnlogError `not-found` if there is no such key; `invalid-input`
   */
  async alerts(fingerprint: string, paging: PageRequest = {}): Promise<AlertPage> {
    const { page, per_page } = readPaging(paging);
    const key = this.#parts.keys.find(fingerprint).fingerprint;
    const start = (page - 1) * per_page;
    const alerts: RevocationAlert[] = [];
    let total = 0;
    const hasMore = await this.#walk("revocationAlerts", key, (id, row) => {
      if (total++ >= start && alerts.length < per_page) alerts.push(alertRecord([key, id], row));
    });
    return { alerts, page, per_page, total, ...truncated(hasMore) };
  }

  /**
   * The number of a key's endorsements with each status, and the number of alerts about it. Of more than one query reads,
   * the oldest are counted.
   * @throws CairnlogError `not-found` if there is no such key
   */
  async statusCounts(fingerprint: string): Promise<{
    readonly received: StatusCounts;
    readonly issued: StatusCounts;
    readonly alerts: number;
    readonly truncated?: true;
  }> {
    const key = this.#parts.keys.find(fingerprint).fingerprint;
    const time = endorsementTime(this.#parts.clock, this.activationDelay);
    const noCounts = () =>
      Object.fromEntries(ENDORSEMENT_STATUSES.map((status) => [status, 0])) as Record<EndorsementStatus, number>;
    const [received, issued] = [noCounts(), noCounts()];
    const count = (counts: typeof received) => (_: number, row: EndorsementEdgeRow) => {
      counts[endorsementStatus(row, time)]++;
    };
    const unaccepted = new Map<number, EndorsementStatus>();
    let alerts = 0;
    const walks = [
      await this.#walk("endorsementsByEndorsed", key, (id, row) => {
        if (row.accepted_at === null) unaccepted.set(id, endorsementStatus(row, time));
      }),
      // After those, so that what is accepted meanwhile is counted, and once.
      await this.#walk("acceptedEndorsements", key, (id, row) => {
        unaccepted.delete(id);
        count(received)(id, row);
      }),
      await this.#walk("endorsementsByEndorser", key, count(issued)),
      await this.#walk("revocationAlerts", key, () => {
        alerts++;
      }),
    ];
    for (const status of unaccepted.values()) received[status]++;
    return { received, issued, alerts, ...truncated(walks.includes(true)) };
  }

  /** @param discount the weight that trust computes from the endorser's load */
  record(row: EndorsementRow, time: EndorsementTime, discount: number): Endorsement {
    return {
      offer_entry_id: row.offer_entry_id,
      endorser_fingerprint: row.endorser_fingerprint,
      endorsed_fingerprint: row.endorsed_fingerprint,
      category: row.category,
      status: endorsementStatus(row, time),
      offered_at: row.offered_at,
      accepted_at: row.accepted_at,
      activates_at: row.accepted_at && this.#activation(row.accepted_at),
      valid_until: row.valid_until,
      ended_at: row.ended_at,
      end_note: row.end_note,
      discount,
      institutional_metadata: parsed(row.institutional_metadata) as JsonObject | null,
      external_identifiers: parsed(row.external_identifiers) as ExternalIdentifier[] | null,
    };
  }

  async #list(side: Side, fingerprint: string, filter: EndorsementFilter): Promise<EndorsementPage> {
    const { page, per_page } = readPaging(filter);
    const { status, category } = filter;
    if (status !== undefined && !ENDORSEMENT_STATUSES.includes(status))
      throw invalidInput("/status", `It must be one of ${ENDORSEMENT_STATUSES.join(", ")}.`);
    if (category !== undefined && !ENDORSEMENT_CATEGORIES.includes(category))
      throw invalidInput("/category", `It must be one of ${ENDORSEMENT_CATEGORIES.join(", ")}.`);
    const key = this.#parts.keys.find(fingerprint).fingerprint;
    const time = endorsementTime(this.#parts.clock, this.activationDelay);
    const isWanted = (edge: EndorsementEdgeRow) =>
      (category === undefined || edge.category === category) &&
      (status === undefined || endorsementStatus(edge, time) === status);

    const start = (page - 1) * per_page;
    const rows: EndorsementRow[] = [];
    let total = 0;
    const table: EdgeTable = side === "received" && ACCEPTED.includes(status) ? "acceptedEndorsements" : TABLE_OF[side];
    const hasMore = await this.#walk(table, key, (id, row) => {
      if (!isWanted(row) || total++ < start || rows.length === per_page) return;
      // Before the next pause: behind it, it might have another status than the one that is asked for.
      rows.push(this.#parts.log.row("endorsements", id)!);
    });
    const standings = await this.#parts.trust.standings(
      new Set(rows.map(({ endorser_fingerprint }) => endorser_fingerprint)),
    );
    const endorsements = rows.map((row) => this.record(row, time, standings.get(row.endorser_fingerprint)!.discount));
    return { endorsements, page, per_page, total, ...truncated(hasMore) };
  }

  /**
   * Calls `take` with the oldest rows of a key, in order of their entry ids, with other work in between. Clients decide how
   * many there are.
   * @returns whether there are more than one query reads
   */
  async #walk<T extends EdgeTable | "revocationAlerts">(
    table: T,
    key: string,
    take: (entryId: number, row: RowOf<T>) => void,
  ): Promise<boolean> {
    for (let next = 0, read = 0; ; ) {
      // One row more than is read tells whether there are more.
      const limit = Math.min(SLICE, MAX_EDGES - read + 1);
      const slice = this.#parts.log.rows(table, [key, next], [key, LAST_ID], { limit });
      for (const { key: place, row } of slice) if (read++ < MAX_EDGES) take(place[1], row);
      if (read > MAX_EDGES) return true;
      if (slice.length < limit) return false;
      next = slice.at(-1)!.key[1] + 1;
      await turn();
    }
  }

  #activation(acceptedAt: string): string {
    // Imported entries may write their time in any form; they were accepted long ago.
    const time = canonicalTimestamp(acceptedAt);
    return time ? formatTimestamp(parseTimestamp(time) + this.activationDelay * 1_000_000) : acceptedAt;
  }
}

const parsed = (text: string | null): unknown => (text === null ? null : JSON.parse(text));

const truncated = (hasMore: boolean): { readonly truncated?: true } => (hasMore ? { truncated: true } : {});
