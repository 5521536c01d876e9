/** The description of the interface, for programs. */
import Type from "typebox";
import { openApi } from "../openapi.js";
import { type Route, route } from "../route.js";

/** `GET /api/v1/openapi.json`: describes `others` and itself. */
export function openApiRoute(others: readonly Route[]): Route {
  const self = route({
    method: "GET",
    path: "/api/v1/openapi.json",
    summary: "This document",
    answer: Type.Object({ openapi: Type.String() }),
    limit: "general",
    handle: () => document,
  });
  const document = openApi([...others, self]) as { openapi: string };
  return self;
}
