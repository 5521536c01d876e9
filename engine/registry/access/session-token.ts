/**
 * Tokens of sessions: JSON Web Tokens (RFC 7519) that the operator key signs. Whoever holds that key can also make a token
 * for itself that only reads (`cairnlog operator token`), so that a browser need not be shown the key.
 */
import { randomUUID } from "node:crypto";
import { CairnlogError } from "../../base/error.js";
import type { OperatorKey } from "../../crypto/signer/operator-key.js";

/** JWS algorithm (RFC 7518 §3.1, RFC 8037 §3.1) for each algorithm of an operator key. */
export const JWS_ALGORITHMS = { ed25519: "EdDSA", "ecdsa-p256": "ES256", "rsa-2048": "RS256" } as const;

/** What a token says. Members that are undefined are left out. */
interface TokenClaims {
  /** Fingerprint of the key whose session it is. */
  readonly sub: string;
  /** Seconds since the epoch. */
  readonly iat: number;
  readonly exp: number;
  readonly pseudonym: string;
  readonly recovery: boolean;
  /** When the session began, in seconds since the epoch. */
  readonly auth_time: number;
  readonly password_version?: string | undefined;
  /** Whether it is good for GET alone. */
  readonly read_only?: true;
}

/** A token with these claims. @throws CairnlogError `signer-unavailable` */
export async function signedToken(operator: OperatorKey, claims: TokenClaims): Promise<string> {
  const header = { alg: JWS_ALGORITHMS[operator.public.algorithm], typ: "JWT" };
  const { sub, iat, exp, ...rest } = claims;
  const input = `${encode(header)}.${encode({ iss: operator.fingerprint, sub, iat, exp, jti: randomUUID(), ...rest })}`;
  try {
    const [signature] = await operator.sign([Buffer.from(input)]);
    return `${input}.${Buffer.from(signature!).toString("base64url")}`;
  } catch (cause) {
    throw new CairnlogError("signer-unavailable", "The operator key cannot sign, so there is no session.", { cause });
  }
}

/**
 * A token of the operator that reads what only the operator may read, and changes nothing. It ends when `exp` is reached, or
 * when the operator key is rotated.
 * @param now and exp in seconds since the epoch
 * @throws CairnlogError `signer-unavailable`
 */
export function readOnlyToken(operator: OperatorKey, now: number, exp: number): Promise<string> {
  const claims = { sub: operator.fingerprint, iat: now, exp, pseudonym: "operator", recovery: false, auth_time: now };
  return signedToken(operator, { ...claims, read_only: true });
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
