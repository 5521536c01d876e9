/** The graph, drawn by Cytoscape. The reader navigates by pressing a key, or with the arrow keys and Enter. */
import type { Core, NodeSingular } from "cytoscape";
import { useEffect, useRef, useState } from "preact/hooks";
import { Loading, ProblemNote, spoken } from "../../../components/index.js";
import { announce } from "../../../state/announcements.js";
import type { GraphAnswer } from "./answer.js";
import { drawGraph } from "./graphdrawing.js";

interface GraphPictureProps {
  readonly graph: GraphAnswer;
  walk(fingerprint: string): void;
}

export function GraphPicture({ graph, walk }: GraphPictureProps) {
  const frame = useRef<HTMLDivElement>(null);
  const picture = useRef<Core | null>(null);
  const [state, setState] = useState<"loading" | "drawn" | { readonly error: unknown }>("loading");
  const walker = useRef(walk);
  walker.current = walk;
  useEffect(() => {
    let isWanted = true;
    drawGraph(frame.current!, graph).then(
      (drawn) => {
        if (!drawn || !isWanted) return drawn?.destroy();
        picture.current = drawn;
        drawn.on("tap", "node", ({ target }) => walker.current((target as NodeSingular).id()));
        setState("drawn");
      },
      (error: unknown) => isWanted && setState({ error }),
    );
    return () => {
      isWanted = false;
      picture.current?.destroy();
      picture.current = null;
    };
  }, [graph]);
  const press = (event: KeyboardEvent) => {
    const drawn = picture.current;
    if (!drawn) return;
    const marked = drawn.nodes(".marked").first();
    const from = marked.nonempty() ? marked : drawn.getElementById(graph.root);
    const direction = ARROWS[event.key];
    if (direction) {
      event.preventDefault();
      mark(drawn, nearest(drawn, from, direction) ?? from, graph);
    } else if (event.key === "Enter" && marked.nonempty()) {
      event.preventDefault();
      walk(marked.id());
    }
  };
  return (
    <figure class="graph-figure">
      {typeof state === "object" && <ProblemNote error={state.error} />}
      {state === "loading" && <Loading what="the picture" rows={1} />}
      {/* It can take the focus, and announces the selected key. The table beside it has all of its data. */}
      <div
        class="graph-frame"
        role="application"
        aria-label={`Picture of ${graph.nodes.length} keys and ${graph.edges.length} endorsements. Arrow keys mark a key, Enter goes on from it.`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard walks it
        tabIndex={0}
        onKeyDown={press}
      >
        {/* Cytoscape adds a style element, which the policy forbids, unless it finds this. */}
        <span id="__________cytoscape_stylesheet" hidden />
        <div class="graph-canvas" ref={frame} />
      </div>
      <figcaption class="soft">
        Press a key, or select it with the arrow keys and press Enter, to show the graph around that key. Solid lines
        are active endorsements, dashed lines are not; round ends are institutional, pointed ends human. Below the name
        of a key that is not active is its status.
      </figcaption>
    </figure>
  );
}

/** Unit vectors, y downwards. */
const ARROWS: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The nearest node in this direction; a sideways distance counts twice. */
function nearest(drawn: Core, from: NodeSingular, [x, y]: readonly [number, number]): NodeSingular | undefined {
  const { x: fromX, y: fromY } = from.position();
  let best: NodeSingular | undefined;
  let least = Number.POSITIVE_INFINITY;
  drawn.nodes().forEach((node) => {
    const [dx, dy] = [node.position().x - fromX, node.position().y - fromY];
    const along = dx * x + dy * y;
    const aside = Math.abs(dx * y) + Math.abs(dy * x);
    if (along <= 0 || aside > 2 * along) return;
    if (along + 2 * aside >= least) return;
    least = along + 2 * aside;
    best = node;
  });
  return best;
}

function mark(drawn: Core, node: NodeSingular, graph: GraphAnswer): void {
  drawn.nodes(".marked").removeClass("marked");
  node.addClass("marked");
  const key = graph.nodes.find(({ fingerprint }) => fingerprint === node.id());
  const edges = graph.edges.filter(({ from, to }) => from === node.id() || to === node.id());
  const words = edges.map(({ from, category, status, to }) => {
    const other = graph.nodes.find(({ fingerprint }) => fingerprint === (from === node.id() ? to : from));
    return `${from === node.id() ? "endorses" : "endorsed by"} ${other?.pseudonym ?? "a key"}, ${spoken(category)}, ${spoken(status)}`;
  });
  announce(`${key?.pseudonym ?? "A key"}, ${key?.status ?? ""}. ${words.join(". ")}`);
}
