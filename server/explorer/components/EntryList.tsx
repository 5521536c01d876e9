/** A list of entries, one on each line: who did what to what, and when. */
import type { Entry } from "../../../engine/verify/index.js";
import { viewAddress } from "../state/location.js";
import { Badge } from "./Badge.js";
import { eventLabel } from "./events.js";
import { Hash } from "./Hash.js";
import { StatementText } from "./Statement.js";
import { Time } from "./Time.js";

interface EntryListProps {
  readonly entries: readonly Entry[];
  /** Entries with higher ids are new to the reader and are animated. */
  readonly newAfter?: number;
}

const NUMBER = new Intl.NumberFormat();

export function EntryList({ entries, newAfter = Number.POSITIVE_INFINITY }: EntryListProps) {
  return (
    <>
      {/* The rows are a list, not a table: on a telephone each is a block of its own. Readers of the screen hear labels. */}
      <div class="entries-head" aria-hidden="true">
        <span>Entry</span>
        <span>Who did what (names are self-declared)</span>
        <span>Kind</span>
        <span>When</span>
        <span>Hash</span>
      </div>
      <ul class="entries">
        {entries.map((entry) => (
          <EntryLine key={entry.id} entry={entry} isNew={entry.id > newAfter} />
        ))}
      </ul>
    </>
  );
}

function EntryLine({ entry, isNew }: { readonly entry: Entry; readonly isNew: boolean }) {
  const { label, tone } = eventLabel(entry);
  return (
    <li class={`entry ${isNew ? "entry-new" : ""}`}>
      <span class="entry-id number">{NUMBER.format(entry.id)}</span>
      <a class="entry-subject" href={viewAddress(["entries", entry.id])}>
        <span class="visually-hidden">Entry {entry.id}: </span>
        <StatementText entry={entry} />
      </a>
      <span class="entry-type">
        <Badge tone={tone}>{label}</Badge>
      </span>
      <span class="entry-time soft">
        <Time at={entry.timestamp} as="age" />
      </span>
      <span class="entry-hash">
        <Hash value={entry.entry_hash} label={`hash of entry ${entry.id}`} show={6} />
      </span>
    </li>
  );
}
