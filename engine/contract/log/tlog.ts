/** The log as tools of other transparency logs read it (c2sp.org/tlog-tiles). */
import Type from "typebox";

const LEVEL = {
  level: Type.String({
    description: "Tile level, 0 to 63; level 0 holds the leaf hashes. `entries` for an entry bundle.",
  }),
};

/** The parameters `n1`, `n2`, … of a path with `count` parts after the level. */
export function tileParams(count: number) {
  const parts = Array.from({ length: count }, (_, i) => [
    `n${i + 1}`,
    Type.String({ description: describe(i, count) }),
  ]);
  return Type.Object({ ...LEVEL, ...Object.fromEntries(parts) });
}

function describe(i: number, count: number): string {
  const last = "Last three digits of the index";
  if (i === count - 1)
    return i === 0 ? `${last}.` : `${last}; or, after \`.p/\`, the width of a partial tile: 1 to 255.`;
  const group = "Three digits of the index, after an `x`";
  return i === count - 2 ? `${group}; or, before a width, its last three digits and \`.p\`.` : `${group}.`;
}

/** Bytes; JSON Schema has no type for them. */
export const TlogTile = Type.String({
  contentMediaType: "application/octet-stream",
  description:
    "A tile: hashes of 32 bytes. An entry bundle: for each entry its length (64, two bytes, big-endian) and its `entry_hash` in hexadecimal.",
});

export const TlogCheckpoint = Type.String({
  description:
    "A signed note (c2sp.org/tlog-checkpoint): origin, tree size, root in base64, an empty line, signatures.",
});

export const Vkey = Type.String({ description: "A verifier key (c2sp.org/signed-note) and a line feed." });
