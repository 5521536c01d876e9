/** The operator's session. It is only in this page's memory, so that it ends with the page. */
import { parsePublicKey } from "../../../../engine/verify/index.js";
import type { Session } from "../../../client/index.js";
import { LoginResult } from "../../../wire/identity/auth.js";
import { Cell } from "../../state/cell.js";
import { client, clientOf, http } from "../../state/service.js";
import { readKeyFile } from "./keyfile.js";

/** A session is renewed when less than this remains. */
const RENEW_BEFORE_MS = 300_000;

export const session = new Cell<Session | null>(null);

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
  session.value = await clientOf(signer).login(password || undefined);
}

export function signOut(): void {
  session.value = null;
}

/** The header of the session, which is renewed if it ends soon. @throws ClientError */
export async function bearer(): Promise<{ readonly authorization: string }> {
  const current = session.value;
  if (current && Date.parse(current.expires_at) - Date.now() < RENEW_BEFORE_MS)
    session.value = await http.post(LoginResult, "/auth/renew", {}, header(current));
  return header(session.value);
}

const header = (current: Session | null) => ({ authorization: `Bearer ${current?.token ?? ""}` });
