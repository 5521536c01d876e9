/** Checks an `.attestation.json` and the file beside it, as `cairnlog verify` does, with the pinned operator key. */
import { parseIJson, verifyBundle } from "../../../../engine/verify/index.js";
import { Badge, Card, TaskView } from "../../components/index.js";
import { client } from "../../state/service.js";
import { useTask } from "../../state/task.js";
import { Checks } from "./Checks.js";

/** A bundle has a few kilobytes; a much larger file is not a bundle. */
const MAX_BYTES = 4 << 20;

export interface ReceiptCardProps {
  readonly receipt: File;
  /** Null before there is a file, or before it is hashed. */
  readonly fileHash: string | null;
  readonly hasFile: boolean;
}

export function ReceiptCard({ receipt, fileHash, hasFile }: ReceiptCardProps) {
  const task = useTask(async () => (fileHash === null ? null : check(receipt, fileHash)), [receipt, fileHash]);
  const badge = task.value && (
    <Badge tone={task.value.valid ? "good" : "bad"}>{task.value.valid ? "Verified" : "Not verified"}</Badge>
  );
  return (
    <Card title={receipt.name} aside={badge}>
      <TaskView task={task} what="the attestation file" rows={6}>
        {(verdict) =>
          verdict === null ? (
            <p>
              {hasFile
                ? "It is checked when the file has been hashed."
                : "Now drop or choose the file that was signed."}
            </p>
          ) : (
            <>
              <Checks checks={verdict.checks} />
              <p class="soft receipt-note">
                Checked in this page with the file and the pinned operator key, without a request to the service. It
                does not show whether the key was revoked later: see the attestations in the log below.
              </p>
            </>
          )
        }
      </TaskView>
    </Card>
  );
}

async function check(receipt: File, fileHash: string) {
  if (receipt.size > MAX_BYTES) return misread(`${receipt.name} is too large for an attestation file.`);
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
