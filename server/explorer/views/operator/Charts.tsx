/** Charts of the service's own metrics. */
import { Empty } from "../../components/index.js";
import { Chart, type Series } from "./Chart.js";
import { useRates } from "./useRates.js";

const NUMBER = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const PERCENT = new Intl.NumberFormat(undefined, { style: "percent" });

const rate = (value: number): string => `${NUMBER.format(value)}/s`;
const count = (value: number): string => NUMBER.format(value);
const time = (value: number): string => `${NUMBER.format(value)} ms`;

/** The series are constant objects, so that a chart is not created again at each measurement. */
const CHARTS: readonly { readonly title: string; readonly unit: string; readonly series: readonly Series[] }[] = [
  {
    title: "Appends",
    unit: "a second",
    series: [
      { label: "Entries", of: "appends", write: rate },
      { label: "Batches", of: "batches", write: rate },
    ],
  },
  {
    title: "Duration of writing requests",
    unit: "milliseconds",
    series: [
      { label: "Half below", of: "median", write: time },
      { label: "99 in 100 below", of: "slowest", write: time },
    ],
  },
  { title: "Batch size", unit: "entries", series: [{ label: "Average", of: "batchSize", write: count }] },
  { title: "Queue", unit: "waiting appends", series: [{ label: "Waiting", of: "queue", write: count }] },
  {
    title: "Webhook deliveries",
    unit: "a second, and waiting",
    series: [
      { label: "Made", of: "delivered", write: rate },
      { label: "Failed", of: "failed", write: rate },
      { label: "Waiting", of: "outbox", write: count },
    ],
  },
  {
    title: "Anchors",
    unit: "anchored entries",
    series: [
      { label: "In Bitcoin", of: "confirmedAnchors", write: count },
      { label: "Pending", of: "pendingAnchors", write: count },
    ],
  },
  {
    title: "Refusals and errors",
    unit: "requests a second",
    series: [
      { label: "Refused", of: "refused", write: rate },
      { label: "Failed in the service", of: "errors", write: rate },
    ],
  },
  {
    title: "Disk",
    unit: "GiB",
    series: [{ label: "Free", of: "disk", write: (value) => `${count(value)} GiB` }],
  },
  { title: "Processor", unit: "of one core", series: [{ label: "In use", of: "cpu", write: PERCENT.format }] },
  {
    title: "Memory",
    unit: "MiB, resident",
    series: [{ label: "In use", of: "memory", write: (value) => `${count(value)} MiB` }],
  },
];

export function Charts() {
  const { history, error, version } = useRates();
  return (
    <>
      {error && (
        <p class="form-error" role="alert">
          {error.message} It is asked again every few seconds.
        </p>
      )}
      {history.length === 0 && !error && (
        <Empty title="Counting…">A rate needs two measurements, a few seconds apart.</Empty>
      )}
      {version !== undefined && <p class="soft">The service is of version {version}.</p>}
      {history.length > 0 && (
        <div class="charts">
          {CHARTS.map((chart) => (
            <Chart key={chart.title} {...chart} history={history} />
          ))}
        </div>
      )}
    </>
  );
}
