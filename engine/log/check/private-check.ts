/** Checks of private rows: each names what contradicts the rest. */
import type { Store } from "../../store/store.js";

export type PrivateRows = Pick<Store, "get" | "keys" | "range">;
/** Names what is wrong among private rows; `size` is the number of entries. */
export type PrivateCheck = (rows: PrivateRows, size: number) => Iterable<string>;
