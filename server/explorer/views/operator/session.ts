/** The operator's session. It is only in this page's memory, so that it ends with the page. */
import Type from "typebox";
import { fitsSchema } from "../../../../engine/contract/check.js";
import { LoginResult } from "../../../../engine/contract/identity/auth.js";
import { WebhookList } from "../../../../engine/contract/webhooks.js";
import { decodeBase64, parsePublicKey } from "../../../../engine/verify/index.js";
import type { Session } from "../../../client/index.js";
import { Cell } from "../../state/cell.js";
import { client, clientOf, http } from "../../state/service.js";
import { readKeyFile } from "./keyfile.js";

/** A session is renewed when less than this remains. */
const RENEW_BEFORE_MS = 300_000;

/** The operator's session, and whether it only reads. */
interface OperatorSession extends Pick<Session, "token" | "expires_at"> {
  readonly readOnly: boolean;
}

export const session = new Cell<OperatorSession | null>(null);

/** What the page reads of a token; the service verifies it. */
const Claims = Type.Object({ sub: Type.String(), exp: Type.Integer(), read_only: Type.Literal(true) });

/**
 * Begins a session with a token that only reads (`cairnlog operator token --read-only`), which the service accepts.
 * @throws Error with a sentence for a text that is no such token; ClientError
 */
export async function openWithToken(text: string): Promise<void> {
  const token = text.trim();
  const claims = claimsOf(token);
  if (!fitsSchema(Claims, claims)) throw new Error("This is no token of `cairnlog operator token --read-only`.");
  const { current: operator } = await client.log.operators();
  if (claims.sub !== operator.fingerprint) throw new Error("This token is not one of this log's operator key.");
  const begun = { token, expires_at: new Date(claims.exp * 1000).toISOString(), readOnly: true };
  await http.get(WebhookList, "/webhooks", {}, header(begun));
  session.value = begun;
}

function claimsOf(token: string): unknown {
  const body = token.split(".")[1]?.replaceAll("-", "+").replaceAll("_", "/") ?? "";
  const bytes = decodeBase64(body.padEnd(Math.ceil(body.length / 4) * 4, "="));
  try {
    return bytes && JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

/**
 * Signs in with the operator key. Only the session is kept, not the key.
 * @throws Error with a sentence for a file that is not the operator key; ClientError
 */
export async function signIn(file: File, password: string): Promise<void> {
  const signer = await readKeyFile(file);
  const { fingerprint } = parsePublicKey(signer.publicKeyPem);
  const { current: operator } = await client.log.operators();
  if (fingerprint !== operator.fingerprint)
    throw new Error(`This is the key ${fingerprint}, not the operator key of this log.`);
  session.value = { ...(await clientOf(signer).login(password || undefined)), readOnly: false };
}

export function signOut(): void {
  session.value = null;
}

/** The header of the session, which is renewed if it ends soon. @throws ClientError */
export async function bearer(): Promise<{ readonly authorization: string }> {
  const current = session.value;
  if (!current || current.readOnly || Date.parse(current.expires_at) - Date.now() >= RENEW_BEFORE_MS)
    return header(current);
  const renewed = { ...(await http.post(LoginResult, "/auth/renew", {}, header(current))), readOnly: false };
  // Who has signed out meanwhile stays signed out.
  if (session.value === current) session.value = renewed;
  return header(renewed);
}

const header = (current: Pick<Session, "token"> | null) => ({ authorization: `Bearer ${current?.token ?? ""}` });
