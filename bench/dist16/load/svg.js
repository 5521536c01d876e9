const WIDTH = 820;
const LEFT = 76;
const RIGHT = 130;
const PLOT = { width: WIDTH - LEFT - RIGHT, height: 170 };
const PANEL_HEIGHT = PLOT.height + 62;
const NOTE_HEIGHT = 16;
/**
 * The reader's preference decides between light and dark. Colours have a contrast of at least 4.5 : 1 with the
 * background, and lines also differ in dashes. The rules are written twice instead of with variables, because drawing
 * programs understand only plain rules.
 */
const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .title { font-size: 16px; font-weight: 600; } .panel { font-weight: 600; } .small { fill: #59636e; font-size: 11px; }
  .ground { fill: #ffffff; } .grid { stroke: #d8dee4; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .s0 { stroke: #0a58ca; } .s1 { stroke: #9a4a00; stroke-dasharray: 7 3; } .s2 { stroke: #8a1c7c; stroke-dasharray: 2 3; }
  .d0 { fill: #0a58ca; } .d1 { fill: #9a4a00; } .d2 { fill: #8a1c7c; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .small { fill: #9198a1; } .ground { fill: #0d1117; } .grid { stroke: #30363d; }
    .s0 { stroke: #6cb0ff; } .s1 { stroke: #f0a35e; } .s2 { stroke: #ec8fdc; }
    .d0 { fill: #6cb0ff; } .d1 { fill: #f0a35e; } .d2 { fill: #ec8fdc; }
  }`;
const escapeXml = (text) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
const at = (value) => value.toFixed(1);
const short = (value) => value >= 1e6 ? `${value / 1e6}M` : value >= 10_000 ? `${value / 1000}k` : String(Number(value.toPrecision(3)));
/** From 0 to the first round number above `highest`, in four to ten steps. */
function linear(highest) {
    const top = highest > 0 ? highest : 1;
    const magnitude = 10 ** Math.floor(Math.log10(top));
    const step = [0.1, 0.2, 0.5, 1, 2].map((factor) => factor * magnitude).find((size) => top / size <= 6) ?? magnitude;
    const count = Math.ceil(top / step);
    const ticks = Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(6)));
    return { ticks, place: (value) => value / (count * step) };
}
/** Whole powers of ten around the values. */
function logarithmic(values) {
    const from = Math.floor(Math.log10(Math.min(...values)));
    const to = Math.max(from + 1, Math.ceil(Math.log10(Math.max(...values))));
    const ticks = Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));
    return { ticks, place: (value) => (Math.log10(value) - from) / (to - from) };
}
function categorical(categories) {
    return { ticks: categories, place: (value) => (categories.indexOf(value) + 0.5) / categories.length };
}
/** A panel whose upper left corner is at y = `top`. */
function drawPanel(panel, x, top, xLabel) {
    const all = panel.series.flatMap(({ points }) => points.map(({ y }) => y)).filter(Number.isFinite);
    if (all.length === 0)
        return `<text x="${LEFT}" y="${top + 40}">${escapeXml(panel.title)}: nothing was measured</text>`;
    const y = panel.logarithmic ? logarithmic(all.filter((value) => value > 0)) : linear(Math.max(...all));
    const plotTop = top + 24;
    const bottom = plotTop + PLOT.height;
    const toX = (value) => LEFT + PLOT.width * x.place(value);
    const toY = (value) => bottom - PLOT.height * y.place(value);
    const parts = [`<text class="panel" x="${LEFT}" y="${top + 12}">${escapeXml(panel.title)}</text>`];
    for (const tick of y.ticks)
        parts.push(`<line class="grid" x1="${LEFT}" x2="${LEFT + PLOT.width}" y1="${at(toY(tick))}" y2="${at(toY(tick))}"/>`, `<text class="small" text-anchor="end" x="${LEFT - 8}" y="${at(toY(tick) + 4)}">${short(tick)}</text>`);
    for (const tick of x.ticks)
        parts.push(`<text class="small" text-anchor="middle" x="${at(toX(tick))}" y="${bottom + 16}">${short(tick)}</text>`);
    parts.push(`<text class="small" text-anchor="end" x="${LEFT + PLOT.width}" y="${bottom + 31}">${escapeXml(xLabel)}</text>`);
    panel.series.forEach(({ name, points }, i) => {
        const drawn = points.filter(({ y: value }) => Number.isFinite(value) && (!panel.logarithmic || value > 0));
        const path = drawn.map((point, n) => `${n ? "L" : "M"}${at(toX(point.x))} ${at(toY(point.y))}`).join("");
        parts.push(`<path class="line s${i}" d="${path}"/>`);
        for (const point of drawn.length <= 20 ? drawn : [])
            parts.push(`<circle class="d${i}" cx="${at(toX(point.x))}" cy="${at(toY(point.y))}" r="3"/>`);
        const legend = plotTop + 12 + 18 * i;
        const legendX = LEFT + PLOT.width + 12;
        parts.push(`<path class="line s${i}" d="M${legendX} ${legend - 4}h24"/>`, `<text x="${legendX + 30}" y="${legend}">${escapeXml(name)}</text>`);
    });
    return parts.join("\n");
}
/** The whole drawing as an SVG document. */
export function draw({ title, notes, xLabel, categories, panels }) {
    const head = 40 + NOTE_HEIGHT * notes.length;
    const height = head + PANEL_HEIGHT * panels.length + 8;
    const furthest = Math.max(0, ...panels.flatMap(({ series }) => series.flatMap(({ points }) => points.map((p) => p.x))));
    const x = categories ? categorical(categories) : linear(furthest);
    const lines = notes.map((note, i) => `<text class="small" x="20" y="${48 + NOTE_HEIGHT * i}">${escapeXml(note)}</text>`);
    return [
        `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
        `<title>${escapeXml(title)}</title>`,
        `<style>${STYLE}\n</style>`,
        `<rect width="${WIDTH}" height="${height}" class="ground"/>`,
        `<text class="title" x="20" y="26">${escapeXml(title)}</text>`,
        ...lines,
        ...panels.map((panel, i) => drawPanel(panel, x, head + PANEL_HEIGHT * i, xLabel)),
        "</svg>\n",
    ].join("\n");
}
//# sourceMappingURL=svg.js.map