/**
 * The OpenAPI document as one HTML page without scripts, which fetches nothing but its style sheet. A search is the only
 * thing in it that comes from a client.
 */
import {
  type Document,
  type Html,
  html,
  type Operation,
  type Part,
  prose,
  type Schema,
  schemaName,
  words,
} from "./model.js";
import { type DocumentedOperation, example, membersOf, operationHtml, typeOf } from "./operation.js";
import { SIGN_IN } from "./samples.js";

// Finding operations by words. The service searches, so that the page needs no script.

/** The longest search that is taken; all words of the page are shorter. */
export const MAX_SEARCH_CHARACTERS = 100;

/** The text in which an operation is found: method, path, name, summary, area, and the names of what it takes and gives. */
function textOfOperation(
  method: string,
  path: string,
  operation: Operation,
  schemas: Readonly<Record<string, Schema>>,
): string {
  const { operationId, tags, summary, parameters = [], requestBody, responses } = operation;
  const content = [requestBody?.content, responses[200]?.content, responses[201]?.content];
  const members = content.flatMap((one) => Object.values(one ?? {}).flatMap(({ schema }) => namesIn(schema, schemas)));
  const named = parameters.map(({ name }) => name);
  return [method, path, operationId, summary, ...tags, ...named, ...members].join("\n").toLowerCase();
}

/** The name of a schema, and of its members two levels deep. */
function namesIn(schema: Schema, schemas: Readonly<Record<string, Schema>>, depth = 0): string[] {
  const { $ref, anyOf = [], items } = schema;
  if ($ref) return [schemaName($ref), ...namesIn(schemas[schemaName($ref)]!, schemas, depth)];
  const members = depth < 2 ? Object.entries(schema.properties ?? {}) : [];
  return [
    ...members.flatMap(([name, member]) => [name, ...namesIn(member, schemas, depth + 1)]),
    ...[...anyOf, ...(items ? [items] : [])].flatMap((part) => namesIn(part, schemas, depth)),
  ];
}

/** A check whether a text has all words of a search. */
function matcher(search: string): (text: string) => boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => words.every((word) => text.includes(word));
}

/** An operation, with its part of the page and the text in which it is searched. */
interface Listed extends DocumentedOperation {
  readonly part: Html;
  readonly text: string;
}

/**
 * Makes pages of a document: the whole one for an empty search, otherwise one with the operations that have all of its
 * words. The parts are made once, since that takes as long as many requests. Links are relative, so that they work under
 * any prefix.
 * @param hasExplorer whether the service shows its log at `/`
 */
export function docsPages(document: Document, hasExplorer: boolean): (search: string) => string {
  const { paths, components } = document;
  const places = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      // What HEAD answers is said once, above all operations.
      .filter(([method]) => method !== "head")
      .map(([method, operation]) => ({ method, path, operation, schemas: components.schemas })),
  );
  const listed: Listed[] = places.map((place) => ({
    ...place,
    part: operationHtml(place),
    text: textOfOperation(place.method, place.path, place.operation, place.schemas),
  }));
  const below = html`${schemasHtml(document, places)}`;
  const above = shared(document);
  return (search) => {
    const found = listed.filter(({ text }) => matcher(search)(text));
    const areas = document.tags.map((tag) => area(tag, found));
    const lead = search ? results(search, found.length, listed.length) : introduction(document);
    const content = search ? [areas, above, below] : [above, areas, below];
    return frame(document, hasExplorer, search, [navigation(document, found), mainHtml([lead, content])]);
  };
}

function frame({ info }: Document, hasExplorer: boolean, search: string, columns: Part): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title} ${info.version}: HTTP interface</title>
<link rel="stylesheet" href="docs/style.css">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<p class="title">${info.title} <span class="version">${info.version}</span></p>
<form role="search" action="docs"><input type="search" name="search" aria-label="Search operations" placeholder="Search operations" maxlength="${MAX_SEARCH_CHARACTERS}" value="${search}"><button>Search</button></form>
<p class="links">${hasExplorer && html`<a href="./">The log</a>`}<a href="api/v1/openapi.json">openapi.json</a> <span>${info.license.name}</span></p>
</header>
<div class="columns">
${columns}
</div>
</body>
</html>
`.text;
}

const mainHtml = (content: Part): Html => html`<main id="content">
${content}
</main>`;

const introduction = ({ info }: Document): Html => html`<h1>HTTP interface</h1>
<p class="lead">${info.summary}</p>
${prose(info.description)}`;

const results = (search: string, found: number, all: number): Html => html`<h1>Operations with “${search}”</h1>
<p class="lead">${found || "None"} of ${all}. <a href="docs">The whole interface</a></p>`;

const idOf = (tag: string): string => `area-${tag.toLowerCase().replaceAll(" ", "-")}`;

const within = <T extends DocumentedOperation>(places: readonly T[], tag: string): T[] =>
  places.filter(({ operation }) => operation.tags.includes(tag));

function navigation({ tags }: Document, places: readonly DocumentedOperation[]): Html {
  return html`<nav aria-label="Operations"><details open><summary>Operations</summary>
