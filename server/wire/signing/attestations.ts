/** Manifests and attestations. */
import Type from "typebox";
import { EntryId, Fingerprint, HexHash, LeafIndex, nullable, Pseudonym, Timestamp } from "../common.js";
import { TreeHead } from "../log/log.js";

/** Members beyond these are signed and hashed like the others, and left alone. */
export const Manifest = Type.Object(
  {
    document: Type.Object(
      {
        title: Type.String({ description: "1 to 500 characters." }),
        content_hash: Type.String({ description: "SHA-256 of the source in hexadecimal, bare or with `sha256:`." }),
      },
      { additionalProperties: true, description: "What is signed; `tags`, an array of strings, go to the log." },
    ),
    attestations: Type.Array(Type.Object({}), {
      maxItems: 256,
      description: "Those the signer found there; may be empty.",
    }),
  },
  {
    title: "Manifest",
    additionalProperties: true,
    description: "A document and the attestations of it; further members are signed, too.",
  },
);

export const Attestation = Type.Object(
  {
    id: Type.String({ description: "UUID." }),
    type: Type.String({ description: "authorship, editorial_review, peer_review, publication, or a predicate URL." }),
    scope: Type.Object(
      { content_hash: Type.String({ description: "Of the document." }) },
      { description: "What it is about." },
    ),
    signer_key_fingerprint: Fingerprint,
    signature_algorithm: Type.String({ description: "ed25519, ecdsa-p256 or rsa-2048." }),
    signature: Type.String({ description: "Base64." }),
    timestamp: Timestamp,
    intent_statement: Type.Optional(nullable(Type.String({ description: "What the signer meant by it." }))),
  },
  { title: "Attestation" },
);

export const SubmitAttestation = Type.Object(
  {
    manifest: Manifest,
    public_key_pem: Type.String({ description: "PEM block PUBLIC KEY. Never a private key." }),
    signature: Type.String({ description: "Base64, over the RFC 8785 canonical JSON of the manifest." }),
    attestation_type: Type.Optional(
      nullable(Type.String({ description: "One of the four types or an `https:` predicate URL; default authorship." })),
    ),
    pseudonym: Type.Optional(nullable(Type.String({ description: "For a key that is not registered yet." }))),
    intent_statement: Type.Optional(nullable(Type.String({ description: "At most 4096 characters." }))),
    password: Type.Optional(nullable(Type.String({ description: "When one is set for the key." }))),
  },
  { title: "SubmitAttestation", description: "The manifest, the key and its signature." },
);

export const AttestationReceipt = Type.Object(
  {
    attestation: Attestation,
    fingerprint: Fingerprint,
    pseudonym: Pseudonym,
    log_entry_id: EntryId,
    leaf_index: LeafIndex,
    entry_hash: HexHash,
    manifest_hash: HexHash,
    sth: nullable(TreeHead),
    duplicate: Type.Boolean({ description: "Whether this is the receipt of an earlier submission." }),
  },
  { title: "AttestationReceipt" },
);

export const SignDocument = Type.Object(
  {
    title: Type.String({ description: "1 to 500 characters." }),
    content_hash: Type.String({ description: "SHA-256 of the source in hexadecimal, bare or with `sha256:`." }),
    tags: Type.Optional(
      nullable(Type.Array(Type.String(), { maxItems: 32, description: "Of at most 64 characters each." })),
    ),
    ...Type.Omit(SubmitAttestation, ["manifest", "signature"]).properties,
    signature: Type.Optional(
      nullable(Type.String({ description: "Base64, over `signing_payload`; absent in the first step." })),
    ),
  },
  {
    title: "SignDocument",
    description: "The document and the key; in the second step the signature over what the first step answered, too.",
  },
);

export const PreparedDocument = Type.Object(
  {
    manifest: Manifest,
    signing_payload: Type.String({ description: "Base64 of the bytes to sign." }),
    manifest_hash: HexHash,
  },
  { title: "PreparedDocument" },
);
