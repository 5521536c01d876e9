/** Verification: of a manifest against the hash of a source, layer by layer, and of composite documents. */
import Type from "typebox";
import { MAX_PARTS, ROLE, TITLE } from "../../verify/keys/contract.js";
import { bounded, DOCUMENTED, EntryId, Fingerprint, freeForm, LeafIndex, nullable, optional } from "../common.js";
import { Manifest, SignedMembers } from "./attestations.js";
import { TrustPolicy, TrustVerdict } from "./trust.js";

export const VerifyManifest = Type.Object(
  {
    manifest: Manifest,
    source_hash: Type.String({ description: "SHA-256 of the source in hexadecimal, bare or with `sha256:`." }),
    verifier_fingerprint: optional(Type.String({ description: "Key whose active trust configuration layer 3 uses." })),
    trust_config: optional(TrustPolicy),
  },
  {
    title: "VerifyManifest",
    description: "The manifest, the hash of its source, and optionally the trust configuration to use.",
  },
);

const LayerStatus = Type.Enum(["valid", "invalid", "withheld", "warning", "not_evaluated"], {
  description:
    "`not_evaluated`: it was not requested, or could not be evaluated. `withheld`: it holds, but the operator withholds what the log recorded of it.",
});

const LayerResult = Type.Object(
  { status: LayerStatus, details: Type.String({ description: "A sentence." }) },
  { title: "LayerResult" },
);

export const VerificationResult = Type.Object(
  {
    layer1: LayerResult,
    layer2: LayerResult,
    layer3: Type.Optional(LayerResult),
    overall_status: Type.Enum(["valid", "invalid", "withheld", "warning"], { description: "The worst of the layers." }),
    attestations: Type.Array(
      Type.Object({
        id: Type.String({ description: "As in the manifest." }),
        signer_key_fingerprint: Fingerprint,
        layer1: LayerResult,
        layer2: LayerResult,
        layer3: Type.Optional(TrustVerdict),
        covers: nullable(
          Type.Enum(["document", "document-and-prior"], {
            description: "Whether its signature also covers the attestations before it.",
          }),
        ),
        signed: SignedMembers,
        logged: nullable(
          Type.Object(
            { entry_id: EntryId, leaf_index: LeafIndex, withheld_by: Type.Optional(EntryId) },
            { description: "Its place in the log, and the entry by which its payload is withheld." },
          ),
        ),
      }),
      { description: "The attestations of the manifest, in order." },
    ),
    attestation_graph: Type.Object(
      {
        nodes: Type.Array(
          Type.Object({
            id: Type.String({ description: "Unique in this graph." }),
            kind: Type.Enum(["document", "key", "attestation"], { description: "Kind of the node." }),
            title: Type.Optional(Type.String({ description: "Title of a document." })),
            type: Type.Optional(Type.String({ description: "Only for an attestation." })),
            status: Type.Optional(
              Type.String({ description: "Only for an attestation or a key; `unknown`: the key is not registered." }),
            ),
            pseudonym: optional(Type.String({ description: "Only for a key; null if it is not registered." })),
            named: Type.Optional(
              Type.Boolean({ description: "Only for a key: whether it has signed its name and expiration." }),
            ),
          }),
          { description: "The nodes of the graph." },
        ),
        edges: Type.Array(
          Type.Object({
            from: Type.String({ description: "`id` of a node." }),
            to: Type.String({ description: "`id` of a node." }),
            kind: Type.Enum(["signed", "attests", "covers_up_to", "succeeded_by"], {
              description:
                "Key to attestation; attestation to document; attestation to the last of the earlier ones that its " +
                "signature covers; key to key, both of which have signed that.",
            }),
          }),
          { description: "The edges between the nodes." },
        ),
      },
      { description: "Documents, keys and attestations, for drawing." },
    ),
    parts: Type.Optional(
      Type.Array(
        Type.Object({
          title: Type.String({ description: "Title of the part." }),
          content_hash: Type.String({ description: "Content hash of the part." }),
          overall_status: LayerStatus,
          result: Type.Optional(freeForm("The part's own verification result.")),
        }),
        {
          description:
            "Only for a composite document: results of its parts. The result of the whole is at most as good as the worst part.",
        },
      ),
    ),
  },
  { title: "VerificationResult" },
);

// Composite documents.

const CompositePart = Type.Object(
  {
    title: bounded(TITLE, "Title of the part."),
    content_hash: Type.String({
      description: "SHA-256 in hexadecimal, bare or with `sha256:`; unique among the parts.",
    }),
    role: Type.Optional(bounded(ROLE, "What the part is in the whole.")),
    manifest: Type.Optional(Manifest),
  },
  { title: "CompositePart" },
);

const Title = bounded(TITLE, "Title of the whole.");
const Parts = Type.Array(CompositePart, {
  maxItems: MAX_PARTS,
  [DOCUMENTED]: { minItems: 1 },
  description: "In order.",
});

export const AssembleComposite = Type.Object(
  { title: Title, parts: Parts },
  { title: "AssembleComposite", description: "The parts, in order." },
);

export const Composite = Type.Object(
  {
    title: Title,
    parts: Parts,
    composite_hash: Type.String({
      description: "SHA-256 over the canonical JSON of `{parts: [content_hash…], title}`.",
    }),
  },
  { title: "Composite" },
);

export const AssembledComposite = Type.Object(
  { composite: Composite },
  { title: "AssembledComposite", description: "A composite document, as it was assembled." },
);
