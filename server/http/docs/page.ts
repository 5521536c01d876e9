/**
 * The OpenAPI document as one HTML page without scripts, which fetches nothing but its style sheet. Nothing in it comes
 * from a client.
 */

import { type Html, html, prose, words } from "./markup.js";
import { type Document, nameOf } from "./model.js";
import { example, operationHtml, type Place } from "./operation.js";
import { membersOf, typeOf } from "./schema.js";

/** The page as text. Its links are relative, so that it works under any prefix. */
export function docsPage(document: Document): string {
  const { info, paths, components } = document;
  const places = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation, schemas: components.schemas })),
  );
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
<p class="links"><a href="api/v1/openapi.json">openapi.json</a> <span>${info.license.name}</span></p>
</header>
<div class="columns">
${navigation(document, places)}
<main id="content">
<h1>HTTP interface</h1>
<p class="lead">${info.summary}</p>
${prose(info.description)}
${shared(document)}
${document.tags.map((tag) => area(tag, places))}
${schemasHtml(document, places)}
</main>
</div>
</body>
</html>
`.text;
}

const idOf = (tag: string): string => `area-${tag.toLowerCase().replaceAll(" ", "-")}`;

const within = (places: readonly Place[], tag: string) =>
  places.filter(({ operation }) => operation.tags.includes(tag));

function navigation({ tags }: Document, places: readonly Place[]): Html {
  return html`<nav aria-label="Operations"><details open><summary>Operations</summary>
<ul><li><a href="#content">Conventions</a></li><li><a href="#sessions">Sessions and proofs</a></li>
<li><a href="#answers">Answers of all</a></li><li><a href="#schemas">Schemas</a></li></ul>
${tags.map(
  ({ name }) => html`<p class="area"><a href="#${idOf(name)}">${name}</a></p>
<ul>${within(places, name).map(
    ({ method, path, operation }) =>
      html`<li><a href="#${operation.operationId}" title="${operation.summary}"><span class="method ${method}">${method}</span>
<span class="path">${path.replace("/api/v1", "")}</span></a></li>`,
  )}</ul>`,
)}
</details></nav>`;
}

function area({ name, description }: Document["tags"][number], places: readonly Place[]): Html {
  return html`<section aria-labelledby="${idOf(name)}">
<h2 id="${idOf(name)}">${name}</h2>
<p>${words(description)}</p>
${within(places, name).map(operationHtml)}
</section>`;
}

/** The section that applies to every operation: proofs of a key, headers, errors. */
function shared({ components }: Document): Html {
  const { headers, responses, securitySchemes } = components;
  return html`<section aria-labelledby="sessions">
<h2 id="sessions">Sessions and proofs</h2>
${prose(securitySchemes.session.description)}
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
${Object.entries(responses).map(([name, response]) => {
  const { schema, example: shown } = Object.values(response.content!)[0]!;
  const { status, code } = schema.properties!;
  return html`<div class="row"><dt><a id="answer-${name}" class="target"></a><span class="status bad">${String(status!.const)}</span></dt>
<dd><p>${words(response.description)}</p><p>${typeOf(code!)}</p>${example("Example", JSON.stringify(shown, null, 2))}</dd></div>`;
})}</dl></div></details>
</section>`;
}

function schemasHtml({ components }: Document, places: readonly Place[]): Html {
  const requests = new Set(
    places.flatMap(({ operation }) =>
      Object.values(operation.requestBody?.content ?? {}).map(({ schema }) => nameOf(schema.$ref ?? "")),
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
