/** The description of the API: a document for programs, and a page for people. */
import Type from "typebox";
import type { Document } from "../../docs/model.js";
import { docsPage } from "../../docs/page.js";
import { docsStyle } from "../../docs/style.js";
import { openApi } from "../../openapi/document.js";
import { type Route, route } from "../../route.js";
import { Answer, json } from "../../transport/answer.js";

/** The page loads only its style sheet, and no other page may frame it. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEADERS = { "content-security-policy": POLICY, "referrer-policy": "no-referrer" };

/**
 * `GET /api/v1/openapi.json`, which describes `others` and itself. Also `GET /docs` and its style sheet, which are not
 * part of the API.
 */
export function descriptionRoutes(others: readonly Route[]): Route[] {
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
    handle: () => answer,
  });
  const document = openApi([...others, self]);
  const answer = json(document);
  const page = () => docsPage(document as unknown as Document);
  return [
    self,
    pageRoute("/docs", "The interface, for people", page, "text/html; charset=utf-8"),
    pageRoute("/docs/style.css", "The style sheet of that", docsStyle, "text/css; charset=utf-8"),
  ];
}

/** A page that is made on the first request, because making it takes as long as a whole start and few clients ask. */
function pageRoute(path: string, summary: string, text: () => string, contentType: string): Route {
  let answer: Answer | undefined;
  return route({
    method: "GET",
    path,
    summary,
    answer: Type.String(),
    answerType: contentType,
    limit: "general",
    keep: () => "revalidate",
    handle() {
      answer ??= new Answer(Buffer.from(text()), { contentType, headers: HEADERS });
      return answer;
    },
  });
}
