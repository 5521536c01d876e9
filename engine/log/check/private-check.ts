/** Checks of private rows: each names what contradicts the rest. */
import type { Store } from "../../store/store.js";

export type PrivateRows = Pick<Store, "get" | "keys" | "range">;

/** Where a log ends. After an import with gaps between ids, its last id is more than its size. */
export interface LogEnd {
  readonly size: number;
  /** Id of the newest entry; 0 on an empty log. */
  readonly lastId: number;
}

/** Names what is wrong among private rows. */
export type PrivateCheck = (rows: PrivateRows, end: LogEnd) => Iterable<string>;
