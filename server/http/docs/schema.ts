/** Schemas as HTML: a type as one line, an object as the list of its members. */
import { type Html, html, type Part, words } from "./markup.js";
import { nameOf, type Schema } from "./model.js";

const code = (value: unknown): Html => html`<code>${typeof value === "string" ? value : JSON.stringify(value)}</code>`;

const joined = (parts: readonly Part[], between: string): Part[] =>
  parts.flatMap((part, i) => (i ? [between, part] : [part]));

/** A type as one line. A named schema becomes a link. */
export function typeOf(schema: Schema): Html {
  const { $ref, anyOf, items, type, format, additionalProperties, properties } = schema;
  if ($ref) return html`<a href="#schema-${nameOf($ref)}">${nameOf($ref)}</a>`;
  if (anyOf) return html`${joined(anyOf.map(typeOf), " or ")}`;
  if (schema.const !== undefined) return code(schema.const);
  if (schema.enum) return html`${joined(schema.enum.map(code), " | ")}`;
  if (items) return html`array of ${typeOf(items)}`;
  if (typeof additionalProperties === "object") return html`map to ${typeOf(additionalProperties)}`;
  if (additionalProperties && !properties) return html`any object`;
  return html`${type ?? "anything"}${format && ` (${format})`}`;
}

/** The restrictions of a value besides its type. */
function boundsOf(schema: Schema): Part[] {
  const { minimum, maximum, minLength, maxLength, maxItems, maxProperties, pattern } = schema;
  return [
    minimum !== undefined && html`<span class="bound">≥ ${minimum}</span>`,
    maximum !== undefined && html`<span class="bound">≤ ${maximum}</span>`,
    minLength !== undefined && html`<span class="bound">length ≥ ${minLength}</span>`,
    maxLength !== undefined && html`<span class="bound">length ≤ ${maxLength}</span>`,
    maxItems !== undefined && html`<span class="bound">items ≤ ${maxItems}</span>`,
    maxProperties !== undefined && html`<span class="bound">members ≤ ${maxProperties}</span>`,
    pattern !== undefined && html`<span class="bound"><code>${pattern}</code></span>`,
    schema.default !== undefined && html`<span class="bound">default ${code(schema.default)}</span>`,
  ];
}

/** The description of a schema, or of the first of its alternatives that has one. */
const descriptionOf = (schema: Schema): string | undefined =>
  schema.description ?? schema.anyOf?.map(descriptionOf).find(Boolean);

/**
 * Whether a client or the service sends the value. Clients need to know which members they must send and which may be
 * absent.
 */
export type Direction = "in" | "out";

/** The row of one named value: its type, whether it is required, and its restrictions. */
export function row(name: string, schema: Schema, isRequired: boolean, direction: Direction): Html {
  const description = descriptionOf(schema);
  const bounds = schema.anyOf ? schema.anyOf.flatMap(boundsOf) : boundsOf(schema);
  return html`<div class="row">
<dt><code>${name}</code>${labelOf(isRequired, direction)}</dt>
<dd><span class="type">${typeOf(schema)}</span>${bounds}${description && html`<p>${words(description)}</p>`}${membersOf(schema, direction)}</dd>
</div>`;
}

function labelOf(isRequired: boolean, direction: Direction): Part {
  if (direction === "in") return isRequired && html` <span class="label">required</span>`;
  return !isRequired && html` <span class="label">not always</span>`;
}

/** The members of an object, of the objects in an array, or of an object that may be null; null for anything else. */
export function membersOf(schema: Schema, direction: Direction): Html | null {
  const { properties, required = [], items, anyOf } = schema;
  if (anyOf) return anyOf.map((one) => membersOf(one, direction)).find(Boolean) ?? null;
  if (items) return membersOf(items, direction);
  const members = Object.entries(properties ?? {});
  if (!members.length) return null;
  return html`<dl class="members">${members.map(([name, member]) => row(name, member, required.includes(name), direction))}</dl>`;
}
