/** Manifests with attestations, submitted or signed outside the service, and the results of verifying them. */
import type { Attestations } from "#cairnlog/engine/registry/attestations/attestations.js";
import type { VerificationRequest, VerificationResult } from "#cairnlog/engine/registry/verification/verification.js";
import type { Attestation } from "#cairnlog/engine/verify/events/manifest.js";
import {
  at,
  compact,
  HASH,
  registration,
  submission,
  type TestManifest,
  type TestSigner,
  type World,
} from "../world.js";

/** The body of `POST /attestations`. */
export type Submission = Parameters<Attestations["submit"]>[0];

/** Lets `signer` attest `manifest`. Returns the manifest with that attestation at its end. */
export async function attest(
  world: World,
  signer: TestSigner,
  manifest: TestManifest,
  more = {},
): Promise<TestManifest> {
  const { attestation } = await world.registry.attestations.submit(submission(signer, manifest, more) as Submission);
  return { ...manifest, attestations: [...manifest.attestations, attestation] };
}

/** Signs outside the service: an attestation that is not in the log. */
export function unlogged(
  world: World,
  signer: TestSigner,
  manifest: TestManifest,
  changes: Partial<Attestation> = {},
): TestManifest {
  const attestation = {
    id: "of-my-own",
    type: "authorship",
    scope: { content_hash: HASH },
    signer_key_fingerprint: signer.fingerprint,
    signature_algorithm: signer.algorithm,
    signature: signer.sign(compact(manifest)),
    timestamp: at(world.now),
    ...changes,
  };
  return { ...manifest, attestations: [...manifest.attestations, attestation] };
}

export const verify = (world: World, manifest: unknown, source_hash: unknown = HASH) =>
  world.registry.verification.verify({ manifest, source_hash } as VerificationRequest);

export const attestationOf = (manifest: TestManifest, position = 0) => manifest.attestations[position] as Attestation;

/** `manifest` with changed members of its attestation at `position`. */
export const changed = (manifest: TestManifest, changes: Partial<Attestation>, position = 0): TestManifest => ({
  ...manifest,
  attestations: manifest.attestations.map((one, i) => (i === position ? { ...(one as Attestation), ...changes } : one)),
});

export const statuses = ({ layer1, layer2, overall_status }: VerificationResult) => [
  layer1.status,
  layer2.status,
  overall_status,
];

export const register = (world: World, signer: TestSigner, expiration_date: string | null = null) =>
  world.registry.keys.register(registration(signer, "x", expiration_date));
