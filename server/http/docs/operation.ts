/** One operation as HTML: its parameters, its answers, and an example request. */
import { type Html, html, type Part, prose, words } from "./markup.js";
import { type MediaContent, nameOf, type Operation, type Parameter, type Response, type Schema } from "./model.js";
import { curlOf, textOf } from "./samples.js";
import { type Direction, membersOf, row, typeOf } from "./schema.js";

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
      row(name, { ...schema, description }, required, "in"),
    )}</dl>`;
  });
}

/** One answer as HTML. Problems are described once for all operations, so they are only linked. */
function responseHtml(status: string, { $ref, description, content }: Response, place: DocumentedOperation): Html {
  const kind = status < "300" ? "good" : status < "400" ? "kept" : "bad";
  const label = html`<span class="status ${kind}">${status}</span>`;
  if ($ref) return html`<p class="answer">${label} <a href="#answer-${nameOf($ref)}">${nameOf($ref)}</a></p>`;
  return html`<div class="answer">${label} ${words(description)}${content && contentHtml(content, place, "out")}</div>`;
}

function contentHtml(content: MediaContent, { schemas }: DocumentedOperation, direction: Direction): Part[] {
  return Object.entries(content).map(([type, media]) => {
    const resolved = media.schema.$ref ? schemas[nameOf(media.schema.$ref)]! : media.schema;
    return html`<p class="media"><code>${type}</code> ${typeOf(media.schema)}</p>
${membersOf(resolved, direction)}${direction === "out" && media.example !== undefined && example("Example", textOf(media.example))}`;
  });
}

export const example = (title: string, text: string): Html =>
  html`<details class="example"${title === "curl" && html` open`}><summary>${title}</summary><pre tabindex="0"><code>${text}</code></pre></details>`;
