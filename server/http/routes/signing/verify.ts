/** Verification of a manifest against the hash of a source. */

import type { Served } from "../../../../engine/registry/registry.js";
import { verifyComposite } from "../../../../engine/registry/verification/composites.js";
import { VerificationResult, VerifyManifest } from "../../../wire/signing/verification.js";
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
