/** Authentication: challenges, sessions, passwords, and the proof that write routes accept instead of a session. */
import Type from "typebox";
import { MAX_CHALLENGE_ID_CHARACTERS, PASSWORD } from "../../verify/keys/contract.js";
import { bounded, Fingerprint, nullable, optional, Pseudonym, Timestamp } from "../common.js";

const ChallengeId = Type.String({ description: "From POST /auth/challenge." });

const ChallengeSignature = Type.String({
  description: "Base64: signature by the challenged key over the nonce in UTF-8.",
});

const Act = Type.String({
  pattern: "^[0-9a-f]{64}$",
  description:
    "The one request that the proof is for: SHA-256 in hexadecimal of the RFC 8785 canonical JSON of an object with the " +
    "members body, method and path (from `/api/v1` on). The body is without `auth`; where the signed challenge is at its " +
    "top, it is without `challenge_id`, `challenge_signature` and `chain_signature`.",
});

export const ChallengeRequest = Type.Object(
  {
    fingerprint: Fingerprint,
    recovery: Type.Optional(Type.Boolean({ description: "True for an expired key, and only then. Default: false." })),
    act: optional(Act),
    purpose: Type.Optional(
      Type.Enum(["general", "login"], {
        description: "`login` is only for POST /auth/login; `general`, the default, is also a proof for a write.",
      }),
    ),
  },
  { title: "ChallengeRequest", description: "The key to prove, and the purpose." },
);

export const Challenge = Type.Object(
  {
    challenge_id: bounded({ min: 0, max: MAX_CHALLENGE_ID_CHARACTERS }, "To be sent back."),
    nonce: Type.String({
      description:
        "`service.auth.v1:<purpose>:<fingerprint>:<43 base64url characters>`: these are 16 random bytes, then the first " +
        "16 bytes of a SHA-256 over lines, each ended by a line feed: `service.auth.v1`, origin, purpose, fingerprint, " +
        "the random bytes in base64url, act (or nothing). Compute them again with the origin that you know the service " +
        "by, and sign no other text.",
    }),
    expires_at: Timestamp,
    origin: Type.String({
      description: "The origin of the service, to which the nonce is bound: `https://log.example`.",
    }),
    act: nullable(Act),
  },
  { title: "Challenge" },
);

/** A challenge as any version of the service answers it: the older ones do not say for which service it is. */
export const AnyChallenge = Type.Object({
  challenge_id: Type.String(),
  nonce: Type.String(),
  origin: Type.Optional(Type.String()),
});

export const Login = Type.Object(
  {
    challenge_id: ChallengeId,
    challenge_signature: ChallengeSignature,
    password: optional(Type.String({ description: "Required if the key has a password." })),
  },
  { title: "Login", description: "The signed challenge, and the password of a key that has one." },
);

export const LoginResult = Type.Object(
  {
    token: Type.String({ description: "JWT, for `Authorization: Bearer`." }),
    fingerprint: Fingerprint,
    pseudonym: Pseudonym,
    expires_at: Timestamp,
  },
  { title: "LoginResult" },
);

/** A signed challenge at the top of a body. */
export const SignedChallenge = Type.Object({
  challenge_id: ChallengeId,
  challenge_signature: ChallengeSignature,
});

export const AuthProof = Type.Object(
  {
    challenge_id: ChallengeId,
    challenge_signature: ChallengeSignature,
    recovery: Type.Optional(Type.Boolean({ description: "Whether the challenge was requested with `recovery`." })),
  },
  { title: "AuthProof", description: "A challenge for this one write, signed by the key that acts." },
);

/** The member `auth` of a body. Absent or null if the request has a session. */
export const AUTH = { auth: optional(AuthProof) };

export const SetPassword = Type.Object(
  {
    challenge_id: ChallengeId,
    challenge_signature: ChallengeSignature,
    password: bounded(PASSWORD, "Counted in its normal form, NFKC."),
    current_password: optional(Type.String({ description: "Required if the key already has a password." })),
  },
  { title: "SetPassword", description: "The signed challenge and the new password." },
);

export const PasswordSet = Type.Object(
  { fingerprint: Fingerprint, password_set: Type.Literal(true, { description: "Always true." }) },
  { title: "PasswordSet" },
);
