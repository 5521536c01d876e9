/** A list of entries, one on each line. */
import type { Entry } from "../../../engine/verify/index.js";
import { addressOf } from "../state/location.js";
import { Badge } from "./Badge.js";
import { eventLabel, eventSubject } from "./events.js";
import { Hash } from "./Hash.js";
import { Time } from "./Time.js";

export interface EntryListProps {
  readonly entries: readonly Entry[];
  /** Entries with higher ids are new to the reader and are animated. */
  readonly newAfter?: number;
}

const NUMBER = new Intl.NumberFormat();

export function EntryList({ entries, newAfter = Number.POSITIVE_INFINITY }: EntryListProps) {
  return (
    <ul class="entries">
      {entries.map((entry) => (
        <EntryLine key={entry.id} entry={entry} isNew={entry.id > newAfter} />
      ))}
    </ul>
  );
}

function EntryLine({ entry, isNew }: { readonly entry: Entry; readonly isNew: boolean }) {
  const { label, tone } = eventLabel(entry);
  return (
    <li class={`entry ${isNew ? "entry-new" : ""}`}>
      <span class="entry-id number">{NUMBER.format(entry.id)}</span>
      <a class="entry-subject" href={addressOf(["entries", entry.id])}>
        <span class="visually-hidden">Entry {entry.id}: </span>
        {eventSubject(entry) || label}
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
