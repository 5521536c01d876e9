/** The place where a file is dropped or chosen, with the progress of its hashing. */
import { useState } from "preact/hooks";
import { Card, Facts, Hash } from "../../components/index.js";
import { hasService } from "../../state/source.js";
import type { Hashing } from "./useHashing.js";

interface DropCardProps {
  readonly file: File | null;
  readonly hashing: Hashing;
  take(files: readonly File[]): void;
  cancel(): void;
}

export function DropCard({ file, hashing, take, cancel }: DropCardProps) {
  return (
    <Card title="The file" aside={`It stays on your machine: only its hash is ${hasService() ? "sent" : "looked up"}.`}>
      <DropZone take={take} isSmall={file !== null} />
      {file && <Progress file={file} hashing={hashing} cancel={cancel} />}
    </Card>
  );
}

function DropZone({ take, isSmall }: { readonly isSmall: boolean; take(files: readonly File[]): void }) {
  const [isOver, setOver] = useState(false);
  const over = (event: DragEvent) => {
    event.preventDefault();
    setOver(true);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    take([...(event.dataTransfer?.files ?? [])]);
  };
  return (
    <label
      class={`drop ${isSmall ? "drop-small" : ""} ${isOver ? "drop-over" : ""}`}
      onDragOver={over}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <span class="drop-title">{isSmall ? "Drop or choose another file" : "Drop a file here, or choose one"}</span>
      <span class="soft">Drop its .attestation.json with it, or afterwards, to check both.</span>
      <input
        type="file"
        multiple
        onChange={({ currentTarget }) => {
          take([...(currentTarget.files ?? [])]);
          // Without this, choosing the same file again would not be an event.
          currentTarget.value = "";
        }}
      />
    </label>
  );
}

function Progress({ file, hashing, cancel }: { file: File; hashing: Hashing; cancel(): void }) {
  const { done, hash, error } = hashing;
  return (
    <div class="file-facts">
      <Facts
        facts={[
          ["Name", file.name],
          ["Size", bytes(file.size)],
          hash !== null && ["SHA-256", <Hash key="hash" value={hash} label="SHA-256 of the file" show="whole" />],
        ]}
      />
      {hash === null && error === null && (
        <div class="hashing">
          <progress max={file.size || 1} value={done} aria-label={`Hashing ${file.name}`} />
          <span class="number soft">
            {bytes(done)} of {bytes(file.size)}
          </span>
          <button type="button" class="button" onClick={cancel}>
            Cancel
          </button>
        </div>
      )}
      {error && (
        <p class="form-error" role="alert">
          {error.message}
        </p>
      )}
    </div>
  );
}

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

/** "3.4 GiB". */
function bytes(count: number): string {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, count)) / 10));
  return `${(count / 1024 ** unit).toLocaleString(undefined, { maximumFractionDigits: unit ? 1 : 0 })} ${UNITS[unit]}`;
}
