/** One box for everything that a reader may know of an entry or a key, with suggestions. */
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { KeyName, SearchIcon, Statement } from "../components/index.js";
import { goTo, viewAddress } from "../state/location.js";
import type { Findings } from "./seek.js";
import { useSuggestions } from "./suggesting.js";
import "./search.css";

const SHOWN_ENTRIES = 5;
const SHOWN_KEYS = 4;

interface Option {
  readonly address: string;
  readonly what: string;
  readonly content: ComponentChildren;
}

export function SearchBox({ text: asked = "" }: { readonly text?: string }) {
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const [text, setText] = useState(asked);
  const [isOpen, setOpen] = useState(false);
  const [marked, setMarked] = useState(-1);
  const sought = text.trim();
  const findings = useSuggestions(isOpen ? sought : "");
  const options = isOpen && sought ? optionsOf(findings, sought) : [];
  const change = (value: string) => {
    setText(value);
    setOpen(true);
    setMarked(-1);
  };
  const open = (address: string) => {
    setOpen(false);
    goTo(address);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (sought) open(options[marked]?.address ?? viewAddress(["search"], { q: sought }));
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") setOpen(false);
    if (step === undefined || !options.length) return;
    event.preventDefault();
    setMarked((marked + step + options.length + (marked < 0 && step < 0 ? 1 : 0)) % options.length);
  };
  const leave = (event: FocusEvent) => {
    if (!form.current?.contains(event.relatedTarget as Node | null)) setOpen(false);
  };
  return (
    <search>
      <form ref={form} class="seek" onSubmit={submit} onFocusOut={leave}>
        <label class="visually-hidden" for={`${id}text`}>
          Search the log: a file name, title, name, fingerprint, hash, number, tag or kind
        </label>
        <input
          id={`${id}text`}
          class="input seek-text"
          type="text"
          role="combobox"
          aria-autocomplete="list"
          aria-expanded={options.length > 0}
          aria-controls={`${id}list`}
          {...(options[marked] ? { "aria-activedescendant": `${id}${marked}` } : {})}
          value={text}
          placeholder="File name, title, person, fingerprint, hash, number, tag …"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          maxLength={500}
          onInput={(event) => change(event.currentTarget.value)}
          onFocus={() => setOpen(true)}
          onKeyDown={press}
        />
        <button type="submit" class="button button-strong">
          <SearchIcon /> Search
        </button>
        <div id={`${id}list`} class="seek-list" role="listbox" aria-label="Suggestions" hidden={options.length === 0}>
          {options.map(({ address, what, content }, i) => (
            // The text field keeps the focus, and its keys choose.
            // biome-ignore lint/a11y/useKeyWithClickEvents: arrow keys and Enter of the text field do this
            <div
              key={`${what}${address}`}
              id={`${id}${i}`}
              class={`seek-option ${i === marked ? "seek-marked" : ""}`}
              role="option"
              aria-selected={i === marked}
              tabIndex={-1}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => open(address)}
            >
              <span class="seek-what soft">{what}</span>
              <span class="seek-found">{content}</span>
            </div>
          ))}
        </div>
      </form>
    </search>
  );
}

function optionsOf(findings: Findings | null, text: string): readonly Option[] {
  const all = { address: viewAddress(["search"], { q: text }), what: "Search", content: <>Everything for “{text}”</> };
  if (!findings) return [all];
  const entries = findings.groups.flatMap((group) => group.entries);
  const isFirst = (id: number, i: number) => entries.findIndex((entry) => entry.id === id) === i;
  return [
    ...findings.jumps.map(({ label, address }) => ({ address, what: "Go to", content: label })),
    ...findings.keys.slice(0, SHOWN_KEYS).map(({ fingerprint, pseudonym }) => ({
      address: viewAddress(["keys", fingerprint]),
      what: "Key",
      content: <KeyName fingerprint={fingerprint} name={pseudonym} />,
    })),
    ...entries
      .filter(({ id }, i) => isFirst(id, i))
      .slice(0, SHOWN_ENTRIES)
      .map((entry) => ({
        address: viewAddress(["entries", entry.id]),
        what: `Entry ${entry.id}`,
        content: <Statement entry={entry} />,
      })),
    all,
  ];
}
