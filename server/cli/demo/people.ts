/** The people of the demonstration: each has a key in a file, and a client that signs with it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { generatePrivateKey, privateKey, signSync } from "../../../engine/crypto/keys/signatures.js";
import { writeKeyFile } from "../../../engine/crypto/signer/operator-key.js";
import type { KeyAlgorithm } from "../../../engine/verify/index.js";
import { type Client, createClient, memoryStore } from "../../client/index.js";

export interface Person {
  readonly name: string;
  readonly fingerprint: string;
  /** PEM of the public key. */
  readonly publicKey: string;
  /** A client of the service at this address that signs as this person. */
  at(server: string): Client;
}

/**
 * Makes a key pair in a folder: `ada.pem`, `ada.pub.pem`.
 * @param file the names of the two files, before their ends
 * @param publicOrigin how the service is called, if that is not its address here
 */
export function newPerson(
  folder: string,
  file: string,
  name: string,
  publicOrigin: string | undefined,
  algorithm: KeyAlgorithm = "ed25519",
): Person {
  const pem = generatePrivateKey(algorithm);
  const key = privateKey(pem);
  writeKeyFile(join(folder, `${file}.pem`), pem);
  writeFileSync(join(folder, `${file}.pub.pem`), key.public.pem);
  const signer = {
    publicKeyPem: key.public.pem,
    algorithm: key.public.algorithm,
    sign: async (bytes: Uint8Array) => signSync(key, bytes),
  };
  const clients = new Map<string, Client>();
  return {
    name,
    fingerprint: key.public.fingerprint,
    publicKey: key.public.pem,
    at(server) {
      const client = clients.get(server) ?? createClient({ server, signer, store: memoryStore(), publicOrigin });
      clients.set(server, client);
      return client;
    },
  };
}
