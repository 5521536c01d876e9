/** A file: who signed it, as the log has it. */
import type { ComponentType } from "preact";
import { useState } from "preact/hooks";
import { Heading, Verdict } from "../../components/index.js";
import { useTask } from "../../state/task.js";
import { DropCard } from "./DropCard.js";
import { FileVerdict } from "./FileVerdict.js";
import { checkReceipt, ReceiptCard } from "./ReceiptCard.js";
import { RecordsCard } from "./RecordsCard.js";
import { claimsAbout } from "./records.js";
import { useResults } from "./results.js";
import type { FileToSign } from "./SignForm.js";
import { useHashing } from "./useHashing.js";
import "./file.css";

/** Names of receipts: commands and browsers put a number into that of a second one, each in its way. */
const RECEIPT = /\.attestation\b.*\.json$/;

/** @param props `SignCard`: absent where nothing can be signed */
export function FileView({ SignCard }: { readonly SignCard?: ComponentType<FileToSign> }) {
  const [file, setFile] = useState<File | null>(null);
  const [receipt, setReceipt] = useState<File | null>(null);
  const [round, setRound] = useState(0);
  const hashing = useHashing(file);
  const { hash } = hashing;
  const [at, setAt] = useState({ hash, page: 1 });
  const page = at.hash === hash ? at.page : 1;
  // Nothing that was found for one file is shown for another, not even while that is checked.
  const found = useTask(
    async () => (hash === null ? undefined : { hash, ...(await claimsAbout(hash, page)) }),
    [hash, page, round],
  );
  const claims = found.value?.hash === hash ? found.value : undefined;
  const judged = useTask(async () => (receipt && hash !== null ? checkReceipt(receipt, hash) : null), [receipt, hash]);
  const checked = judged.value?.fileHash === hash && judged.value.receipt === receipt ? judged.value : null;
  const results = useResults(hash);
  const take = (files: readonly File[]) => {
    const receiptTaken = files.find(({ name }) => RECEIPT.test(name)) ?? null;
    const fileTaken = files.find(({ name }) => !RECEIPT.test(name)) ?? null;
    if (fileTaken) setFile(fileTaken);
    // A new file removes the receipt of the old one, unless the receipt came first and waits for its file.
    if (receiptTaken || (fileTaken && file)) setReceipt(receiptTaken);
  };
  return (
    <div class="stack">
      <Heading title={SignCard ? "Check or sign a file" : "Who signed this file?"} />
      {file &&
        (hash === null ? (
          <Verdict finding={hashing.error ? "open" : "busy"}>
            {hashing.error ? "This file could not be read." : "Hashing the file…"}
          </Verdict>
        ) : (
          <FileVerdict
            claims={claims}
            error={found.error ?? judged.error}
            results={results.all}
            receipt={receipt ? checked : undefined}
          />
        ))}
      <DropCard file={file} hashing={hashing} take={take} cancel={() => setFile(null)} />
      {receipt && <ReceiptCard receipt={receipt} task={{ ...judged, value: checked }} hasFile={file !== null} />}
      {file && hash !== null && (
        <>
          <RecordsCard
            key={hash}
            hash={hash}
            fileName={file.name}
            task={{ ...found, value: claims }}
            page={page}
            setPage={(number) => setAt({ hash, page: number })}
            results={results}
          />
          {SignCard && <SignCard hash={hash} fileName={file.name} recorded={() => setRound((count) => count + 1)} />}
        </>
      )}
    </div>
  );
}
