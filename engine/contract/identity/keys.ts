/** The key registry. */
import Type from "typebox";
import { PSEUDONYM } from "../../verify/keys/contract.js";
import {
  Algorithm,
  bounded,
  EntryId,
  Fingerprint,
  FingerprintInPath,
  nullable,
  optional,
  PAGE_QUERY,
  PLACE,
  Pseudonym,
  PublicKeyPem,
  pageSchema,
  Timestamp,
  TRUNCATED,
} from "../common.js";
import { AUTH } from "./auth.js";

export const KeyStatus = Type.Enum(["active", "succeeded", "revoked", "expired"], {
  description: "Status of a key; only an active key can sign anything new.",
});

const SUMMARY = {
  fingerprint: Fingerprint,
  pseudonym: Pseudonym,
  algorithm: Algorithm,
  status: KeyStatus,
  registered_at: Timestamp,
  expires_at: nullable(Timestamp),
  named: Type.Boolean({
    description:
      "Whether the key has signed the entry that its name, expiration and predecessor come from. If not, anybody may " +
      "have recorded them, and the first such entry replaces them.",
  }),
};

export const KeySummary = Type.Object(SUMMARY, { title: "KeySummary" });

export const KeyPage = pageSchema(
  { keys: Type.Array(KeySummary, { description: "In order of registration." }), ...TRUNCATED },
  "KeyPage",
);

const SuccessorConfirmed = nullable(
  Type.Boolean({
    description: "Whether the successor has signed the succession. If not, it may be anybody's key, and gets no trust.",
  }),
);

export const KeyDetail = Type.Object(
  {
    ...SUMMARY,
    public_key: Type.String({ description: "PEM." }),
    log_entry_id: nullable(EntryId),
    successor_fingerprint: nullable(Fingerprint),
    successor_confirmed: SuccessorConfirmed,
    predecessor_fingerprint: nullable(Fingerprint),
    predecessor_confirmed: nullable(
      Type.Boolean({ description: "Whether this key has signed that it succeeds its predecessor." }),
    ),
    proven: Type.Boolean({
      description:
        "Whether an entry of the log contains a signature by this key, for example an attestation. `named` says more.",
    }),
  },
  { title: "KeyDetail" },
);

export const KeyStatusView = Type.Object(
  {
    fingerprint: Fingerprint,
    status: KeyStatus,
    expires_at: nullable(Timestamp),
    named: SUMMARY.named,
    successor_fingerprint: nullable(Fingerprint),
    successor_confirmed: SuccessorConfirmed,
  },
  { title: "KeyStatus" },
);

export const KeyParams = Type.Object({ fingerprint: FingerprintInPath });

export const KeySearchQuery = Type.Object({
  pseudonym: Type.String({ minLength: 1, description: "A part of the pseudonym; case is ignored." }),
  ...PAGE_QUERY,
});

export const RegisterKey = Type.Object(
  {
    payload: Type.Object(
      {
        public_key: PublicKeyPem,
        pseudonym: bounded(PSEUDONYM, "Display name, counted in NFC; no control characters."),
        key_algorithm: Algorithm,
        expiration_date: optional(Timestamp),
        possession_signature: optional(
          Type.String({
            description:
              "Base64, by the key over the RFC 8785 canonical JSON of an object with the members action " +
              "(`service.key.register.v1`), expiration_date, fingerprint and pseudonym, as sent, null where absent. " +
              "It proves possession of the key, and replaces what strangers recorded for it.",
          }),
        ),
      },
      { description: "The payload of the log entry." },
    ),
  },
  { title: "RegisterKey", description: "The key and its holder's name." },
);

export const KeyRegistered = Type.Object(
  {
    fingerprint: Fingerprint,
    pseudonym: Pseudonym,
    algorithm: Algorithm,
    ...PLACE,
  },
  { title: "KeyRegistered" },
);

export const SucceedKey = Type.Object(
  {
    payload: Type.Object(
      {
        old_fingerprint: Fingerprint,
        new_public_key: PublicKeyPem,
        new_algorithm: Algorithm,
        pseudonym: optional(bounded(PSEUDONYM, "Default: the pseudonym of the old key.")),
        expiration_date: optional(Timestamp),
        new_key_signature: optional(
          Type.String({
            description:
              "Base64: signature by the new key over `service.key.succession.v1:<old fingerprint>:<new fingerprint>`. It proves possession of the new key. Without it the link is not confirmed.",
          }),
        ),
      },
      { description: "The payload of the log entry." },
    ),
    ...AUTH,
    password: optional(
      Type.String({ description: "Required if the old key has a password, unless the proof is a session." }),
    ),
  },
  {
    title: "SucceedKey",
    description: "The old key, the new one, and a proof of the old one unless there is a session.",
  },
);

export const KeySucceeded = Type.Object(
  { old_fingerprint: Fingerprint, new_fingerprint: Fingerprint, ...PLACE },
  { title: "KeySucceeded" },
);

export const RevokeKey = Type.Object(
  { payload: Type.Object({ fingerprint: Fingerprint }, { description: "The payload of the log entry." }), ...AUTH },
  { title: "RevokeKey", description: "The key, and a proof of the key unless there is a session." },
);

export const KeyRevoked = Type.Object(
  {
    fingerprint: Fingerprint,
    status: Type.Literal("revoked", { description: "A revoked key never becomes active again." }),
    ...PLACE,
  },
  { title: "KeyRevoked" },
);
