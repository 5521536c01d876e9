/** What an entry says: a sentence and the members that people ask for; folded below it, all of the payload as JSON. */
import type { JSX } from "preact";
import { isPrefixedHash } from "../../../../engine/verify/bytes/encoding.js";
import { isPredicate, KEY_MEMBERS } from "../../../../engine/verify/events/kinds.js";
import { isCut, membersIn } from "../../../../engine/verify/events/withheld.js";
import type { Entry } from "../../../../engine/verify/index.js";
import { SEARCH_MEMBERS } from "../../../../engine/verify/keys/contract.js";
import {
  Card,
  CopyIcon,
  copyText,
  type Fact,
  Facts,
  ForeignText,
  Hash,
  Scroll,
  Statement,
  spoken,
  Time,
} from "../../components/index.js";
import { announce } from "../../state/announcements.js";
import { viewAddress } from "../../state/location.js";
import { shownText } from "../../state/names.js";
import { hasService } from "../../state/source.js";

export function ContentCard({ entry }: { readonly entry: Entry }) {
  if (entry.payload === null)
    return (
      <Card title="What it says">
        <p class="statement">
          The operator withholds it:{" "}
          <a href={viewAddress(["entries", entry.withheld_by ?? ""])}>entry {entry.withheld_by}</a> says why.
        </p>
        <p class="soft note">That this entry is on the log, and where, is proven. What it says is not shown.</p>
      </Card>
    );
  const copy = async () => {
    const done = await copyText(JSON.stringify(entry.payload, null, 2));
    announce(done ? "The content was copied." : "The content could not be copied.");
  };
  return (
    <Card title="What it says">
      <p class="statement">
        <Statement entry={entry} hasLinks />.
      </p>
      <Facts facts={factsOf(entry)} />
      <p class="soft note">
        {isCut(entry) ? (
          <>
            The operator withholds the name of the key:{" "}
            <a href={viewAddress(["entries", entry.withheld_by ?? ""])}>entry {entry.withheld_by}</a> says why, and has
            the hash of all that is shown here.
          </>
        ) : (
          "Names are self-declared: whoever holds a key chose its name, and several keys may have the same one."
        )}
      </p>
      <details class="content-json">
        <summary>All that was recorded, as JSON</summary>
        <button type="button" class="icon-button" aria-label="Copy the content" title="Copy the content" onClick={copy}>
          <CopyIcon />
        </button>
        <Scroll label="Content as JSON">
          <pre class="json">
            <Value value={entry.payload} depth={0} />
          </pre>
        </Scroll>
      </details>
    </Card>
  );
}

/** How a member is shown; undefined if its value is of another type. */
type Show = (value: unknown) => JSX.Element | string | undefined;

const asText: Show = (value) => (typeof value === "string" && value !== "" ? <ForeignText text={value} /> : undefined);
const asCategory: Show = (value) => (typeof value === "string" ? spoken(shownText(value)) : undefined);
const asTime: Show = (value) => (typeof value === "string" ? <Time at={value} /> : undefined);
const asTags: Show = (value) =>
  Array.isArray(value) && value.length > 0 ? (
    <span class="tag-links">
      {value
        .filter((tag) => typeof tag === "string")
        .map((tag) =>
          hasService() ? (
            <a key={tag} href={viewAddress(["entries"], { tags: tag })}>
              <ForeignText text={tag} />
            </a>
          ) : (
            <ForeignText key={tag} text={tag} />
          ),
        )}
    </span>
  ) : undefined;
const asDocument: Show = (value) =>
  typeof value === "string" ? (
    <>
      <Hash value={value} label="hash of the document" show={16} />{" "}
      <a href={viewAddress(["entries"], { search: value })}>every entry about it</a>
    </>
  ) : undefined;
const asOffer: Show = (value) =>
  typeof value === "number" ? <a href={viewAddress(["entries", value])}>entry {value}</a> : undefined;

/** Members that say something to people, in the order in which they are shown. */
const MEMBERS: readonly (readonly [member: string, label: string, show: Show])[] = [
  ["intent_statement", "Statement", asText],
  ["document_hash", "Document", asDocument],
  ["tags", "Tags", asTags],
  ["category", "Category", asCategory],
  ["offer_entry_id", "Offered in", asOffer],
  ["valid_until", "Valid until", asTime],
  ["note", "Note", asText],
  ["evidence", "Evidence", asText],
  ["deadline", "To be answered until", asTime],
  ["effective_from", "In force from", asTime],
  ["key_algorithm", "Algorithm", asText],
  ["expiration_date", "Expires", asTime],
];

function factsOf(entry: Entry): Fact[] {
  const { event_type } = entry;
  const payload = membersIn(entry);
  const facts = MEMBERS.flatMap(([member, label, show]): Fact[] => {
    const shown = show(payload[member]);
    return shown === undefined ? [] : [[label, shown]];
  });
  return isPredicate(event_type) ? [...facts, ["Predicate", <code key="predicate">{event_type}</code>]] : facts;
}

interface ValueProps {
  readonly value: unknown;
  readonly depth: number;
  /** Name of the member with this value. */
  readonly name?: string;
}

function Value({ value, depth, name }: ValueProps) {
  if (typeof value === "string") return <Text value={value} name={name} />;
  if (typeof value !== "object" || value === null) return <span class="json-literal">{String(value)}</span>;
  const isArray = Array.isArray(value);
  const members = Object.entries(value);
  const [open, close] = isArray ? "[]" : "{}";
  if (members.length === 0) return <>{`${open}${close}`}</>;
  const margin = "  ".repeat(depth + 1);
  return (
    <>
      {open}
      {members.map(([member, inner], i) => (
        <span key={member}>
          {`\n${margin}`}
          {!isArray && (
            <>
              <span class="json-name">{JSON.stringify(member)}</span>
              {": "}
            </>
          )}
          <Value value={inner} depth={depth + 1} {...(isArray ? {} : { name: member })} />
          {i < members.length - 1 && ","}
        </span>
      ))}
      {`\n${"  ".repeat(depth)}${close}`}
    </>
  );
}

function Text({ value, name }: { readonly value: string; readonly name: string | undefined }) {
  const text = <span class="json-text">{JSON.stringify(value)}</span>;
  const to = name === undefined ? undefined : addressBehind(name, value);
  return to === undefined ? text : <a href={to}>{text}</a>;
}

function addressBehind(name: string, value: string): string | undefined {
  if (KEY_MEMBERS.has(name) && isPrefixedHash(value)) return viewAddress(["keys", value]);
  // Published files have an index of documents and keys alone.
  if (hasService() ? SEARCH_MEMBERS.some((member) => member === name) : name === "document_hash")
    return viewAddress(["entries"], { search: value });
  return undefined;
}
