/** The operator key, which must sign every head, and since when this browser has pinned it. */
import { Badge, Card, Facts, Hash, Loading, Time } from "../../components/index.js";
import { alarm } from "../../state/alarm.js";
import { useCell } from "../../state/cell.js";
import { lastVisit, operator, pinnedAt } from "../../state/watching.js";

export function OperatorCard() {
  const key = useCell(operator);
  const raised = useCell(alarm);
  return (
    <Card
      title="Operator key"
      aside={key && (raised?.keys ? <Badge tone="bad">Changed</Badge> : <Badge tone="good">Pinned</Badge>)}
    >
      {key ? (
        <>
          <Facts
            facts={[
              [
                "Fingerprint",
                <Hash key="fingerprint" value={key.fingerprint} label="operator fingerprint" show="whole" />,
              ],
              ["Algorithm", key.algorithm],
              ["Pinned", <Time key="pinned" at={pinnedAt} />],
            ]}
          />
          <p class="soft note">
            {raised?.keys
              ? "The service shows another key: see the alarm above."
              : lastVisit
                ? "The service still shows the key that this browser pinned."
                : "Trusted on the first visit: compare it with the fingerprint that the operator published elsewhere."}
          </p>
        </>
      ) : (
        <Loading what="operator key" rows={3} />
      )}
    </Card>
  );
}
