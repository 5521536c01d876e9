/** How the paths of trust to a key make its level (docs/spec §9.3), for people. */
import { OWN_TRUST } from "../../../engine/verify/keys/contract.js";
import type { TrustStatus } from "../base/types.js";

/** Levels are numbers of the service's own rounding. */
const ROUNDING = 1e-9;

/**
 * The formula with its numbers: "1 − (1 − 0.1) × (1 − 0.5)".
 * @param written writes a number
 * @returns null where it does not make the level, as with more paths than are told
 */
export function trustSum(
  { trust_level, paths }: Pick<TrustStatus, "trust_level" | "paths">,
  written: (value: number) => string = String,
): string | null {
  const through = paths.map(({ factors }) => factors.reduce((product, factor) => product * factor, 1));
  const own = [OWN_TRUST, 0].find(
    (own) => Math.abs(1 - [own, ...through].reduce((left, part) => left * (1 - part), 1) - trust_level) < ROUNDING,
  );
  if (own === undefined || through.length === 0) return null;
  return `1 − ${[own, ...through].map((part) => `(1 − ${written(part)})`).join(" × ")}`;
}
