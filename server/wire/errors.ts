/** Refusals: `application/problem+json` (RFC 9457). */
import Type, { type Static } from "typebox";

export const Problem = Type.Object(
  {
    type: Type.Literal("about:blank", { description: "Always the same: the status and `code` say what it is." }),
    title: Type.String({ description: "What the status means." }),
    status: Type.Integer({ description: "That of the answer." }),
    detail: Type.String({ description: "A sentence that a person can act on." }),
    code: Type.String({ description: "Stable, for programs.", pattern: "^[a-z]+(-[a-z]+)*$" }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({ description: "JSON Pointer (RFC 6901) into the body, or `/name` of a parameter." }),
          message: Type.String({ description: "What does not fit." }),
        }),
        { description: "With 422: the members to blame." },
      ),
    ),
  },
  { title: "Problem", description: "A refusal (RFC 9457)." },
);
export type Problem = Static<typeof Problem>;
