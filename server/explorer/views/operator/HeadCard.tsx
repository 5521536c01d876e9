/** The operator's action on the head: signing it again with the current time. */
import { useState } from "preact/hooks";
import { AnchorStatus } from "../../../../engine/contract/log/anchoring.js";
import { TreeHead as TreeHeadSchema } from "../../../../engine/contract/log/log.js";
import { type TreeHead, verifyTreeHead } from "../../../../engine/verify/index.js";
import { Badge, Card, Check, Facts, Hash, ProblemNote, TaskView, Time } from "../../components/index.js";
import { useCell } from "../../state/cell.js";
import { viewAddress } from "../../state/location.js";
import { client, http } from "../../state/service.js";
import { useTask } from "../../state/task.js";
import { bearer, session } from "./session.js";

const NUMBER = new Intl.NumberFormat();

export function OperatorHeadCard() {
  const [signed, setSigned] = useState<{ readonly head: TreeHead; readonly holds: boolean } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const isReadOnly = useCell(session)?.readOnly === true;
  const sign = async () => {
    setBusy(true);
    setError(null);
    try {
      const head = await http.post(TreeHeadSchema, "/log/sth/sign", {}, await bearer());
      setSigned({ head, holds: await verifyTreeHead(head, await client.log.knownOperators()) });
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Card title="Head and anchor" aside="only for the operator">
      <div class="operator-head">
        <AnchorFacts />
        {!isReadOnly && (
          <button type="button" class="button" disabled={isBusy} onClick={sign}>
            Sign the head again
          </button>
        )}
        {error !== null && <ProblemNote error={error} />}
        {signed && (
          <>
            <Check holds={signed.holds}>
              {signed.holds
                ? "The head was signed again; its signature was verified in this page."
                : "The signature of the new head does not verify."}
            </Check>
            <Facts
              facts={[
                ["Leaves", NUMBER.format(signed.head.tree_size)],
                ["Signed", <Time key="time" at={signed.head.timestamp} />],
                ["Root", <Hash key="root" value={signed.head.root_hash} label="root hash" />],
              ]}
            />
          </>
        )}
      </div>
    </Card>
  );
}

function AnchorFacts() {
  const task = useTask(() => http.get(AnchorStatus, "/log/anchor-status"), []);
  return (
    <TaskView task={task} what="anchoring" rows={2}>
      {({ anchored_entry_id, anchored_at, proof_status, entries_since_anchor, anchor_due }) => (
        <Facts
          facts={[
            [
              "Anchoring",
              <Badge key="due" tone={anchor_due ? "warning" : "good"}>
                {anchor_due ? "Due" : "Not due"}
              </Badge>,
            ],
            anchored_entry_id !== null && [
              "Anchored",
              <>
                <a href={viewAddress(["entries", anchored_entry_id])}>Entry {NUMBER.format(anchored_entry_id)}</a>
                {anchored_at !== null && (
                  <>
                    {", "}
                    <Time at={anchored_at} as="age" />
                  </>
                )}
                {`, proof ${proof_status}`}
              </>,
            ],
            ["Entries since", NUMBER.format(entries_since_anchor)],
          ]}
        />
      )}
    </TaskView>
  );
}
