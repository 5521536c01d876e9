/**
 * The paths of tiles and entry bundles (c2sp.org/tlog-tiles): `tile/<L>/<N>[.p/<W>]` and `tile/entries/<N>[.p/<W>]`, with
 * the index N in groups of three digits: 1234067 is `x001/x234/067`. Every tile has one path, and no other names it.
 */
import { inputError } from "../../base/error.js";
import { isSize } from "../bytes/encoding.js";

/** Number of hashes in a full tile, and of entries in a full bundle. */
const FULL_WIDTH = 256;
const MAX_LEVEL = 63;

/** What a path names. */
export interface TileName {
  /** Tile level; `entries` for an entry bundle. */
  readonly level: number | "entries";
  readonly index: number;
  /** 1 to 256; 256 for a full tile. */
  readonly width: number;
}

const LEVEL = /^(?:0|[1-9]\d?)$/;
const LAST_GROUP = /^\d{3}$/;
const OTHER_GROUP = /^x\d{3}$/;
const WIDTH = /^[1-9]\d{0,2}$/;

/**
 * What the parts of a path after `tile/` name: the level or `entries`, then the rest. Undefined for anything that is not
 * the one path of a tile: other leading zeros, a width of 0 or 256, an index above 2^53 − 1.
 */
export function parseTilePath([level, ...rest]: readonly string[]): TileName | undefined {
  if (level === undefined || (level !== "entries" && !(LEVEL.test(level) && Number(level) <= MAX_LEVEL)))
    return undefined;
  const width = rest.at(-2)?.endsWith(".p") ? rest.at(-1)! : null;
  const groups = width === null ? rest : [...rest.slice(0, -2), rest.at(-2)!.slice(0, -2)];
  if (width !== null && !(WIDTH.test(width) && Number(width) < FULL_WIDTH)) return undefined;
  if (!groups.every((group, i) => (i === groups.length - 1 ? LAST_GROUP : OTHER_GROUP).test(group))) return undefined;
  const index = Number(groups.join("").replaceAll("x", ""));
  if (!groups.length || !Number.isSafeInteger(index) || (groups.length > 1 && groups[0] === "x000")) return undefined;
  return {
    level: level === "entries" ? level : Number(level),
    index,
    width: width === null ? FULL_WIDTH : Number(width),
  };
}

/**
 * The path of a tile or bundle, from `tile/` on.
 * @throws CairnlogError `invalid-input` for a level, an index or a width that no tile has
 */
export function tilePath({ level, index, width }: TileName): string {
  const isLevel = level === "entries" || (Number.isInteger(level) && level >= 0 && level <= MAX_LEVEL);
  const isWidth = Number.isInteger(width) && width >= 1 && width <= FULL_WIDTH;
  if (!isLevel || !isWidth || !isSize(index))
    throw inputError(
      `A tile has a level from 0 to ${MAX_LEVEL}, an index from 0 on and a width from 1 to ${FULL_WIDTH}.`,
    );
  const digits = String(index);
  const groups = digits.padStart(3 * Math.ceil(digits.length / 3), "0").match(/\d{3}/g)!;
  const path = groups.map((group, i) => (i < groups.length - 1 ? `x${group}` : group)).join("/");
  return `tile/${level}/${path}${width === FULL_WIDTH ? "" : `.p/${width}`}`;
}
