/** Composite documents: from parts to a composite, from a composite to a manifest. */
import { assemble, compile } from "../../../../engine/registry/verification/composites.js";
import { PreparedDocument } from "../../../wire/signing/attestations.js";
import { AssembleComposite, AssembledComposite } from "../../../wire/signing/composites.js";
import { type Route, route } from "../../route/route.js";

export function compositeRoutes(): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/composite/assemble",
      summary: "Make a composite document of parts",
      body: AssembleComposite,
      answer: AssembledComposite,
      limit: "general",
      handle: ({ body }) => assemble(body),
    }),
    route({
      method: "POST",
      path: "/api/v1/composite/compile",
      summary: "Make the manifest of a composite, to be signed like any other",
      body: AssembledComposite,
      answer: PreparedDocument,
      limit: "general",
      handle: ({ body }) => compile(body),
    }),
  ];
}
