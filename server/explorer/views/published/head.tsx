/** The log in these files: its checkpoint, what was checked, and what only a service could do. */
import { parseNote, parseVkey } from "../../../../engine/verify/index.js";
import { Card, Empty, FailedVerdict, Heading, Verdict } from "../../components/index.js";
import { alarms } from "../../state/alarm.js";
import { useCell } from "../../state/cell.js";
import { checkpointHere, endHere } from "../../state/reading/files.js";
import { useTask } from "../../state/task.js";
import { failure, lastVisit, sight } from "../../state/watching.js";
import { CheckpointCard } from "../head/CheckpointCard.js";
import type { ShownCheckpoint } from "../head/checkpoint.js";
import { EndCard } from "../head/EndCard.js";
import { HeadCard } from "../head/HeadCard.js";
import { OperatorCard } from "../head/OperatorCard.js";
import { RecentCard } from "../head/RecentCard.js";
import "../head/head.css";

const NUMBER = new Intl.NumberFormat();

export default function PublishedHeadView() {
  const seen = useCell(sight);
  const failed = useCell(failure);
  const isAlarmed = useCell(alarms).length > 0;
  const lookedAt = seen.status === "proven" ? seen.at : 0;
  const checkpoint = useTask(async () => (lookedAt ? shown() : null), [lookedAt]);
  const end = useTask(async () => (lookedAt ? endHere() : null), [lookedAt]).value;
  const head = seen.status === "proven" ? seen.head : isAlarmed ? lastVisit?.head : undefined;
  return (
    <div class="stack">
      <Heading title="Head of the log" />
      {isAlarmed ? (
        <Verdict finding="wrong">This log could not be verified: see the alarm above.</Verdict>
      ) : seen.status === "looking" ? (
        failed ? (
          <FailedVerdict error={failed} what="The log" />
        ) : (
          <Verdict finding="busy">Checking the log…</Verdict>
        )
      ) : (
        <Verdict finding={seen.head ? "holds" : "open"}>
          {seen.head
            ? `The log of ${NUMBER.format(seen.head.tree_size)} ${seen.head.tree_size === 1 ? "entry" : "entries"} is verified, as it was when these files were published.`
            : "No entry of this log has a head here: there is nothing to verify yet."}
        </Verdict>
      )}
      <p class="introduction">
        A copy of a public record, in plain files. Entries are only ever added to it, and this page checks in your own
        browser that none was changed or taken away.
      </p>
      {end && <EndCard end={end} />}
      <HeadCard head={head} provenAt={lookedAt} />
      {head === null ? (
        <Card title="Newest entries">
          <Empty title="Nothing has been recorded yet" />
        </Card>
      ) : (
        <RecentCard head={head} />
      )}
      <div class="columns">
        <OperatorCard />
        <LimitsCard />
      </div>
      {lookedAt > 0 && <CheckpointCard task={checkpoint} />}
    </div>
  );
}

/** Nothing that is known here says which witnesses a reader should believe. */
async function shown(): Promise<ShownCheckpoint> {
  const here = await checkpointHere();
  const own = parseVkey(here.vkey).id;
  const others = (parseNote(here.note)?.signatures ?? []).filter(({ keyId }) => keyId !== own);
  const unknown = { state: "unknown", isVerified: false, treeSize: null, at: null } as const;
  return { ...here, cosigners: others.map(({ name }) => ({ name, ...unknown })) };
}

const LimitsCard = () => (
  <Card title="What these files cannot do">
    <p>There is no service behind this page, so it cannot</p>
    <ul class="limits">
      <li>record anything: signatures, keys, endorsements, requests, webhooks</li>
      <li>search words, titles, tags or names, or list all keys: it finds whole hashes and numbers</li>
      <li>show a key’s attestations, endorsements and trust</li>
      <li>sign anybody in, or show how the service does</li>
    </ul>
    <p class="soft note">
      It shows what was published last; the log itself may have more entries. Nothing proves that the index leaves
      nothing out.
    </p>
  </Card>
);
