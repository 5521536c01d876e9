/** Errors: `application/problem+json` (RFC 9457). */
import Type, { type Static } from "typebox";
import { Successor } from "./common.js";

/** The form of a request id. A client may choose it, and it goes into headers, documents and logs as it is. */
export const REQUEST_ID = "^[A-Za-z0-9._-]{1,128}$";

export const Problem = Type.Object(
  {
    type: Type.Literal("about:blank", {
      description: "Always `about:blank`: the status and `code` identify the problem.",
    }),
    title: Type.String({ description: "The meaning of the status." }),
    status: Type.Integer({ description: "The HTTP status of the answer." }),
    detail: Type.String({ description: "A sentence that a person can act on." }),
    code: Type.String({ description: "Stable, for programs.", pattern: "^[a-z]+(-[a-z]+)*$" }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({ description: "JSON Pointer (RFC 6901) into the body, or `/name` of a parameter." }),
          message: Type.String({ description: "The fault, in one sentence." }),
        }),
        { description: "With 422: the wrong members." },
      ),
    ),
    successor: Type.Optional(Successor),
    request_id: Type.Optional(
      Type.String({
        description: "The `X-Request-Id` of the answer. It is in the service's log.",
        pattern: REQUEST_ID,
      }),
    ),
  },
  { title: "Problem", description: "A refusal (RFC 9457)." },
);
export type Problem = Static<typeof Problem>;
