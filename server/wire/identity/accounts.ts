/** Accounts and their credentials. */
import Type from "typebox";
import { CREDENTIAL_TYPES } from "../../../engine/verify/contract.js";
import { Fingerprint, nullable, Timestamp } from "../common.js";

export const CredentialType = Type.Enum(CREDENTIAL_TYPES, { description: "Where the key is kept." });

const CREDENTIAL_INPUT = {
  credential_type: CredentialType,
  key_fingerprint: Type.String({ description: "Of a registered, active key that is on no other account." }),
  device_label: Type.String({ description: "1 to 100 characters." }),
  hardware_attestation: Type.Optional(
    nullable(
      Type.String({ description: "PEM certificates, that of the key first, up to one that a trusted root issued." }),
    ),
  ),
};

export const OpenAccount = Type.Object(
  {
    display_name: Type.String({
      description: "1 to 100 characters, no control characters; unique without regard to case.",
    }),
    email: Type.String({ description: "At most 254 octets. Kept off the log and never returned." }),
    ...CREDENTIAL_INPUT,
    possession_signature: Type.Optional(
      nullable(
        Type.String({
          description:
            "Base64, by the key over the RFC 8785 canonical JSON of an object with the members action " +
            "(`service.user.create.v1`), display_name, email and key_fingerprint, all as sent. Takes the key from an " +
            "account that somebody opened with it without this.",
        }),
      ),
    ),
  },
  { title: "OpenAccount", description: "The account, and the key that is to be its first credential." },
);

export const RecoverAccount = Type.Object(
  {
    pseudonym: Type.String({ description: "The display name, without regard to case." }),
    recovery_key: Type.String({ description: "Compared without regard to case and hyphens." }),
    ...CREDENTIAL_INPUT,
  },
  {
    title: "RecoverAccount",
    description: "The account, its recovery key, and the key that replaces every credential.",
  },
);

export const EnrollCredential = Type.Object(
  {
    issuing_fingerprint: Type.String({ description: "Of the enrolled key that vouches for the new one." }),
    ...CREDENTIAL_INPUT,
    challenge_id: Type.String({ description: "Of a challenge for the new key." }),
    challenge_signature: Type.String({ description: "Base64, the new key's, over the nonce of the challenge." }),
    chain_signature: Type.String({
      description:
        "Base64, the issuing key's, over the RFC 8785 canonical JSON of an object with the members action " +
        "(`service.credential.enroll.v1`), challenge_id, issuing_fingerprint and key_fingerprint, all as sent.",
    }),
  },
  {
    title: "EnrollCredential",
    description: "The new key, its answer to a challenge, and the signature of the key that vouches for it.",
  },
);

export const Credential = Type.Object(
  {
    id: Type.String({ description: "UUID." }),
    key_fingerprint: Fingerprint,
    credential_type: CredentialType,
    device_label: Type.String({ description: "As given." }),
    hardware_backed: Type.Boolean({ description: "Whether it is known, or believed, to be kept in hardware." }),
    status: Type.Enum(["active", "revoked"], { description: "Recovery revokes." }),
    created_at: Timestamp,
    revoked_at: nullable(Timestamp),
  },
  { title: "Credential" },
);

const OPENED = {
  user: Type.Object(
    {
      id: Type.String({ description: "UUID." }),
      display_name: Type.String({ description: "As given; the `pseudonym` that recovery takes." }),
      created_at: Timestamp,
    },
    { title: "User" },
  ),
  credential: Credential,
  recovery_key: Type.String({ description: "Shown this once and kept nowhere." }),
};

export const OpenedAccount = Type.Object(OPENED, { title: "OpenedAccount" });

export const RecoveredAccount = Type.Object(
  { ...OPENED, revoked_credentials: Type.Integer({ minimum: 0, description: "How many were active until now." }) },
  { title: "RecoveredAccount" },
);

export const Enrolled = Type.Object({ credential: Credential }, { title: "Enrolled" });
