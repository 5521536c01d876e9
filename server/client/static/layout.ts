/**
 * Where a static log has what, beside the checkpoint and tiles of c2sp.org: the entries as they are served, an index of them, and
 * the operator's keys. Which objects there are follows from the size of the checkpoint alone, so two publishers make the same
 * ones, and a reader needs no list.
 */
import { tilePath } from "../../../engine/verify/index.js";
import { FULL_TILE } from "../log/served.js";

/** The answer of `GET /log/operator-key`: the keys that sign the heads. Its presence says that the entries are published. */
export const OPERATOR_KEY = "log/operator-key";

/** Entries `256 · index` and following: `entries/<N>`, or `entries/<N>.p/<W>` for the unfinished bundle at the end. */
export const entriesPath = (index: number, width: number): string =>
  tilePath({ level: "entries", index, width }).slice("tile/".length);

/** Leaf indexes from `from` on, before `to`. */
export interface LeafRange {
  readonly from: number;
  readonly to: number;
}

/** The place of a run's fence, or of one of its parts. */
export const runPath = ({ from, to }: LeafRange, part: "fence" | number): string => `index/${from}-${to}/${part}`;

/** The run that a path belongs to; undefined if it is none. */
export function parseRunPath(path: string): LeafRange | undefined {
  const [, from, to] = /^index\/(0|[1-9]\d{0,15})-([1-9]\d{0,15})\/(?:fence|0|[1-9]\d*)$/.exec(path) ?? [];
  return from === undefined ? undefined : { from: Number(from), to: Number(to) };
}

/** A large run is begun anew when the log has grown by an eighth or less. */
const SIGNIFICANT_BITS = 4;
const BUNDLE_BITS = 8;

/**
 * The runs of the index of a tree: at most three, which cover its full bundles. Entries of the unfinished bundle are in none.
 * The first run is rarely written again, the last one with each full bundle, and that is short.
 */
export function runsOf(treeSize: number): readonly LeafRange[] {
  const end = treeSize - (treeSize % FULL_TILE);
  const bits = end.toString(2).length;
  const coarse = Math.max(BUNDLE_BITS, bits - SIGNIFICANT_BITS);
  const middle = Math.ceil((coarse + BUNDLE_BITS) / 2);
  const cuts = [0, end - (end % 2 ** coarse), end - (end % 2 ** middle), end];
  return cuts.slice(1).flatMap((to, i) => (to > cuts[i]! ? [{ from: cuts[i]!, to }] : []));
}
