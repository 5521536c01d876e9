/** Checks an `.attestation.json` and the file beside it, as `cairnlog verify` does, with the pinned operator key. */
import {
  type AttestationBundle,
  type BundleVerdict,
  parseIJson,
  verdictOf,
  verifyBundle,
} from "../../../../engine/verify/index.js";
import { Badge, Card, TaskView } from "../../components/index.js";
import { source } from "../../state/source.js";
import type { Task } from "../../state/task.js";
import { Checks } from "./Checks.js";

/** A bundle has a few kilobytes; a much larger file is not a bundle. */
const MAX_BYTES = 4 << 20;

interface ReceiptCardProps {
  readonly receipt: File;
  /** Null before there is a file, or before it is hashed. */
  readonly task: Task<CheckedReceipt | null>;
  readonly hasFile: boolean;
}

/** What was found about a receipt and the file with a hash. */
export interface CheckedReceipt extends BundleVerdict {
  readonly receipt: File;
  readonly fileHash: string;
  /** The attestation in it; null unless everything holds. */
  readonly bundle: AttestationBundle | null;
}

const BADGES = {
  valid: { tone: "good", children: "Holds" },
  withheld: { tone: "warning", children: "Withheld" },
  invalid: { tone: "bad", children: "Does not hold" },
} as const;

export function ReceiptCard({ receipt, task, hasFile }: ReceiptCardProps) {
  const badge = task.value && <Badge {...BADGES[task.value.verdict]} />;
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

/** @throws ClientError if the operator key is not known */
export async function checkReceipt(receipt: File, fileHash: string): Promise<CheckedReceipt> {
  const misread = (detail: string) => ({
    ...verdictOf([{ name: "format", ok: false, detail }]),
    ...{ receipt, fileHash, bundle: null },
  });
  if (receipt.size > MAX_BYTES) return misread(`${receipt.name} is too large for an attestation file.`);
  const operatorKey = await source().operatorKey();
  let bundle: unknown;
  try {
    bundle = parseIJson(await receipt.text());
  } catch (error) {
    return misread(`${receipt.name}: ${error instanceof Error ? error.message : String(error)}`);
  }
  const verdict = await verifyBundle(bundle, { fileHash, operatorKey });
  return { ...verdict, receipt, fileHash, bundle: verdict.valid ? (bundle as AttestationBundle) : null };
}
