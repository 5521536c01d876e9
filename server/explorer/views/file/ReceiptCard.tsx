/** An `.attestation.json` against the file beside it, as `cairnlog verify` checks it, under the key that is pinned here. */
import { parseIJson, verifyBundle } from "../../../../engine/verify/index.js";
import { Badge, Card, TaskView } from "../../components/index.js";
import { client } from "../../state/service.js";
import { useTask } from "../../state/task.js";
import { Checks } from "./Checks.js";

/** A bundle is a few kilobytes; what is far beyond that is none. */
const MAX_BYTES = 4 << 20;

export interface ReceiptCardProps {
  readonly receipt: File;
  /** Null while there is no file, or it is not hashed yet. */
  readonly fileHash: string | null;
  readonly hasFile: boolean;
}

export function ReceiptCard({ receipt, fileHash, hasFile }: ReceiptCardProps) {
  const task = useTask(async () => (fileHash === null ? null : check(receipt, fileHash)), [receipt, fileHash]);
  const badge = task.value && (
    <Badge tone={task.value.valid ? "good" : "bad"}>{task.value.valid ? "Holds" : "Does not hold"}</Badge>
  );
  return (
    <Card title={receipt.name} aside={badge}>
      <TaskView task={task} what="the attestation file" rows={6}>
        {(verdict) =>
          verdict === null ? (
            <p>
              {hasFile ? "It is checked once the file is hashed." : "Now drop or choose the file that it is about."}
            </p>
          ) : (
            <>
              <Checks checks={verdict.checks} />
              <p class="soft receipt-note">
                Checked here, against the file and the pinned operator key, without asking the service anything. It does
                not say whether the key was revoked since: what the log says below does.
              </p>
            </>
          )
        }
      </TaskView>
    </Card>
  );
}

async function check(receipt: File, fileHash: string) {
  if (receipt.size > MAX_BYTES) return misread(`${receipt.name} is too large to be an attestation file.`);
  const operatorKey = await client.log.operatorKey();
  let bundle: unknown;
  try {
    bundle = parseIJson(await receipt.text());
  } catch (error) {
    return misread(`${receipt.name}: ${error instanceof Error ? error.message : String(error)}`);
  }
  return verifyBundle(bundle, { fileHash, operatorKey });
}

const misread = (detail: string) => ({
  valid: false,
  signed: null,
  checks: [{ name: "format" as const, ok: false, detail }],
});
