/** Encrypted claims. */
import Type from "typebox";
import { MAX_CIPHERTEXT_BYTES } from "../../verify/keys/contract.js";
import {
  DOCUMENTED,
  EntryId,
  Fingerprint,
  freeForm,
  HexHash,
  LeafIndex,
  optional,
  PAGE_QUERY,
  pageSchema,
} from "../common.js";
import { EntryDigests } from "../log/log.js";

const LOOKUP_KEY = { pattern: "^[0-9a-f]{32,128}$" };
const LookupKey = Type.String({ description: "As posted.", [DOCUMENTED]: LOOKUP_KEY });

/** The payload of a new claim, as the engine checks it. */
export const SealedClaim = Type.Object(
  {
    commitment_alg: Type.Literal("hmac-sha256-ecdh-v1", { description: "Always `hmac-sha256-ecdh-v1`." }),
    ephemeral_public_key: Type.String({ description: "Base64 of a SEC 1 uncompressed P-256 point, 65 bytes." }),
    nonce: Type.String({ description: "Base64, 12 bytes." }),
    ciphertext: Type.String({
      maxLength: 4 * Math.ceil(MAX_CIPHERTEXT_BYTES / 3),
      description: `Base64 of at most ${MAX_CIPHERTEXT_BYTES} bytes: AES-256-GCM with its tag of 16 bytes behind it.`,
    }),
    commitment: Type.String({
      pattern: "^[0-9a-f]{64}$",
      description: "HMAC-SHA256 of the plaintext in canonical JSON.",
    }),
    lookup_key: Type.String({
      ...LOOKUP_KEY,
      description: "Anybody who knows it finds the claim by it.",
    }),
    recipient_fingerprint: Type.Optional({
      ...Fingerprint,
      description: "Fingerprint of the key that opens it; leave it out to hide that.",
    }),
  },
  { title: "SealedClaim", description: "Encrypted by the poster; only the recipient can read it." },
);

/**
 * The members are shown, but not checked: the engine checks `commitment_alg` before all others, so that a client that
 * still makes unsalted commitments gets exactly that error.
 */
export const PostClaim = Type.Object(
  {
    payload: Type.Object({}, { [DOCUMENTED]: SealedClaim }),
  },
  { title: "PostClaim", description: "The encrypted claim." },
);

export const ClaimReceipt = Type.Object(
  {
    entry_id: EntryId,
    commitment: HexHash,
    lookup_key: LookupKey,
    leaf_index: LeafIndex,
    log_entry_id: EntryId,
  },
  { title: "ClaimReceipt" },
);

/** Entries of imported history may lack members, especially `commitment_alg`. */
export const ClaimPayload = Type.Object(
  {
    commitment_alg: Type.Optional(
      Type.Unknown({ description: "Absent in old entries, from before keyed commitments." }),
    ),
  },
  {
    title: "ClaimPayload",
    additionalProperties: true,
    description: "Only the recipient can decrypt it; members as in SealedClaim.",
  },
);

const Digest = {
  algorithm: Type.String({ description: "For example `sha2-256`." }),
  digest_hex: Type.String({ description: "Lower-case hexadecimal." }),
};

export const ClaimEntry = Type.Object(
  {
    id: EntryId,
    timestamp: Type.String({ description: "ISO 8601; hashed in version 2." }),
    event_type: Type.String({ description: "Always `encrypted_claim`." }),
    payload: ClaimPayload,
    previous_hashes: Type.Array(Type.Object(Digest), {
      description: "Entry hash of the previous entry; empty for the first entry.",
    }),
    entry_hashes: EntryDigests,
  },
  { title: "ClaimEntry" },
);

export const ClaimPage = pageSchema(
  { entries: Type.Array(ClaimEntry, { description: "Oldest first; empty if there are none." }) },
  "ClaimPage",
);

export const ClaimQuery = Type.Object({
  lookup_key: Type.String({
    minLength: 1,
    maxLength: 128,
    description: "The lookup key of the claims, in upper or lower case. Anybody who knows it may see them.",
  }),
  ...PAGE_QUERY,
});

export const ClaimParams = Type.Object({ entry_id: EntryId });

export const RevealClaim = Type.Object(
  {
    plaintext: freeForm("Any object; bytes as `{data: base64}`. Only compared, never stored."),
    commitment_key: optional(Type.String({ description: "64 hexadecimal characters; not kept." })),
  },
  {
    title: "RevealClaim",
    description:
      "The plaintext to compare with the claim. It is not stored. Checking offline discloses nothing to the service.",
  },
);

export const Revealed = Type.Object(
  { valid: Type.Boolean({ description: "Whether the claim commits to the plaintext." }) },
  { title: "Revealed" },
);
