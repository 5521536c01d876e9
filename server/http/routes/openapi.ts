/** The description of the interface, for programs. */
import Type from "typebox";
import { json } from "../answer.js";
import { openApi } from "../openapi/document.js";
import { type Route, route } from "../route.js";

/** `GET /api/v1/openapi.json`: describes `others` and itself. */
export function openApiRoute(others: readonly Route[]): Route {
  const self = route({
    method: "GET",
    path: "/api/v1/openapi.json",
    summary: "This document",
    answer: Type.Object({ openapi: Type.String() }, { additionalProperties: true }),
    limit: "general",
    keep: () => "revalidate",
    handle: () => document,
  });
  const document = json(openApi([...others, self]));
  return self;
}
