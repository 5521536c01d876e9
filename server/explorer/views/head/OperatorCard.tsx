/** The operator key, which must sign every head, those before it, and since when this browser has pinned one of them. */
import type { JSX } from "preact";
import { Badge, Card, Facts, Hash, Loading, Time } from "../../components/index.js";
import { alarms } from "../../state/alarm.js";
import { useCell } from "../../state/cell.js";
import { isDemonstration } from "../../state/memory.js";
import { server } from "../../state/source.js";
import { lastVisit, operators, pinnedAt } from "../../state/watching.js";

export function OperatorCard() {
  const keys = useCell(operators);
  const key = keys?.current;
  const retired = keys?.chain.filter(({ until_size }) => until_size !== null) ?? [];
  const isOtherShown = useCell(alarms).some(({ keys }) => keys);
  const isSpared = useCell(isDemonstration);
  return (
    <Card
      title="Operator key"
      aside={
        key &&
        (isOtherShown ? (
          <Badge tone="bad">Changed</Badge>
        ) : isSpared ? (
          <Badge>Not pinned</Badge>
        ) : (
          <Badge tone="good">Pinned</Badge>
        ))
      }
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
              !isSpared && ["Pinned", <Time key="pinned" at={pinnedAt} />],
              ...retired.map(({ key_id, until_size }): [string, JSX.Element] => [
                `Until size ${until_size}`,
                <Hash key={key_id} value={key_id} label="retired operator fingerprint" />,
              ]),
            ]}
          />
          <p class="soft note">
            {isOtherShown
              ? `${server()} shows another key: see the alarm above.`
              : isSpared
                ? "The log is a demonstration, whose key ends with it: this browser does not pin it."
                : retired.length
                  ? "Each key has signed that the next one follows it, and the log has that on record."
                  : lastVisit
                    ? `${server()} still shows the key that this browser pinned.`
                    : "Trusted on the first visit: compare it with the fingerprint that the operator published elsewhere."}
          </p>
        </>
      ) : (
        <Loading what="operator key" rows={3} />
      )}
    </Card>
  );
}
