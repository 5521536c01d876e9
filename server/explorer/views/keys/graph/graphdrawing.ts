/** The picture of a graph: rings around the key in the middle, in the colours of the page. Loads Cytoscape. */
import type { Core, StylesheetJson } from "cytoscape";
import { colourOf, shortened, whenColoursChange } from "../../../components/index.js";
import { foldedName, sharedNames, shownText } from "../../../state/names.js";
import type { GraphAnswer } from "./answer.js";
import { ringPositions } from "./rings.js";

const NAME_CHARACTERS = 22;
const NAME_PIXELS = 12;
const PADDING = 24;
/**
 * Maximum width of the rings divided by their height. Names are wide, so the rings are never much narrower than
 * circles.
 */
const WIDEST = 1.7;
const NARROWEST = 0.8;
/** Font size of names in pixels: at least the first on the screen, at most the second in the picture. */
const READABLE = 10.5;
const LARGEST = 22;

/** Draws the graph into an element that has a size. @returns null if the element has left the page meanwhile */
export async function drawGraph(container: HTMLElement, graph: GraphAnswer): Promise<Core | null> {
  const { default: cytoscape } = await import("cytoscape");
  if (!container.isConnected) return null;
  const positions = ringPositions(graph, aspectOf(container));
  const namesakes = sharedNames(graph.nodes.map(({ pseudonym }) => pseudonym));
  const hasFinePointer = window.matchMedia("(pointer: fine)").matches;
  const picture = cytoscape({
    container,
    elements: {
      nodes: graph.nodes.map(({ fingerprint, pseudonym, status, depth }) => ({
        data: { id: fingerprint, label: labelOf(pseudonym, fingerprint, status, namesakes), depth },
        classes: `${status} ${fingerprint === graph.root ? "root" : ""} ${(positions.get(fingerprint)?.y ?? 0) < 0 ? "above" : ""}`,
      })),
      edges: graph.edges.map(({ from, to, category, status, offer_entry_id }) => ({
        data: { id: `${offer_entry_id}`, source: from, target: to },
        classes: `${status === "active" ? "" : "inactive"} ${category.endsWith("institutional_endorsement") ? "institutional" : ""}`,
      })),
    },
    style: pageStyle(),
    layout: {
      name: "preset",
      positions: Object.fromEntries(positions),
      padding: PADDING,
      animate: false,
    },
    // Otherwise the wheel and a finger would zoom the picture instead of scrolling the page.
    userZoomingEnabled: false,
    userPanningEnabled: hasFinePointer,
    autoungrabify: true,
    boxSelectionEnabled: false,
    maxZoom: 1.4,
  });
  follow(picture, container);
  return picture;
}

/** Updates the colours when the page's colours change. */
function follow(picture: Core, container: HTMLElement): void {
  const forget = whenColoursChange(() => void picture.style(pageStyle()));
  const fit = new ResizeObserver(() => {
    picture.resize();
    picture.fit(undefined, PADDING);
    picture.nodes().style("font-size", Math.min(LARGEST, Math.max(NAME_PIXELS, READABLE / picture.zoom())));
  });
  fit.observe(container);
  picture.on("destroy", () => {
    forget();
    fit.disconnect();
  });
}

function pageStyle(): StylesheetJson {
  return [
    {
      selector: "node",
      style: {
        label: "data(label)",
        width: 26,
        height: 26,
        "background-color": colourOf("--accent-soft"),
        "border-color": colourOf("--accent"),
        "border-width": 2,
        color: colourOf("--text"),
        "font-family": "ui-sans-serif, system-ui, sans-serif",
        "font-size": NAME_PIXELS,
        "text-valign": "bottom",
        "text-margin-y": 5,
        "text-wrap": "wrap",
        // Lines end behind a name, and never run through it.
        "text-background-color": colourOf("--sunken"),
        "text-background-opacity": 1,
        "text-background-padding": "3px",
        "text-background-shape": "roundrectangle",
        "z-index": 2,
      },
    },
    // Names stand outside the rings, so that fewer lines come near them.
    { selector: "node.above", style: { "text-valign": "top", "text-margin-y": -5 } },
    {
      selector: "node.revoked, node.expired, node.succeeded",
      style: { shape: "diamond", "background-color": colourOf("--bad-soft"), "border-color": colourOf("--bad") },
    },
    {
      selector: "node.root",
      style: { width: 38, height: 38, "background-color": colourOf("--accent"), "font-weight": 600 },
    },
    { selector: "node.root.revoked", style: { "background-color": colourOf("--bad") } },
    { selector: "node.marked", style: { "border-width": 6, "border-color": colourOf("--text") } },
    {
      selector: "edge",
      style: {
        width: 2,
        "curve-style": "bezier",
        "line-color": colourOf("--series-1"),
        "target-arrow-color": colourOf("--series-1"),
        "target-arrow-shape": "triangle",
      },
    },
    {
      selector: "edge.institutional",
      style: {
        "line-color": colourOf("--series-2"),
        "target-arrow-color": colourOf("--series-2"),
        "target-arrow-shape": "circle",
      },
    },
    { selector: "edge.inactive", style: { "line-style": "dashed", opacity: 0.7 } },
  ];
}

function aspectOf({ clientWidth, clientHeight }: HTMLElement): number {
  return Math.min(WIDEST, Math.max(NARROWEST, clientWidth / Math.max(1, clientHeight)));
}

/**
 * A status other than active is also shown in words, not only by colour and shape; keys of one name also with the beginning
 * of their fingerprints.
 */
function labelOf(pseudonym: string, fingerprint: string, status: string, shared: ReadonlySet<string>): string {
  const said = shownText(pseudonym);
  const name = said.length > NAME_CHARACTERS ? `${said.slice(0, NAME_CHARACTERS - 1)}…` : said;
  const digits = shared.has(foldedName(pseudonym)) ? `\n${shortened(fingerprint, 4)}` : "";
  return status === "active" ? `${name}${digits}` : `${name}${digits}\n(${status})`;
}
