/** Health of the service. */
import Type from "typebox";

export const Health = Type.Object(
  {
    status: Type.Literal("ok", { description: "Always `ok`." }),
    version: Type.String({ description: "Version of the service." }),
    read_only: Type.Optional(Type.Literal(true, { description: "Present on a mirror, which refuses writes." })),
  },
  { title: "Health" },
);

export const Ready = Type.Object(
  {
    status: Type.Literal("ok", { description: "Always `ok`." }),
    transport: Type.Enum(["uws", "node"], {
      description: "The HTTP library that serves: uWebSockets.js or `node:http`.",
    }),
    warnings: Type.Optional(Type.Array(Type.String(), { description: "Conditions that the operator should correct." })),
  },
  { title: "Ready" },
);

export const Alive = Type.Object({ status: Type.Literal("ok", { description: "Always `ok`." }) }, { title: "Alive" });
