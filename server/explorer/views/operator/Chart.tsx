/** A chart of numbers over the last minutes, drawn by uPlot, with the current values in words. */
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { Card, colourOf, whenColoursChange } from "../../components/index.js";
import type { Rates } from "./rates.js";
import "uplot/dist/uPlot.min.css";

export interface Series {
  readonly label: string;
  readonly of: keyof Rates;
  /** The current value in words. */
  write(value: number): string;
}

interface ChartProps {
  readonly title: string;
  readonly unit: string;
  readonly series: readonly Series[];
  readonly history: readonly Rates[];
}

const HEIGHT = 150;
const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
/** Lines also differ in their dashes, and not only in colour. */
const DASHES = [[], [6, 4], [2, 3]] as const;

export function Chart({ title, unit, series, history }: ChartProps) {
  const now = series.map(({ label, of, write }) => {
    const value = history.at(-1)?.[of] ?? null;
    return { label, text: value === null ? "—" : write(value) };
  });
  const said = now.map(({ label, text }) => `${label} ${text}`).join(", ");
  return (
    <Card title={title} aside={unit}>
      <dl class="chart-now">
        {now.map(({ label, text }, i) => (
          <div key={label}>
            <dt>
              <span class={`chart-key chart-key-${i + 1}`} aria-hidden="true" /> {label}
            </dt>
            <dd class="number">{text}</dd>
          </div>
        ))}
      </dl>
      <div role="img" aria-label={`${title} over the last minutes. Now: ${said}`}>
        <Plot series={series} history={history} />
      </div>
    </Card>
  );
}

function Plot({ series, history }: Pick<ChartProps, "series" | "history">) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = useRef<uPlot.AlignedData>([[]]);
  const [colours, setColours] = useState(0);
  data.current = alignedOf(series, history);
  useEffect(() => whenColoursChange(() => setColours((count) => count + 1)), []);
  useEffect(() => {
    let isWanted = true;
    const container = frame.current!;
    const fit = new ResizeObserver(() => plot.current?.setSize({ width: container.clientWidth, height: HEIGHT }));
    void import("uplot").then(({ default: Plotter }) => {
      if (!isWanted) return;
      plot.current = new Plotter(optionsOf(series, container), data.current, container);
      fit.observe(container);
    });
    return () => {
      isWanted = false;
      fit.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [series, colours]);
  useEffect(() => plot.current?.setData(data.current), [history]);
  return <div class="chart-plot" ref={frame} />;
}

function alignedOf(series: readonly Series[], history: readonly Rates[]): uPlot.AlignedData {
  return [history.map(({ at }) => at / 1000), ...series.map(({ of }) => history.map((rates) => rates[of]))];
}

function optionsOf(series: readonly Series[], container: HTMLElement): uPlot.Options {
  const axis = {
    stroke: colourOf("--text-soft"),
    grid: { stroke: colourOf("--line"), width: 1 },
    ticks: { show: false },
    font: "12px ui-sans-serif, system-ui, sans-serif",
  };
  return {
    width: container.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    // A minute at least: a single point has no width, and would have no axis.
    scales: {
      x: { range: (_, from, to) => [Math.min(from, to - 60), to] },
      y: { range: (_, __, most) => [0, Math.max(1, (most ?? 0) * 1.15)] },
    },
    axes: [
      { ...axis, size: 26, space: 90, values: (_, seconds) => seconds.map((each) => TIME.format(each * 1000)) },
      { ...axis, size: 52 },
    ],
    series: [
      {},
      ...series.map(({ label }, i) => ({
        label,
        stroke: colourOf(`--series-${i + 1}`),
        width: 2,
        dash: [...(DASHES[i] ?? [])],
        spanGaps: false,
      })),
    ],
  };
}
