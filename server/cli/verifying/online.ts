/**
 * `verify --online`: what a file cannot show. Whether the signer's key was revoked, succeeded or has expired, and how far a
 * trust configuration reaches it. These are answers of the service, not proofs.
 */
import type { AttestationBundle, BundleCheck } from "../../../engine/verify/index.js";
import type { Client, VerificationResult } from "../../client/index.js";

export type TrustConfig = NonNullable<NonNullable<Parameters<Client["verify"]>[1]>["trust_config"]>;

/** Checks of the signer's key and of the trust in it. @throws ClientError if the service cannot be asked */
export async function signerChecks(
  client: Client,
  { manifest, attestation }: AttestationBundle,
  trust_config: TrustConfig | undefined,
): Promise<readonly BundleCheck[]> {
  const whole = { ...manifest, attestations: [...manifest.attestations, attestation] };
  const answer: VerificationResult = await client.verify(whole, trust_config ? { trust_config } : {});
  const judged = answer.attestations.find(({ id }) => id === attestation.id);
  if (!judged) return verdictOf([["key", "invalid", "The service does not answer about this attestation."]]);
  const { layer1, layer2, layer3, logged } = judged;
  const by = logged?.withheld_by;
  return verdictOf([
    ...(by === undefined
      ? []
      : [["withholding", "warning", `The operator withholds this now, as entry ${by} says.`] as const]),
    [
      "key",
      layer1.status === "invalid" ? "invalid" : layer2.status,
      layer1.status === "invalid" ? layer1.details : layer2.details,
    ],
    ...(layer3 ? [["trust", layer3.status, layer3.details] as const] : []),
  ]);
}

/** A warning is no fault of the attestation: the sentence says what it is. */
const verdictOf = (
  layers: readonly (readonly [name: "key" | "trust" | "withholding", status: string, details: string])[],
): readonly BundleCheck[] =>
  layers.map(([name, status, detail]) => ({
    ...{ name, ok: status === "valid" || status === "warning" },
    detail: status === "warning" ? `Mind this: ${detail}` : detail,
  }));
