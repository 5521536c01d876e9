/** The search form. Its values are in the address, so that a search can be saved and shared. */

import { useState } from "preact/hooks";
import { EVENT_TYPES } from "../../../../engine/verify/events/kinds.js";
import type { EntryFilter } from "../../../client/index.js";
import { SearchIcon } from "../../components/index.js";
import { goTo, viewAddress } from "../../state/location.js";
import { hasService } from "../../state/source.js";

/** A whole number is read as an entry id: as the beginning of a hash it would match too much. */
const ENTRY_ID = /^#?([1-9]\d{0,9})$/;

interface FiltersProps {
  readonly filter: EntryFilter;
  readonly total: number | undefined;
}

export function Filters({ filter, total }: FiltersProps) {
  const [search, setSearch] = useState(filter.search ?? "");
  const [title, setTitle] = useState(filter.title ?? "");
  const [eventType, setEventType] = useState(filter.event_type ?? "");
  const [tags, setTags] = useState(filter.tags ?? "");
  const submit = (event: Event) => {
    event.preventDefault();
    const id = ENTRY_ID.exec(search.trim())?.[1];
    const others = { title: title.trim(), event_type: eventType.trim(), tags: tags.trim() };
    if (id !== undefined && !Object.values(others).some(Boolean)) goTo(viewAddress(["entries", id]));
    else goTo(viewAddress(["entries"], { search: search.trim(), ...others }));
  };
  const isFiltered = Object.keys(filter).length > 0;
  return (
    <search>
      <form class="filters" onSubmit={submit}>
        <Field
          label={
            hasService()
              ? "Hash, fingerprint, or number of an entry"
              : "Whole hash of a document, whole fingerprint of a key, or number of an entry"
          }
          value={search}
          change={setSearch}
          placeholder={hasService() ? `e.g. 9f86d081${total ? ` or ${total}` : ""}` : `e.g. ${total || 1}`}
          class="filters-search"
        />
        {hasService() && (
          <>
            <Field
              label="Words of a title or name"
              value={title}
              change={setTitle}
              placeholder="any, e.g. annual rep"
            />
            <Field label="Event type" value={eventType} change={setEventType} placeholder="any" list="event-types" />
            <Field label="Tags" value={tags} change={setTags} placeholder="any, e.g. release,2026" />
            <datalist id="event-types">
              {EVENT_TYPES.map((type) => (
                <option key={type} value={type} />
              ))}
            </datalist>
          </>
        )}
        <div class="filters-actions">
          <button type="submit" class="button button-strong">
            <SearchIcon /> Find
          </button>
          {isFiltered && (
            <a class="button" href="#/entries">
              Show all
            </a>
          )}
        </div>
      </form>
    </search>
  );
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly placeholder: string;
  readonly list?: string;
  readonly class?: string;
  change(value: string): void;
}

function Field({ label, value, placeholder, list, class: name = "", change }: FieldProps) {
  return (
    <label class={`field ${name}`}>
      <span>{label}</span>
      <input
        class="input"
        type="text"
        value={value}
        placeholder={placeholder}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        {...(list === undefined ? {} : { list })}
        onInput={(event) => change(event.currentTarget.value)}
      />
    </label>
  );
}
