/** Log entries as people read them. */

import { isPrefixedHash } from "../../../engine/verify/bytes/encoding.js";
import { isWithheld, membersIn, type WithheldEntry } from "../../../engine/verify/events/withheld.js";
import { type Entry, EVENT_KINDS, kindOf } from "../../../engine/verify/index.js";
import type { ProvenEntry } from "../../client/log/proven.js";
import { alignedRow, coloured, facts, type Styled, shortFingerprint } from "../terminal/table.js";
import type { Names } from "./names.js";

/** Columns of a list of entries; what the last three hold has no fixed width. */
const WIDTHS = [
  7,
  "2026-01-01 00:00:00Z".length,
  Math.max(...Object.values(EVENT_KINDS).map(({ label }) => label.length)),
  "sha256:".length + 13,
  12,
];

/** The heading of a list of entries. */
export const entriesHeading = (): string =>
  coloured("bold", alignedRow(WIDTHS, ["ENTRY", "TIME", "EVENT", "BY KEY", "NAME", "ABOUT"]));

/** An entry in a list: its number, when it was made, what happened, by which key, and about what. */
export async function entryRow(entry: Entry, names: Pick<Names, "of" | "person">): Promise<string> {
  const { id, timestamp, event_type } = entry;
  const payload = membersIn(entry);
  const kind = kindOf(event_type);
  const actor = text(payload[kind?.actor ?? ""]);
  const about = kind?.about.map((member) => text(payload[member])).find((value) => value !== undefined);
  return alignedRow(WIDTHS, [
    `${id}`,
    shortTime(timestamp),
    kind?.label ?? event_type,
    actor === undefined ? "-" : shortFingerprint(actor),
    actor === undefined ? "" : await names.of(actor),
    about === undefined
      ? isWithheld(entry)
        ? `withheld by entry ${entry.withheld_by}`
        : ""
      : isPrefixedHash(about)
        ? await names.person(about)
        : about,
  ]);
}

/** Everything in an entry, and where it was proven to be. */
export function entryText({ entry, proof, head }: ProvenEntry): Styled {
  return entryFacts(entry, proof.leaf_index, [
    ["proven", `in the tree of ${head.tree_size} leaves, ${head.root_hash}`],
    ["head", `of ${head.timestamp}, signed by ${head.key_id}`],
  ]);
}

/** Everything in an entry. @param proven how it was proven to be there */
export function entryFacts(entry: Entry, leafIndex: number, proven: Parameters<typeof facts>[0]): Styled {
  const { id, timestamp, event_type, entry_hash, previous_hash, ots_proof } = entry;
  const label = kindOf(event_type)?.label;
  const styled = [
    facts([
      ["entry", `number ${id}; leaf ${leafIndex} of the tree, counted from 0`],
      ["event", label === undefined ? event_type : `${label} (${event_type})`],
      ["time", timestamp],
      ["entry hash", entry_hash],
      ["hash before", previous_hash ?? "none: it is the first entry"],
      ["anchor", ots_proof === undefined ? null : "has an OpenTimestamps proof"],
      ...proven,
    ]),
    coloured("bold", "content"),
    ...(isWithheld(entry) ? [withheldText(entry)] : []),
    ...(entry.payload
      ? [
          facts(
            Object.entries(entry.payload).map(([name, value]) => [`  ${name}`, text(value) ?? JSON.stringify(value)]),
          ),
        ]
      : []),
  ].join("\n");
  return { styled };
}

const withheldText = ({ withheld_by, payload }: WithheldEntry): string =>
  payload
    ? `  the operator withholds the name, entry ${withheld_by}; place and hash are proven, all else is his word`
    : `  withheld by the operator, entry ${withheld_by}; place, time and hash are proven, the content is not shown`;

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** An ISO timestamp to the second. */
const shortTime = (timestamp: string): string =>
  timestamp.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(Z|\+00:00)$/, "$1 $2Z");
