/** The trust that the service computes for the key from its endorsements. */
import type { Static } from "typebox";
import type { TrustStatus } from "../../../../engine/contract/signing/trust.js";
import { trustSum } from "../../../client/signing/trust-sum.js";
import { Card, Facts, KeyName, spoken, TaskView } from "../../components/index.js";
import type { Task } from "../../state/task.js";

const LEVEL = new Intl.NumberFormat(undefined, { maximumFractionDigits: 3 });

export function TrustCard({ task }: { readonly task: Task<Static<typeof TrustStatus>> }) {
  return (
    <Card title="Trust" aside="as this service computes it">
      <TaskView task={task} what="how the key is trusted" rows={4}>
        {({ trust_level, paths, may_endorse, capacity, capacity_used, over_capacity, received, issued, alerts }) => (
          <div class="key-facts">
            <p class="trust-level">
              <span class="trust-number number">{LEVEL.format(trust_level)}</span>
              <meter min={0} max={1} value={trust_level} aria-label="Trust level, from 0 to 1" />
            </p>
            {paths.length > 0 && <Paths paths={paths} />}
            <Sum level={trust_level} sum={trustSum({ trust_level, paths }, LEVEL.format)} />
            <Facts
              facts={[
                ["May endorse", may_endorse ? "Yes" : "No: not trusted enough, or not active"],
                [
                  "Endorses",
                  `${capacity_used} of ${capacity} without a discount${over_capacity ? ": over capacity, each of them is discounted" : ""}`,
                ],
                ["Received", counted(received)],
                ["Issued", counted(issued)],
                ["Compromised", alerts === 0 ? "No alerts" : `${alerts} ${alerts === 1 ? "alert" : "alerts"}`],
              ]}
            />
          </div>
        )}
      </TaskView>
    </Card>
  );
}

/** What the level is made of: "Operator ×0.5 → Ada ×0.5 → this key = 0.25". */
function Paths({ paths }: Pick<Static<typeof TrustStatus>, "paths">) {
  return (
    <ol class="trust-paths" aria-label="Paths of trust to this key, the best first">
      {paths.map(({ keys, factors }) => (
        <li key={keys[1]}>
          {factors.map((factor, i) => (
            <span key={keys[i]} class="trust-step">
              <KeyName fingerprint={keys[i]!} isLink /> <span class="number">× {LEVEL.format(factor)}</span>{" "}
              <span aria-hidden="true">→</span>{" "}
            </span>
          ))}
          <span class="trust-step">
            this key{" "}
            <strong class="number">= {LEVEL.format(factors.reduce((product, factor) => product * factor, 1))}</strong>
          </span>
        </li>
      ))}
    </ol>
  );
}

/** "1 − (1 − 0.1) × (1 − 0.5) = 0.55". */
function Sum({ level, sum }: { readonly level: number; readonly sum: string | null }) {
  return (
    sum && (
      <p class="note">
        <span class="number">
          {sum} = {LEVEL.format(level)}
        </span>
        : each part adds its share of what is missing to 1. The first is what the key has of itself.
      </p>
    )
  );
}

/** "2 active, 1 offered". */
function counted(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).flatMap(([status, count]) => (count ? [`${count} ${spoken(status)}`] : []));
  return parts.join(", ") || "none";
}
