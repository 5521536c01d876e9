/** Errors: `application/problem+json` (RFC 9457). */
import Type, { type Static } from "typebox";
import { Successor } from "./common.js";

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
  },
  { title: "Problem", description: "A refusal (RFC 9457)." },
);
export type Problem = Static<typeof Problem>;
