/** The description of the API: a document for programs, and a page for people. */
import Type from "typebox";
import type { Document } from "../../docs/model.js";
import { docsPages, MAX_SEARCH_CHARACTERS } from "../../docs/page.js";
import { docsStyle } from "../../docs/style.js";
import { openApi } from "../../openapi/document.js";
import { type Route, route } from "../../route/route.js";
import { Answer, json } from "../../transport/answer.js";

/** The page loads only its style sheet, its form leads only to itself, and no other page may frame it. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const HEADERS = { "content-security-policy": POLICY, "referrer-policy": "no-referrer" };

/**
 * `GET /api/v1/openapi.json`, which describes `others` and itself. Also `GET /docs` and its style sheet, which are not
 * part of the API.
 * @param hasExplorer whether the service shows its log at `/`, where the page then leads
 */
export function descriptionRoutes(others: readonly Route[], hasExplorer = false): Route[] {
  const self = route({
    method: "GET",
    path: "/api/v1/openapi.json",
    summary: "This document",
    answer: Type.Object(
      { openapi: Type.String({ description: "Version of the specification that it follows." }) },
      { additionalProperties: true },
    ),
    limit: "general",
    keep: () => "revalidate",
    handle: (): Answer => answer(),
  });
  const document = once((): Record<string, unknown> => openApi([...others, self]));
  const answer = once(() => json(document()));
  const style = once(docsStyle);
  const pages = once(() => docsPages(document() as unknown as Document, hasExplorer));
  return [
    self,
    page("/docs", "The interface, for people", "text/html; charset=utf-8", (search) => pages()(search)),
    page("/docs/style.css", "The style sheet of that", "text/css; charset=utf-8", style),
  ];
}

const SearchQuery = Type.Object({
  search: Type.String({ maxLength: MAX_SEARCH_CHARACTERS, default: "", description: "Words of operations." }),
});

/** A page. */
function page(path: string, summary: string, answerType: string, text: (search: string) => string): Route {
  const answerTo = (search: string) =>
    new Answer(Buffer.from(text(search)), { contentType: answerType, headers: HEADERS });
  const whole = once(() => answerTo(""));
  return route({
    method: "GET",
    path,
    summary,
    query: SearchQuery,
    answer: Type.String(),
    answerType,
    limit: "general",
    keep: () => "revalidate",
    handle: ({ query: { search } }) => (search.trim() ? answerTo(search.trim()) : whole()),
  });
}

/** A function that calls `make` when it is first called: making all of this takes as long as a whole start, and few clients ask. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
