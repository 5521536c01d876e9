/** A file: what the log says of it, and signing it. Nothing of it is sent but its hash. */
import { useState } from "preact/hooks";
import { Heading } from "../../components/index.js";
import { DropCard } from "./DropCard.js";
import { useHashing } from "./hashing/useHashing.js";
import { ReceiptCard } from "./ReceiptCard.js";
import { RecordsCard } from "./RecordsCard.js";
import { SignCard } from "./SignCard.js";
import "./file.css";

const RECEIPT_ENDING = ".attestation.json";

export default function FileView() {
  const [file, setFile] = useState<File | null>(null);
  const [receipt, setReceipt] = useState<File | null>(null);
  const [round, setRound] = useState(0);
  const hashing = useHashing(file);
  const { hash } = hashing;
  const take = (files: readonly File[]) => {
    const receiptTaken = files.find(({ name }) => name.endsWith(RECEIPT_ENDING)) ?? null;
    const fileTaken = files.find(({ name }) => !name.endsWith(RECEIPT_ENDING)) ?? null;
    if (fileTaken) setFile(fileTaken);
    // A new file ends the old one's receipt, unless that was there first and waits for its file.
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
