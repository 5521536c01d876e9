/** Positions of the keys of a graph: rings around the root, each key near the one from which it was reached. */
import type { GraphAnswer } from "./answer.js";

interface Position {
  readonly x: number;
  readonly y: number;
}

/** Distance between two rings, and between two neighbours on the outermost ring. */
const RING = 105;
const BESIDE = 62;

interface Branch {
  readonly fingerprint: string;
  readonly children: Branch[];
}

/** @param aspect width of the picture divided by its height: circles become ellipses that fill it */
export function ringPositions(graph: GraphAnswer, aspect: number): ReadonlyMap<string, Position> {
  const root = branchesOf(graph);
  const depth = Math.max(1, graph.depth_reached);
  const ring = Math.max(RING, (leavesOf(root) * BESIDE) / (2 * Math.PI * depth));
  const positions = new Map<string, Position>();
  const place = (branch: Branch, level: number, from: number, to: number): void => {
    const angle = (from + to) / 2;
    positions.set(branch.fingerprint, {
      x: Math.cos(angle) * level * ring * aspect,
      y: Math.sin(angle) * level * ring,
    });
    // Each child gets a wedge of the circle whose width depends on the number of its descendants.
    let start = from;
    for (const child of branch.children) {
      const end = start + ((to - from) * leavesOf(child)) / leavesOf(branch);
      place(child, level + 1, start, end);
      start = end;
    }
  };
  place(root, 0, -Math.PI, Math.PI);
  return positions;
}

/**
 * The graph as a tree: the parent of a key is the first key, one step nearer to the root, with which it has an
 * endorsement.
 */
function branchesOf({ root, nodes, edges }: GraphAnswer): Branch {
  const branches = new Map(nodes.map(({ fingerprint }) => [fingerprint, { fingerprint, children: [] as Branch[] }]));
  const neighbours = new Map<string, string[]>();
  for (const { from, to } of edges) {
    neighbours.set(from, [...(neighbours.get(from) ?? []), to]);
    neighbours.set(to, [...(neighbours.get(to) ?? []), from]);
  }
  const depths = new Map(nodes.map(({ fingerprint, depth }) => [fingerprint, depth]));
  for (const { fingerprint, depth } of nodes) {
    if (fingerprint === root) continue;
    const nearer = neighbours.get(fingerprint)?.find((other) => depths.get(other) === depth - 1) ?? root;
    branches.get(nearer)?.children.push(branches.get(fingerprint)!);
  }
  return branches.get(root) ?? { fingerprint: root, children: [] };
}

const leavesOf = ({ children }: Branch): number =>
  children.length === 0 ? 1 : children.reduce((sum, child) => sum + leavesOf(child), 0);
