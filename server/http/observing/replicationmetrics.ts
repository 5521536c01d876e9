/** Metrics of a node of a replicated log. */
import { Gauge, Histogram, type Registry } from "prom-client";
import type { ReplicationStatus } from "../../replication/replication.js";

/** Bounds, in seconds. */
const DURATIONS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30];

/** What calls `observeAppend` with the seconds that each append took. */
export interface Appending {
  observeAppend: (times: { readonly append: number; readonly readBack: number }) => void;
}

export function addReplicationMetrics(registry: Registry, status: () => ReplicationStatus, appending: Appending): void {
  const registers = [registry];
  const gauge = (name: string, help: string, value: (status: ReplicationStatus) => number) =>
    new Gauge({
      name: `cairnlog_replication_${name}`,
      help,
      registers,
      collect() {
        this.set(value(status()));
      },
    });
  gauge("leader", "1 while this node writes the log.", ({ role }) => (role === "leader" ? 1 : 0));
  gauge("epoch", "How often the lead has changed.", ({ epoch }) => epoch);
  gauge("sequence", "Number of the newest record of the journal on this node.", ({ sequence }) => sequence);
  gauge("trouble", "1 while this node cannot follow or lead.", ({ trouble }) => (trouble === null ? 0 : 1));
  gauge(
    "lag_seconds",
    "Seconds since this node knew that it had everything; NaN before the first time.",
    ({ lagSeconds }) => lagSeconds ?? Number.NaN,
  );
  const append = new Histogram({
    name: "cairnlog_replication_append_seconds",
    help: "What the append of a record took until it was decided.",
    buckets: DURATIONS,
    registers,
  });
  const readBack = new Histogram({
    name: "cairnlog_replication_readback_seconds",
    help: "What it took of that until a standby showed the record.",
    buckets: DURATIONS,
    registers,
  });
  appending.observeAppend = (times) => {
    append.observe(times.append);
    readBack.observe(times.readBack);
  };
}
