/** Checks of attestations and composites against the log, and the making of composites. Nothing is written. */
import { PreparedDocument } from "../../../../engine/contract/signing/attestations.js";
import {
  AssembleComposite,
  AssembledComposite,
  VerificationResult,
  VerifyManifest,
} from "../../../../engine/contract/signing/verification.js";
import type { Served } from "../../../../engine/registry/registry.js";
import { assemble, compile, verifyComposite } from "../../../../engine/registry/verification/composites.js";
import { type Route, route } from "../../route/route.js";

export function verifyRoutes({ verification }: Pick<Served, "verification">): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/verify",
      summary: "Verify a manifest in layers; the source itself is never sent",
      body: VerifyManifest,
      answer: VerificationResult,
      refusals: [404],
      limit: "general",
      handle: ({ body }) => verifyComposite(verification, body),
    }),
  ];
}

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
