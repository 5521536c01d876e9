/** Checks of private rows: each check reports contradictions between rows. */
import type { Store } from "../../store/store.js";

export type PrivateRows = Pick<Store, "get" | "keys" | "range">;

/** The end of a log. After an import with gaps between ids, the last id is greater than the size. */
export interface LogExtent {
  readonly size: number;
  /** Id of the newest entry; 0 on an empty log. */
  readonly lastId: number;
}

/** Yields a sentence for each fault among private rows. */
export type PrivateCheck = (rows: PrivateRows, end: LogExtent) => Iterable<string>;
