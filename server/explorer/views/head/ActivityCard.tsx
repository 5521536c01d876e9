/** How many entries were recorded when, since the first one. */
import { useRef } from "preact/hooks";
import { LogHead } from "../../../../engine/contract/log/log.js";
import { Card, TaskView, Time } from "../../components/index.js";
import { http } from "../../state/service.js";
import { useTask } from "../../state/task.js";

const PERIODS = 48;
const NUMBER = new Intl.NumberFormat();
/** A log that grows all the time is asked again so often, in milliseconds. */
const EVERY_MS = 60_000;
/** In units of the drawing. */
const WIDTH = 960;
const HEIGHT = 96;
const GAP = 4;
/** A period with a single entry beside one with thousands is still seen. */
const LEAST = 3;

export function ActivityCard({ size }: { readonly size: number }) {
  const asked = useRef({ size: -1, at: Number.NEGATIVE_INFINITY });
  if (size !== asked.current.size && Date.now() - asked.current.at > EVERY_MS) asked.current = { size, at: Date.now() };
  const task = useTask(() => http.get(LogHead, "/log/head", { periods: PERIODS }), [asked.current.size]);
  return (
    <Card title="Activity" aside="as the service says it">
      <TaskView task={task} what="activity" rows={2}>
        {({ activity }) =>
          activity && (
            <figure class="activity">
              <Bars counts={activity.counts} />
              <figcaption class="soft">
                <span>
                  <Time at={activity.start} />
                </span>
                <span>
                  <Time at={activity.end} />
                </span>
              </figcaption>
            </figure>
          )
        }
      </TaskView>
    </Card>
  );
}

function Bars({ counts }: { readonly counts: readonly number[] }) {
  const most = Math.max(1, ...counts);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const step = WIDTH / counts.length;
  const words = `${NUMBER.format(total)} entries in ${counts.length} equal periods from the first entry until now; at most ${NUMBER.format(most)} in one.`;
  return (
    <svg
      class="activity-bars"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={words}
    >
      {counts.map((count, i) => {
        const high = count && Math.max(LEAST, (count / most) * HEIGHT);
        return (
          <rect key={i} x={i * step + GAP / 2} y={HEIGHT - high} width={step - GAP} height={high} rx="2">
            <title>{NUMBER.format(count)}</title>
          </rect>
        );
      })}
    </svg>
  );
}
