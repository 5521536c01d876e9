/**
 * The path to the root as a drawing: one row for each level, the leaf at the bottom. The node on the path is left or
 * right as in the tree, beside the node with which it is hashed.
 */
import { shortened } from "../../components/index.js";
import type { Way } from "../../state/source.js";
import type { Ascent, Rung } from "./ascent.js";

/** In pixels; the drawing fits a telephone. */
const WIDTH = 316;
const BOX = { width: 132, height: 34 } as const;
const ROW = 62;
const COLUMN = { left: 0, right: WIDTH - BOX.width } as const;
const MIDDLE = (WIDTH - BOX.width) / 2;
const TOP = 8;
/** Space below the leaves for their names. */
const BOTTOM = 22;

interface TreeDrawingProps {
  readonly ascent: Ascent;
  /** Level of the root. */
  readonly top: number;
  readonly proof: Way;
}

export function TreeDrawing({ ascent, top, proof }: TreeDrawingProps) {
  const high = TOP + top * ROW + BOX.height + BOTTOM;
  const rowOf = (level: number) => TOP + (top - level) * ROW;
  const levels = Array.from({ length: top + 1 }, (_, level) => ({
    level,
    rung: ascent.rungs[level],
    x: xOf(level, Math.floor(proof.leaf_index / 2 ** level), top),
  }));
  return (
    <svg
      class="tree"
      width={WIDTH}
      height={high}
      viewBox={`0 0 ${WIDTH} ${high}`}
      role="img"
      aria-label={`The way from leaf ${proof.leaf_index} over ${top} levels to the root; it follows as text.`}
    >
      {levels.slice(0, -1).map(({ level, x }) => {
        const other = x === COLUMN.left ? COLUMN.right : COLUMN.left;
        const parent = levels[level + 1]!.x + BOX.width / 2;
        const isClimbed = level + 1 < ascent.rungs.length;
        return [x, other].map((from) => (
          <path
            key={`${level} ${from}`}
            class={`tree-line ${isClimbed ? "tree-line-climbed" : ""}`}
            d={curve(from + BOX.width / 2, rowOf(level), parent, rowOf(level + 1) + BOX.height)}
          />
        ));
      })}
      {levels.map(({ level, rung, x }) => (
        <Level key={level} rung={rung} x={x} y={rowOf(level)} isRoot={level === top} isLeaf={level === 0} />
      ))}
    </svg>
  );
}

/** Left or right as in the tree; the root is in the middle. */
function xOf(level: number, index: number, top: number): number {
  if (level === top) return MIDDLE;
  return index % 2 === 1 ? COLUMN.right : COLUMN.left;
}

function curve(fromX: number, fromY: number, toX: number, toY: number): string {
  const middle = (fromY + toY) / 2;
  return `M${fromX} ${fromY}C${fromX} ${middle} ${toX} ${middle} ${toX} ${toY}`;
}

/** What stands beside a node on its way, by where it comes from. */
const NAMES = { proof: "", self: "itself", none: "no neighbour" } as const;

interface LevelProps {
  readonly rung: Rung | undefined;
  readonly x: number;
  readonly y: number;
  readonly isRoot: boolean;
  readonly isLeaf: boolean;
}

function Level({ rung, x, y, isRoot, isLeaf }: LevelProps) {
  const other = x === COLUMN.left ? COLUMN.right : COLUMN.left;
  const name = isLeaf ? "this entry" : "";
  return (
    <>
      <Box x={x} y={y} hash={rung?.hash} kind={rung ? "computed" : "waiting"} name={name} />
      {!isRoot && (
        <Box
          x={other}
          y={y}
          hash={rung?.partner?.from === "none" ? undefined : rung?.partner?.hash}
          kind={rung?.partner && rung.partner.from !== "none" ? rung.partner.from : "waiting"}
          name={NAMES[rung?.partner?.from ?? "proof"]}
        />
      )}
    </>
  );
}

interface BoxProps {
  readonly x: number;
  readonly y: number;
  readonly hash: string | undefined;
  readonly kind: "computed" | "proof" | "self" | "waiting";
  readonly name: string;
}

function Box({ x, y, hash, kind, name }: BoxProps) {
  return (
    <g class={`tree-box tree-box-${kind}`} transform={`translate(${x} ${y})`}>
      <rect width={BOX.width} height={BOX.height} rx="8" />
      <text x={BOX.width / 2} y={BOX.height / 2 + 4.5} text-anchor="middle">
        {hash === undefined ? "" : shortened(hash, 5)}
      </text>
      {name !== "" && (
        <text class="tree-name" x={BOX.width / 2} y={BOX.height + 15} text-anchor="middle">
          {name}
        </text>
      )}
    </g>
  );
}
