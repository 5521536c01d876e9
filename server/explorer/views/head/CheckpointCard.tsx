/** The checkpoint for tools of other logs: its key, and which witnesses have signed it. */
import {
  Badge,
  Card,
  Check,
  DownloadIcon,
  Empty,
  Facts,
  Hash,
  saveFile,
  TaskView,
  Time,
  type Tone,
} from "../../components/index.js";
import { shownText } from "../../state/names.js";
import type { Task } from "../../state/task.js";
import type { Cosigner, ShownCheckpoint } from "./checkpoint.js";

const NUMBER = new Intl.NumberFormat();
const STATES: Readonly<Record<Cosigner["state"], readonly [label: string, tone: Tone]>> = {
  signed: ["Signed", "good"],
  unknown: ["Not checked", "neutral"],
  late: ["Late", "warning"],
  waiting: ["Not yet", "neutral"],
};

export function CheckpointCard({ task }: { readonly task: Task<ShownCheckpoint | null> }) {
  return (
    <Card title="Checkpoint and witnesses" aside={task.value && <Summary cosigners={task.value.cosigners} />}>
      <TaskView task={task} what="checkpoint" rows={4}>
        {(shown) =>
          shown ? (
            <Shown {...shown} />
          ) : (
            <Empty title="No checkpoint yet">
              It is what tools of other transparency logs read. Where witnesses are asked, it is shown when enough of
              them have signed it.
            </Empty>
          )
        }
      </TaskView>
    </Card>
  );
}

/** Whether no key of a witness is known. */
const isUnchecked = (cosigners: readonly Cosigner[]) => cosigners.every(({ state }) => state === "unknown");

function Summary({ cosigners }: Pick<ShownCheckpoint, "cosigners">) {
  if (!cosigners.length) return <Badge>No witnesses</Badge>;
  const count = (wanted: Cosigner["state"]) => cosigners.filter(({ state }) => state === wanted).length;
  const [signed, late] = [count("signed"), count("late")];
  if (isUnchecked(cosigners)) return <Badge>{cosigners.length} not checked</Badge>;
  return (
    <Badge tone={late ? "warning" : signed ? "good" : "neutral"}>
      {signed} of {cosigners.length} signed{late > 0 && `, ${late} late`}
    </Badge>
  );
}

function Shown({ vkey, checkpoint, note, cosigners }: ShownCheckpoint) {
  const { origin, treeSize } = checkpoint;
  return (
    <>
      <Facts
        facts={[
          ["Origin", origin],
          ["Entries", NUMBER.format(treeSize)],
          ["Verifier key", <Hash key="vkey" value={vkey} label="verifier key of checkpoints" show="whole" />],
        ]}
      />
      <div class="note">
        <Check holds>
          <strong>Signed</strong> by this key, as this page has verified.
        </Check>
      </div>
      {cosigners.length > 0 && (
        <div class="table-frame note">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Witness</th>
                <th scope="col">This checkpoint</th>
                <th scope="col">Newest size signed</th>
                <th scope="col">Last signed</th>
              </tr>
            </thead>
            <tbody>
              {cosigners.map(({ name, state, treeSize: size, at }) => (
                <tr key={name}>
                  <th scope="row">{shownText(name)}</th>
                  <td data-label="This one">
                    <Badge tone={STATES[state][1]}>{STATES[state][0]}</Badge>
                  </td>
                  <td data-label="Newest size" class="number">
                    {size === null ? "–" : NUMBER.format(size)}
                  </td>
                  <td data-label="Last signed">{at === null ? "–" : <Time at={at} as="age" />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p class="soft note">
        {cosigners.length && isUnchecked(cosigners)
          ? "Lines in the names of witnesses, whose keys are not known here: cairnlog verify --policy checks them."
          : cosigners.length
            ? "A witness signs only what goes on from all that it signed before, and signs it again every few minutes while nothing is added: old signatures mean that this is not the newest checkpoint, or that witnesses do not answer. Signatures are checked in this page, with the keys that the service names: compare them with those that the witnesses publish."
            : "No witness is asked, so only the log itself says that everybody is shown the same entries."}
      </p>
      <p class="note">
        <button type="button" class="button" onClick={() => saveFile("checkpoint.txt", note, "text/plain")}>
          <DownloadIcon /> Download the checkpoint
        </button>
      </p>
    </>
  );
}
