/** The head of the log: its values, the checks, and the newest entries. */
import { Card, Empty, Heading, useNow } from "../../components/index.js";
import { SearchBox } from "../../search/SearchBox.js";
import { alarms } from "../../state/alarm.js";
import { useCell } from "../../state/cell.js";
import { useTask } from "../../state/task.js";
import { failure, lastVisit, sight } from "../../state/watching.js";
import { ActivityCard } from "./ActivityCard.js";
import { AnchoringCard } from "./AnchoringCard.js";
import { CheckpointCard } from "./CheckpointCard.js";
import { shownCheckpoint } from "./checkpoint.js";
import { HeadCard } from "./HeadCard.js";
import { Introduction } from "./Introduction.js";
import { LogVerdict } from "./LogVerdict.js";
import { OperatorCard } from "./OperatorCard.js";
import { RecentCard } from "./RecentCard.js";
import { ShardCards } from "./ShardCards.js";
import "./head.css";

export default function HeadView() {
  const seen = useCell(sight);
  const failed = useCell(failure);
  const isAlarmed = useCell(alarms).length > 0;
  const lookedAt = seen.status === "proven" ? seen.at : 0;
  // It is fetched again with every look for a new head. During an alarm without a head that can be trusted, it is not shown.
  const isShown = seen.status === "proven" || !(isAlarmed || failed);
  const checkpoint = useTask(async () => (isShown ? shownCheckpoint() : null), [lookedAt, isShown]);
  if (seen.status === "looking" && failed)
    return (
      <div class="stack">
        <Heading title="Head of the log" />
        <LogVerdict checkpoint={checkpoint} />
        <Empty title="Nothing is known about the log yet">It appears here as soon as the service answers.</Empty>
      </div>
    );
  const head = seen.status === "proven" ? seen.head : isAlarmed ? lastVisit?.head : undefined;
  return (
    <div class="stack">
      <div class="view-head">
        <Heading title="Head of the log" />
        {seen.status === "proven" && <LookedAt at={seen.at} />}
      </div>
      <LogVerdict checkpoint={checkpoint} />
      <Introduction />
      <SearchBox />
      <HeadCard head={head} provenAt={lookedAt} checkpoint={checkpoint.value} />
      {head && <ShardCards size={head.tree_size} />}
      {head === null ? (
        <Card title="Newest entries">
          <Empty title="Nothing has been recorded yet">
            New entries appear here: <code>cairnlog attest FILE</code> makes one.
          </Empty>
        </Card>
      ) : (
        <RecentCard head={head} />
      )}
      {head && <ActivityCard size={head.tree_size} />}
      <div class="columns">
        <OperatorCard />
        <AnchoringCard isEmpty={head === null} />
      </div>
      {isShown && <CheckpointCard task={checkpoint} />}
    </div>
  );
}

function LookedAt({ at }: { readonly at: number }) {
  const seconds = Math.max(0, Math.round((useNow() - at) / 1000));
  return (
    <p class="soft looked">
      <span class="pulse" aria-hidden="true" /> Checked {seconds < 2 ? "just now" : `${seconds} s ago`}
    </p>
  );
}
