/** Shows whether the log is anchored in Bitcoin, which binds the operator even if the operator key is stolen. */
import { AnchorStatus } from "../../../../engine/contract/log/anchoring.js";
import { checkOtsProof } from "../../../../engine/verify/index.js";
import { Badge, Card, Check, Empty, Facts, TaskView, Time, type Tone } from "../../components/index.js";
import { viewAddress } from "../../state/location.js";
import { client, http } from "../../state/service.js";
import { useTask } from "../../state/task.js";

const NUMBER = new Intl.NumberFormat();
const STATUS: Readonly<Record<string, readonly [label: string, tone: Tone]>> = {
  none: ["Not anchored", "neutral"],
  pending: ["Waiting for Bitcoin", "warning"],
  confirmed: ["In Bitcoin", "good"],
};

async function anchoring() {
  const status = await http.get(AnchorStatus, "/log/anchor-status");
  if (status.anchored_entry_id === null) return { status, verdict: null };
  const { entry } = await client.log.entry(status.anchored_entry_id);
  return { status, verdict: entry.ots_proof === undefined ? null : checkOtsProof(entry.ots_proof, entry.entry_hash) };
}

export function AnchoringCard({ isEmpty }: { readonly isEmpty: boolean }) {
  const task = useTask(anchoring, [isEmpty]);
  const [label, tone] = STATUS[task.value?.status.proof_status ?? ""] ?? ["…", "neutral"];
  return (
    <Card title="Anchoring" aside={<Badge tone={tone}>{label}</Badge>}>
      <TaskView task={task} what="anchoring status" rows={3}>
        {({ status, verdict }) =>
          status.anchored_entry_id === null ? (
            <Empty title="Not anchored yet">
              An operator who anchors the log puts its newest hash into Bitcoin, so that nobody can back-date it.
            </Empty>
          ) : (
            <>
              <Facts
                facts={[
                  [
                    "Entry",
                    <a key="entry" href={viewAddress(["entries", status.anchored_entry_id])}>
                      {NUMBER.format(status.anchored_entry_id)}
                    </a>,
                  ],
                  status.anchored_at !== null && ["Anchored", <Time key="at" at={status.anchored_at} />],
                  ["Entries since", NUMBER.format(status.entries_since_anchor)],
                ]}
              />
              {verdict && (
                <div class="note">
                  <Check holds={verdict.ok}>{verdict.detail}</Check>
                </div>
              )}
            </>
          )
        }
      </TaskView>
    </Card>
  );
}
