/** Encrypted claims. */
import Type from "typebox";
import { EntryId, HexHash, LeafIndex, nullable, PAGE_QUERY, pageOf } from "../common.js";
import { EntryDigests } from "../log/log.js";

const LookupKey = Type.String({ description: "32 to 128 lower-case hexadecimal characters." });

const MEMBERS = {
  commitment_alg: "Always `hmac-sha256-ecdh-v1`.",
  ephemeral_public_key: "Base64 of a SEC 1 uncompressed P-256 point, 65 bytes.",
  nonce: "Base64, 12 bytes.",
  ciphertext: "Base64 of at most 262144 bytes: AES-256-GCM with its tag of 16 bytes behind it.",
  commitment: "HMAC-SHA256 of the plaintext in canonical JSON: 64 lower-case hexadecimal characters.",
  lookup_key: "32 to 128 lower-case hexadecimal characters.",
} as const;

const member = (description: string) => Type.Unknown({ description });

/**
 * The members are named but not checked here: the engine looks at `commitment_alg` before all others, so that whoever
 * still makes unsalted commitments is told that and nothing else.
 */
export const PostClaim = Type.Object(
  {
    payload: Type.Object(
      {
        commitment_alg: Type.Optional(member(MEMBERS.commitment_alg)),
        ephemeral_public_key: Type.Optional(member(MEMBERS.ephemeral_public_key)),
        nonce: Type.Optional(member(MEMBERS.nonce)),
        ciphertext: Type.Optional(member(MEMBERS.ciphertext)),
        commitment: Type.Optional(member(MEMBERS.commitment)),
        lookup_key: Type.Optional(member(MEMBERS.lookup_key)),
        recipient_fingerprint: Type.Optional(
          member("Fingerprint of the key that opens it; leave it out to hide that."),
        ),
      },
      { description: "Sealed by the poster; what it says is known to its recipient alone." },
    ),
  },
  { title: "PostClaim", description: "The sealed claim." },
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

/** Entries of imported history may lack members, `commitment_alg` above all. */
export const ClaimPayload = Type.Object(
  {
    commitment_alg: Type.Optional(Type.Unknown({ description: "Absent from entries older than keyed commitments." })),
  },
  {
    title: "ClaimPayload",
    additionalProperties: true,
    description: "Opaque but to its recipient; members as in PostClaim.",
  },
);

const Digest = {
  algorithm: Type.String({ description: "`sha2-256`, for one." }),
  digest_hex: Type.String({ description: "Lower-case hexadecimal." }),
};

export const ClaimEntry = Type.Object(
  {
    id: EntryId,
    timestamp: Type.String({ description: "ISO 8601; hashed in version 2." }),
    event_type: Type.String({ description: "Always `encrypted_claim`." }),
    payload: ClaimPayload,
    previous_hashes: Type.Array(Type.Object(Digest), { description: "Of the previous entry; empty for the first." }),
    entry_hashes: EntryDigests,
  },
  { title: "ClaimEntry" },
);

export const ClaimPage = pageOf(
  { entries: Type.Array(ClaimEntry, { description: "Oldest first; empty when there is none." }) },
  "ClaimPage",
);

export const ClaimQuery = Type.Object({
  lookup_key: Type.String({
    minLength: 1,
    maxLength: 128,
    description: "The lookup key of the claims, in either case. Whoever knows it may see them.",
  }),
  ...PAGE_QUERY,
});

export const ClaimParams = Type.Object({ entry_id: EntryId });

export const RevealClaim = Type.Object(
  {
    plaintext: Type.Object({}, { description: "Bytes as `{data: base64}`. Used for the comparison and not kept." }),
    commitment_key: Type.Optional(nullable(Type.String({ description: "64 hexadecimal characters; not kept." }))),
  },
  {
    title: "RevealClaim",
    description: "What the claim is said to hold. It is compared and not kept; checking it offline discloses nothing.",
  },
);

export const Revealed = Type.Object(
  { valid: Type.Boolean({ description: "Whether the claim commits to the plaintext." }) },
  { title: "Revealed" },
);
