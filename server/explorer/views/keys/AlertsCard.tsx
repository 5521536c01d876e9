/** Alerts that the key is compromised, from keys that it endorsed or that endorsed it. */
import { AlertPage } from "../../../../engine/contract/signing/endorsements.js";
import { Badge, Card, ForeignText, KeyName, TaskView, Time } from "../../components/index.js";
import { viewAddress } from "../../state/location.js";
import { http } from "../../state/service.js";
import { useTask } from "../../state/task.js";

const PER_PAGE = 20;

export function AlertsCard({ fingerprint }: { readonly fingerprint: string }) {
  const task = useTask(
    () =>
      http.get(AlertPage, `/endorsements/revocation-alerts/${encodeURIComponent(fingerprint)}`, { per_page: PER_PAGE }),
    [fingerprint],
  );
  const total = task.value?.total ?? 0;
  return (
    <Card title="Alerts" aside={total > 0 && <Badge tone="bad">{total}</Badge>}>
      <TaskView task={task} what="alerts" rows={1}>
        {({ alerts }) =>
          alerts.length === 0 ? (
            <p class="soft">Nobody has filed an alert about this key.</p>
          ) : (
            <ul class="alerts">
              {alerts.map(({ alert_entry_id, endorser_fingerprint, reason, evidence, filed_at }) => (
                <li key={alert_entry_id}>
                  <p>
                    <ForeignText text={reason} />
                  </p>
                  {evidence !== null && (
                    <p>
                      <ForeignText text={evidence} />
                    </p>
                  )}
                  <p class="alert-by">
                    By <KeyName fingerprint={endorser_fingerprint} isLink />
                    <Time at={filed_at} as="age" />
                    <a href={viewAddress(["entries", alert_entry_id])}>Entry {alert_entry_id}</a>
                  </p>
                </li>
              ))}
              {alerts.length < total && <li class="soft">{total - alerts.length} more are in the log.</li>}
            </ul>
          )
        }
      </TaskView>
    </Card>
  );
}
