/** The view of a file: its attestations in the log, and signing it. Only its hash is sent to the service. */
import { useState } from "preact/hooks";
import { Heading } from "../../components/index.js";
import { DropCard } from "./DropCard.js";
import { useHashing } from "./hashing/useHashing.js";
import { ReceiptCard } from "./ReceiptCard.js";
import { RecordsCard } from "./RecordsCard.js";
import { SignCard } from "./SignCard.js";
import "./file.css";

/** Names of receipts: the second one that `cairnlog attest` keeps of a document has a number. */
const RECEIPT = /\.attestation(?:\.\d+)?\.json$/;

export default function FileView() {
  const [file, setFile] = useState<File | null>(null);
  const [receipt, setReceipt] = useState<File | null>(null);
  const [round, setRound] = useState(0);
  const hashing = useHashing(file);
  const { hash } = hashing;
  const take = (files: readonly File[]) => {
    const receiptTaken = files.find(({ name }) => RECEIPT.test(name)) ?? null;
    const fileTaken = files.find(({ name }) => !RECEIPT.test(name)) ?? null;
    if (fileTaken) setFile(fileTaken);
    // A new file removes the receipt of the old one, unless the receipt came first and waits for its file.
    if (receiptTaken || (fileTaken && file)) setReceipt(receiptTaken);
  };
  return (
    <div class="stack">
      <Heading title="Check or sign a file" />
      <DropCard file={file} hashing={hashing} take={take} cancel={() => setFile(null)} />
      {receipt && <ReceiptCard receipt={receipt} fileHash={hash} hasFile={file !== null} />}
      {file && hash !== null && (
        <>
          <RecordsCard key={hash} hash={hash} fileName={file.name} round={round} />
          <SignCard hash={hash} fileName={file.name} recorded={() => setRound((count) => count + 1)} />
        </>
      )}
    </div>
  );
}
