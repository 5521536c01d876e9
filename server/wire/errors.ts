/** Refusals: `application/problem+json` (RFC 9457). */
import Type, { type Static } from "typebox";

export const Problem = Type.Object(
  {
    type: Type.Literal("about:blank"),
    title: Type.String({ description: "What the status means." }),
    status: Type.Integer(),
    detail: Type.String({ description: "A sentence that a person can act on." }),
    code: Type.String({ description: "Stable, for programs.", pattern: "^[a-z]+(-[a-z]+)*$" }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({ description: "JSON Pointer (RFC 6901) into the body, or `/name` of a parameter." }),
          message: Type.String(),
        }),
        { description: "With 422: the members to blame." },
      ),
    ),
  },
  { title: "Problem" },
);
export type Problem = Static<typeof Problem>;
