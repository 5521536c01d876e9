/** One operation as HTML: its parameters, its answers, and an example request. */
import {
  type Html,
  html,
  type MediaContent,
  type Operation,
  type Parameter,
  type Part,
  prose,
  type Response,
  type Schema,
  schemaName,
  words,
} from "./model.js";
import { curlOf, textOf } from "./samples.js";

const code = (value: unknown): Html => html`<code>${typeof value === "string" ? value : JSON.stringify(value)}</code>`;

const joined = (parts: readonly Part[], between: string): Part[] =>
  parts.flatMap((part, i) => (i ? [between, part] : [part]));

/** A type as one line. A named schema becomes a link. */
export function typeOf(schema: Schema): Html {
  const { $ref, anyOf, items, type, format, additionalProperties, properties } = schema;
  if ($ref) return html`<a href="#schema-${schemaName($ref)}">${schemaName($ref)}</a>`;
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
type Direction = "in" | "out";

/** The row of one named value: its type, whether it is required, and its restrictions. */
function memberRow(name: string, schema: Schema, isRequired: boolean, direction: Direction): Html {
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
  return html`<dl class="members">${members.map(([name, member]) => memberRow(name, member, required.includes(name), direction))}</dl>`;
}

export interface DocumentedOperation {
  /** Lower case. */
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
  readonly schemas: Readonly<Record<string, Schema>>;
}

export function operationHtml(place: DocumentedOperation): Html {
  const { method, path, operation } = place;
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  return html`<details class="operation">
<summary><h3><span class="method ${method}">${method.toUpperCase()}</span> <code class="path">${pathHtml(path)}</code>
<span class="summary">${words(summary)}</span></h3></summary>
<div class="body">
<p class="name"><a id="${operationId}" href="#${operationId}">${operationId}</a></p>
${description && prose(description)}
${parametersHtml(parameters)}
${requestBody && [html`<h4>Body</h4>`, prose(requestBody.description), contentHtml(requestBody.content, place, "in")]}
<h4>Request</h4>
${example("curl", curlOf(method, path, operation))}
<h4>Answers</h4>
${Object.entries(responses).map(([status, response]) => responseHtml(status, response, place))}
</div>
</details>`;
}

/** A path in which lines may break before each part. */
const pathHtml = (path: string): Part[] =>
  path
    .split("/")
    .slice(1)
    .map((part) => html`<wbr>/${part}`);

function parametersHtml(parameters: readonly Parameter[]): Part {
  const places = ["path", "query", "header"] as const;
  return places.map((where) => {
    const rows = parameters.filter((parameter) => parameter.in === where);
    if (!rows.length) return null;
    return html`<h4>In the ${where}</h4><dl class="members">${rows.map(({ name, schema, required, description }) =>
      memberRow(name, { ...schema, description }, required, "in"),
    )}</dl>`;
  });
}

/** One answer as HTML. Problems are described once for all operations, so they are only linked. */
function responseHtml(status: string, { $ref, description, content }: Response, place: DocumentedOperation): Html {
  const kind = status < "300" ? "good" : status < "400" ? "kept" : "bad";
  const label = html`<span class="status ${kind}">${status}</span>`;
  if ($ref) return html`<p class="answer">${label} <a href="#answer-${schemaName($ref)}">${schemaName($ref)}</a></p>`;
  return html`<div class="answer">${label} ${words(description)}${content && contentHtml(content, place, "out")}</div>`;
}

function contentHtml(content: MediaContent, { schemas }: DocumentedOperation, direction: Direction): Part[] {
  return Object.entries(content).map(([type, media]) => {
    const resolved = media.schema.$ref ? schemas[schemaName(media.schema.$ref)]! : media.schema;
    return html`<p class="media"><code>${type}</code> ${typeOf(media.schema)}</p>
${membersOf(resolved, direction)}${direction === "out" && media.example !== undefined && example("Example", textOf(media.example))}`;
  });
}

export const example = (title: string, text: string): Html =>
  html`<details class="example"${title === "curl" && html` open`}><summary>${title}</summary><pre tabindex="0"><code>${text}</code></pre></details>`;