<ul><li><a href="#content">Conventions</a></li><li><a href="#sessions">Sessions and proofs</a></li>
<li><a href="#answers">Answers of all</a></li><li><a href="#schemas">Schemas</a></li></ul>
${tags
  .filter(({ name }) => within(places, name).length)
  .map(
    ({ name }) => html`<p class="area"><a href="#${idOf(name)}">${name}</a></p>
<ul>${within(places, name).map(
      ({ method, path, operation }) =>
        html`<li><a href="#${operation.operationId}" title="${operation.summary}"><span class="method ${method}">${method}</span>
<span class="path">${path.replace("/api/v1", "")}</span></a></li>`,
    )}</ul>`,
  )}
</details></nav>`;
}

function area({ name, description }: Document["tags"][number], places: readonly Listed[]): Html | null {
  const own = within(places, name);
  if (!own.length) return null;
  return html`<section aria-labelledby="${idOf(name)}">
<h2 id="${idOf(name)}">${name}</h2>
<p>${words(description)}</p>
${own.map(({ part }) => part)}
</section>`;
}

/** The section that applies to every operation: proofs of a key, headers, errors. */
function shared({ components }: Document): Html {
  const { headers, responses, securitySchemes } = components;
  return html`<section aria-labelledby="sessions">
<h2 id="sessions">Sessions and proofs</h2>
${prose(securitySchemes.session.description)}
<p>The requests on this page use the variables <code>SERVER</code>, which is the address of the service, <code>FINGERPRINT</code> and
<code>TOKEN</code>. These commands make a key and a session, and set the latter two. Other values are examples: a request that carries signatures, challenges or
ids of things is granted when they are yours.</p>
${example("A key and a session", SIGN_IN)}
</section>
<section aria-labelledby="answers">
<h2 id="answers">Answers of all operations</h2>
<details class="operation"><summary><h3>Headers</h3></summary><div class="body"><dl class="members">
${Object.entries(headers).map(
  ([name, header]) => html`<div class="row"><dt><code>${name}</code></dt>
<dd><p>${words(header.description)}</p><code>${String(header.example)}</code></dd></div>`,
)}</dl></div></details>
<details class="operation"><summary><h3>Refusals</h3></summary><div class="body">
<p>Each is a <a href="#schema-Problem">Problem</a>.</p><dl class="members">
${Object.entries(responses).map(([name, { content, description }]) => {
  const [media] = Object.values(content ?? {});
  // The refusals of HEAD are these without a body.
  if (!media) return null;
  const { schema, example: shown } = media;
  const { status, code } = schema.properties!;
  return html`<div class="row"><dt><a id="answer-${name}" class="target"></a><span class="status bad">${String(status!.const)}</span></dt>
<dd><p>${words(description)}</p><p>${typeOf(code!)}</p>${example("Example", JSON.stringify(shown, null, 2))}</dd></div>`;
})}</dl></div></details>
</section>`;
}

function schemasHtml({ components }: Document, places: readonly DocumentedOperation[]): Html {
  const requests = new Set(
    places.flatMap(({ operation }) =>
      Object.values(operation.requestBody?.content ?? {}).map(({ schema }) => schemaName(schema.$ref ?? "")),
    ),
  );
  return html`<section aria-labelledby="schemas">
<h2 id="schemas">Schemas</h2>
${Object.entries(components.schemas).map(
  ([name, schema]) => html`<details class="operation schema"><summary><h3><code>${name}</code></h3></summary>
<div class="body"><p class="name"><a id="schema-${name}" href="#schema-${name}">${name}</a></p>
${schema.description && prose(schema.description)}${membersOf(schema, requests.has(name) ? "in" : "out") ?? html`<p>${typeOf(schema)}</p>`}</div></details>`,
)}
</section>`;
}
