/** The operator as a client of the service that writes the log. */
import type { OperatorKey } from "../../../engine/crypto/signer/operator-key.js";
import { type Client, createClient } from "../../client/index.js";

/** @param publicOrigin how the service is known, where it has another address */
export function operatorClient(server: string, publicOrigin: string | undefined, key: OperatorKey): Client {
  const { pem: publicKeyPem, algorithm } = key.public;
  const sign = async (bytes: Uint8Array) => (await key.sign([bytes]))[0]!;
  return createClient({
    server,
    publicOrigin,
    operatorKey: publicKeyPem,
    signer: { publicKeyPem, algorithm, sign },
  });
}
