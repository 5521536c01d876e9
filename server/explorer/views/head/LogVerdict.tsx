/** Whether the log is verified, how many of its newest entries no witness has signed yet, and which witnesses are late. */
import type { TreeHead } from "../../../../engine/verify/index.js";
import { FailedVerdict, Verdict } from "../../components/index.js";
import { alarms, misbehavedAt } from "../../state/alarm.js";
import { useCell } from "../../state/cell.js";
import { shownText } from "../../state/names.js";
import type { Task } from "../../state/task.js";
import { failure, sight } from "../../state/watching.js";
import { type ShownCheckpoint, witnessedSize } from "./checkpoint.js";

const NUMBER = new Intl.NumberFormat();
const LIST = new Intl.ListFormat("en");

export function LogVerdict({ checkpoint }: { readonly checkpoint: Task<ShownCheckpoint | null> }) {
  const seen = useCell(sight);
  const failed = useCell(failure);
  const raised = useCell(alarms);
  const wrongAt = useCell(misbehavedAt);
  if (raised.length)
    return (
      <Verdict finding="wrong">
        {seen.status === "proven" && seen.at > wrongAt
          ? "This log has misbehaved, although its newest head could be verified again: see the alarm above."
          : "This log could not be verified: see the alarm above."}
      </Verdict>
    );
  if (seen.status === "looking")
    return failed ? (
      <FailedVerdict error={failed} what="The log" />
    ) : (
      <Verdict finding="busy">Checking the log…</Verdict>
    );
  if (!seen.head) return <Verdict finding="open">The log is empty: there is nothing to verify yet.</Verdict>;
  const late = checkpoint.value?.cosigners.filter(({ state }) => state === "late") ?? [];
  return (
    <Verdict finding={late.length || failed ? "open" : "holds"}>
      The log of {entries(seen.head.tree_size)} is verified
      {failed ? ", as it was when the service answered last" : ""}. {witnessed(seen.head, checkpoint)}
    </Verdict>
  );
}

/** "12 newest entries not witnessed yet; A is late." */
function witnessed(head: TreeHead, { value, error }: Task<ShownCheckpoint | null>): string {
  if (error !== undefined) return "Whether it is witnessed could not be checked.";
  if (value === undefined) return "";
  const cosigners = value?.cosigners ?? [];
  const known = cosigners.filter(({ state }) => state !== "unknown");
  if (value && !cosigners.length) return "No witness is asked.";
  const witnesses = known.filter(({ isVerified }) => isVerified);
  const missing = Math.max(0, head.tree_size - (value ? witnessedSize(value) : 0));
  const lateOnes = known.filter(({ state }) => state === "late");
  const late = lateOnes.map(({ name }) => shownText(name));
  // It may be that clock which is wrong.
  const whose = lateOnes.every(({ isLateHere }) => isLateHere) ? " by the clock of this browser" : "";
  const parts = [
    missing === 0
      ? `Witnessed by ${LIST.format(witnesses.map(({ name }) => shownText(name)))}`
      : missing === head.tree_size
        ? "Not witnessed yet"
        : `${NUMBER.format(missing)} newest ${missing === 1 ? "entry" : "entries"} not witnessed yet`,
    ...(late.length ? [`${LIST.format(late)} ${late.length === 1 ? "is" : "are"} late${whose}`] : []),
  ];
  return `${parts.join("; ")}.`;
}

const entries = (count: number): string => `${NUMBER.format(count)} ${count === 1 ? "entry" : "entries"}`;
