/** Manifests and attestations. */
import Type from "typebox";
import {
  ATTESTATION_TYPE,
  MAX_ATTESTATIONS,
  MAX_TAG_CHARACTERS,
  MAX_TAGS,
  PSEUDONYM,
  STATEMENT,
  TITLE,
} from "../../verify/keys/contract.js";
import {
  bounded,
  EntryId,
  Fingerprint,
  freeForm,
  HexHash,
  LeafIndex,
  nullable,
  optional,
  Problem,
  Pseudonym,
  PublicKeyPem,
  Timestamp,
} from "../common.js";
import { AUTH } from "../identity/auth.js";
import { TreeHead } from "../log/log.js";

/** Further members are signed and hashed like the others, and otherwise ignored. */
export const Manifest = Type.Object(
  {
    document: Type.Object(
      {
        title: bounded(TITLE, "Shown by the log, which finds its words."),
        content_hash: Type.String({ description: "SHA-256 of the source in hexadecimal, bare or with `sha256:`." }),
      },
      {
        additionalProperties: true,
        description:
          "The signed document. `tags`, an array of strings, are written to the log; so are `attestation_type` and " +
          "`intent_statement`, which the body must not contradict.",
      },
    ),
    attestations: Type.Array(freeForm("An attestation, as a receipt holds it."), {
      maxItems: MAX_ATTESTATIONS,
      description: "Earlier attestations that the signer also signs; may be empty.",
    }),
  },
  {
    title: "Manifest",
    additionalProperties: true,
    description: "A document and its earlier attestations. Further members are signed, too.",
  },
);

const Attestation = Type.Object(
  {
    id: Type.String({ description: "UUID." }),
    type: Type.String({ description: "authorship, editorial_review, peer_review, publication, or a predicate URL." }),
    scope: Type.Object(
      { content_hash: Type.String({ description: "Content hash of the document." }) },
      { description: "The attested document." },
    ),
    signer_key_fingerprint: Fingerprint,
    signature_algorithm: Type.String({ description: "ed25519, ecdsa-p256 or rsa-2048." }),
    signature: Type.String({ description: "Base64." }),
    timestamp: Timestamp,
    intent_statement: optional(Type.String({ description: "The signer's statement of intent." })),
  },
  { title: "Attestation" },
);

export const SubmitAttestation = Type.Object(
  {
    manifest: Manifest,
    public_key_pem: PublicKeyPem,
    signature: Type.String({ description: "Base64: signature over the RFC 8785 canonical JSON of the manifest." }),
    attestation_type: optional(
      bounded(
        ATTESTATION_TYPE,
        "One of the four types or an `https:` predicate URL; default: the one in the manifest's document, else authorship.",
      ),
    ),
    pseudonym: optional(bounded(PSEUDONYM, "Name of the key, if it is not registered yet or names itself.")),
    possession_signature: optional(
      Type.String({
        description:
          "Base64, by the key over the statement of POST /keys/register, with the pseudonym as sent here and " +
          "expiration_date null. The key is registered under this name by an entry before the attestation, in place " +
          "of what strangers recorded for it, unless it has named itself already.",
      }),
    ),
    intent_statement: optional(
      bounded(STATEMENT, "The signer's statement of intent; default: the one in the manifest's document."),
    ),
    password: optional(Type.String({ description: "Required if the key has a password." })),
    ...AUTH,
  },
  {
    title: "SubmitAttestation",
    description:
      "The manifest, the key and its signature. A signature that the log has already makes another attestation (another " +
      "type, statement or list of earlier attestations) only with a session, an `auth` proof or the key's password.",
  },
);

/** Whether the signer has signed each of the members that the log records besides the manifest. */
export const SignedMembers = Type.Object(
  {
    attestation_type: Type.Boolean({ description: "Whether the signature covers the type." }),
    intent_statement: Type.Boolean({
      description: "Whether the signature covers the statement or its absence.",
    }),
  },
  {
    title: "SignedMembers",
    description: "The signer vouches only for signed members. Only the log states the others.",
  },
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
    signed: SignedMembers,
  },
  { title: "AttestationReceipt" },
);

/** Submissions in one batch. */
export const MAX_SUBMISSIONS = 1000;

const submissions = { minItems: 1, maxItems: MAX_SUBMISSIONS };

/** What is checked of a batch as a whole. Each submission is checked and refused by itself. */
export const BatchFrame = Type.Object({ submissions: Type.Array(Type.Unknown(), submissions) });

export const SubmitAttestations = Type.Object(
  {
    submissions: Type.Array(SubmitAttestation, {
      ...submissions,
      description:
        "Each is recorded or refused by itself. An `auth` proof belongs to the one submission that carries it.",
    }),
  },
  {
    title: "SubmitAttestations",
    description:
      "Bodies of POST /attestations. Those that are recorded get their entries in this order. A session holds for all. " +
      "The body may be as large as three others.",
  },
);

const BatchResult = Type.Union([
  Type.Object(
    {
      status: Type.Union([Type.Literal(200), Type.Literal(201)], {
        description: "201 for a new entry, 200 for an earlier one (`duplicate`).",
      }),
      receipt: AttestationReceipt,
    },
    { title: "RecordedSubmission", description: "A submission that is on the log." },
  ),
  Type.Object(
    {
      status: Type.Integer({ description: "The status that POST /attestations would refuse it with.", minimum: 400 }),
      problem: Problem,
      retry_after: Type.Optional(
        Type.Integer({ description: "Seconds after which to try again; absent if waiting does not help." }),
      ),
    },
    {
      title: "RefusedSubmission",
      description: "A submission that is not on the log. Paths in `errors` lead into this submission.",
    },
  ),
]);

export const AttestationBatch = Type.Object(
  { results: Type.Array(BatchResult, { description: "One for each submission, in the same order." }) },
  { title: "AttestationBatch" },
);

export const SignDocument = Type.Object(
  {
    title: bounded(TITLE, "Title of the document."),
    content_hash: Type.String({ description: "SHA-256 of the source in hexadecimal, bare or with `sha256:`." }),
    tags: optional(
      Type.Array(bounded({ min: 0, max: MAX_TAG_CHARACTERS }, "One tag."), {
        maxItems: MAX_TAGS,
        description: "On the log.",
      }),
    ),
    ...Type.Omit(SubmitAttestation, ["manifest", "signature"]).properties,
    signature: optional(
      Type.String({ description: "Base64: signature over `signing_payload`; absent in the first step." }),
    ),
  },
  {
    title: "SignDocument",
    description: "The document and the key. In the second step also the signature over the bytes from the first step.",
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
