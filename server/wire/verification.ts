/** Layered verification of a manifest against the hash of a source. */
import Type from "typebox";
import { Manifest } from "./attestations.js";
import { EntryId, Fingerprint, LeafIndex, nullable } from "./common.js";
import { TrustPolicy, TrustVerdict } from "./trust.js";

export const VerifyManifest = Type.Object(
  {
    manifest: Manifest,
    source_hash: Type.String({ description: "SHA-256 of the source in hexadecimal, bare or with `sha256:`." }),
    verifier_fingerprint: Type.Optional(
      nullable(Type.String({ description: "Key whose active trust configuration layer 3 goes by." })),
    ),
    trust_config: Type.Optional(nullable(TrustPolicy)),
  },
  { title: "VerifyManifest" },
);

const LayerResult = Type.Object(
  { status: Type.Enum(["valid", "invalid", "warning", "not_evaluated"]), details: Type.String() },
  { title: "LayerResult" },
);

export const VerificationResult = Type.Object(
  {
    layer1: LayerResult,
    layer2: LayerResult,
    layer3: Type.Optional(LayerResult),
    overall_status: Type.Enum(["valid", "invalid", "warning"]),
    attestations: Type.Array(
      Type.Object({
        id: Type.String(),
        signer_key_fingerprint: Fingerprint,
        layer1: LayerResult,
        layer2: LayerResult,
        layer3: Type.Optional(TrustVerdict),
        covers: nullable(Type.Enum(["document", "document-and-prior"])),
        logged: nullable(Type.Object({ entry_id: EntryId, leaf_index: LeafIndex })),
      }),
    ),
    attestation_graph: Type.Object({
      nodes: Type.Array(Type.Object({ id: Type.String(), kind: Type.Enum(["document", "key", "attestation"]) })),
      edges: Type.Array(Type.Object({ from: Type.String(), to: Type.String(), kind: Type.String() })),
    }),
    parts: Type.Optional(
      Type.Array(
        Type.Object({
          title: Type.String(),
          content_hash: Type.String(),
          overall_status: Type.Enum(["valid", "invalid", "warning", "not_evaluated"]),
          result: Type.Optional(Type.Object({}, { description: "The part's own verification result." })),
        }),
        { description: "Of a composite document; the whole is no better than the worst of them." },
      ),
    ),
  },
  { title: "VerificationResult" },
);
