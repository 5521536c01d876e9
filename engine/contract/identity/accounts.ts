/** Accounts and their credentials. */
import Type from "typebox";
import { CREDENTIAL_TYPES, DEVICE_LABEL, DISPLAY_NAME, MAX_EMAIL_OCTETS, NAMING } from "../../verify/keys/contract.js";
import { bounded, Fingerprint, nullable, optional, Timestamp } from "../common.js";

const CredentialType = Type.Enum(CREDENTIAL_TYPES, { description: "Where the key is kept." });

const CREDENTIAL_INPUT = {
  credential_type: CredentialType,
  key_fingerprint: bounded(NAMING, "Fingerprint of a registered, active key that belongs to no other account."),
  device_label: bounded(DEVICE_LABEL, "Tells the account's keys apart; no control characters."),
  hardware_attestation: optional(
    Type.String({
      description: "PEM certificates. The first is for the key; a trusted root issued the last one.",
    }),
  ),
};

export const OpenAccount = Type.Object(
  {
    display_name: bounded(DISPLAY_NAME, "No control characters; unique, ignoring case."),
    email: bounded({ min: 1, max: MAX_EMAIL_OCTETS }, "Counted in octets. It is not in the log and never returned."),
    ...CREDENTIAL_INPUT,
    possession_signature: optional(
      Type.String({
        description:
          "Base64, by the key over the RFC 8785 canonical JSON of an object with the members action " +
          "(`service.user.create.v1`), display_name, email and key_fingerprint, all as sent. Takes the key from an " +
          "account that somebody opened with the key but without its signature.",
      }),
    ),
  },
  { title: "OpenAccount", description: "The account, and the key that becomes its first credential." },
);

export const RecoverAccount = Type.Object(
  {
    pseudonym: bounded(DISPLAY_NAME, "The display name; case is ignored."),
    recovery_key: Type.String({ description: "Case and hyphens are ignored." }),
    ...CREDENTIAL_INPUT,
  },
  {
    title: "RecoverAccount",
    description: "The account, its recovery key, and the key that replaces every credential.",
  },
);

export const EnrollCredential = Type.Object(
  {
    issuing_fingerprint: bounded(NAMING, "Fingerprint of the enrolled key that vouches for the new one."),
    ...CREDENTIAL_INPUT,
    challenge_id: bounded(NAMING, "Id of a challenge for the new key."),
    challenge_signature: Type.String({ description: "Base64: signature of the challenge's nonce by the new key." }),
    chain_signature: Type.String({
      description:
        "Base64: signature by the issuing key over the RFC 8785 canonical JSON of an object with the members action " +
        "(`service.credential.enroll.v1`), challenge_id, issuing_fingerprint and key_fingerprint, all as sent.",
    }),
  },
  {
    title: "EnrollCredential",
    description: "The new key, its answer to a challenge, and the signature of the key that vouches for it.",
  },
);

const Credential = Type.Object(
  {
    id: Type.String({ description: "UUID." }),
    key_fingerprint: Fingerprint,
    credential_type: CredentialType,
    device_label: Type.String({ description: "As given." }),
    hardware_backed: Type.Boolean({
      description:
        "Whether the key is in hardware: by an attestation or, if the operator trusts no roots, by declaration.",
    }),
    status: Type.Enum(["active", "revoked"], { description: "`revoked` after a recovery of the account." }),
    created_at: Timestamp,
    revoked_at: nullable(Timestamp),
  },
  { title: "Credential" },
);

const OPENED = {
  user: Type.Object(
    {
      id: Type.String({ description: "UUID." }),
      display_name: Type.String({ description: "The display name; recovery takes it as `pseudonym`." }),
      created_at: Timestamp,
    },
    { title: "User" },
  ),
  credential: Credential,
  recovery_key: Type.String({ description: "Shown only once and never stored." }),
};

export const OpenedAccount = Type.Object(OPENED, { title: "OpenedAccount" });

export const RecoveredAccount = Type.Object(
  {
    ...OPENED,
    revoked_credentials: Type.Integer({ minimum: 0, description: "Number of credentials that were active until now." }),
  },
  { title: "RecoveredAccount" },
);

export const Enrolled = Type.Object({ credential: Credential }, { title: "Enrolled" });
