/** Metrics of the witnesses that cosign the log's checkpoints. Labels are names in the policy, which the operator wrote. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { CosigningStatus } from "../../cosigning/cosigning.js";

/** @param status how it stands when metrics are shown; null while another node of the log publishes */
export function addCosigningMetrics(registry: Registry, status: () => CosigningStatus | null): void {
  const registers = [registry];
  const labelNames = ["witness"] as const;
  const witnesses = () => status()?.witnesses ?? [];
  new Gauge({
    name: "cairnlog_cosigned_entries",
    help: "Entries in the newest checkpoint at /tlog/ that enough witnesses have cosigned.",
    registers,
    collect() {
      this.set(status()?.treeSize ?? 0);
    },
  });
  new Gauge({
    name: "cairnlog_cosigner_entries",
    help: "Entries in the newest checkpoint that a witness has cosigned.",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { name, treeSize } of witnesses()) this.set({ witness: name }, treeSize ?? 0);
    },
  });
  new Gauge({
    name: "cairnlog_cosigner_seconds",
    help: "Unix time of the newest cosignature of a witness, or 0.",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { name, time } of witnesses()) this.set({ witness: name }, time ?? 0);
    },
  });
  new Gauge({
    name: "cairnlog_cosigner_late",
    help: "1 for a witness that has not cosigned the newest checkpoint in time.",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { name, isLate } of witnesses()) this.set({ witness: name }, isLate ? 1 : 0);
    },
  });
  new Counter({
    name: "cairnlog_cosigner_failures_total",
    help: "Requests to a witness that gave no cosignature.",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { name, failures } of witnesses()) this.inc({ witness: name }, failures);
    },
  });
}
