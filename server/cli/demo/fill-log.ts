/**
 * What happens in the demonstration: five people register keys, endorse each other, attest documents, ask for reviews, and
 * one leaves a claim that only another can read. All of it goes over HTTP, like anybody's.
 */

import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generatePrivateKey, privateKey, signSync } from "../../../engine/crypto/keys/signatures.js";
import { writeKeyFile } from "../../../engine/crypto/signer/operator-key.js";
import { deriveLookupKey, encryptClaim } from "../../../engine/verify/claims/claims.js";
import { type KeyAlgorithm, parsePublicKey } from "../../../engine/verify/index.js";
import { type AttestOptions, type Client, createClient, memoryStore } from "../../client/index.js";

// The people of the demonstration: each has a key in a file, and a client that signs with it.

interface Person {
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
function newPerson(
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

/** Files that are attested, and what is in them. */
const DOCUMENTS = {
  "notes.txt":
    "Notes on the engine\n\nThe engine weaves algebraic patterns just as the loom weaves flowers and leaves.\n",
  "compiler.txt": "A compiler\n\nIt is easier to ask forgiveness than it is to get permission.\n",
  "machines.txt":
    "Computing machinery\n\nWe can only see a short distance ahead, but we can see plenty there that needs to be done.\n",
} as const;
type DocumentName = keyof typeof DOCUMENTS;

/** The document of which the demonstration has a changed copy. */
const TAMPERED: DocumentName = "notes.txt";
const CHANGED_WORD = ["algebraic", "arithmetic"] as const;

interface People {
  readonly ada: Person;
  readonly grace: Person;
  readonly alan: Person;
  readonly joan: Person;
  /** Reads the claim; her key is on P-256, as claims need. */
  readonly mary: Person;
}

/** Makes everybody's keys in a folder. @param publicOrigin how the service is called, if that is not its address here */
export const newPeople = (folder: string, publicOrigin?: string): People => ({
  ada: newPerson(folder, "ada", "Ada Lovelace", publicOrigin),
  grace: newPerson(folder, "grace", "Grace Hopper", publicOrigin),
  alan: newPerson(folder, "alan", "Alan Turing", publicOrigin),
  joan: newPerson(folder, "joan", "Joan Clarke", publicOrigin),
  mary: newPerson(folder, "mary", "Mary Cartwright", publicOrigin, "ecdsa-p256"),
});

/** Fills the log of the service at `server`, and leaves documents and receipts in the folder. @throws ClientError */
export async function fillLog(server: string, folder: string, people: People): Promise<void> {
  const { ada, grace, alan, joan, mary } = people;
  for (const person of [ada, grace, alan, joan, mary])
    await person.at(server).keys.register({ pseudonym: person.name });
  await endorse(server, ada, grace);
  await endorse(server, ada, alan);
  await endorse(server, grace, joan);

  for (const [name, text] of Object.entries(DOCUMENTS)) writeFileSync(join(folder, name), text);
  mkdirSync(join(folder, "changed"));
  await attest(server, folder, ada, "notes.txt", { type: "authorship", intent: "I wrote these notes." });
  await attest(server, folder, grace, "compiler.txt", { type: "authorship" });
  await attest(server, folder, alan, "machines.txt", { type: "authorship" });
  const changed = DOCUMENTS[TAMPERED].replace(...CHANGED_WORD);
  writeFileSync(join(folder, "changed", TAMPERED), changed);

  await review(server, ada, grace, "notes.txt");
  const { request_id } = await alan.at(server).requests.create({
    target_fingerprint: joan.fingerprint,
    attestation_type: "peer_review",
    intent_statement: "Would you review machines.txt?",
    claims: { document: "machines.txt", pages: 28 },
  });
  const attestation_id = await review(server, alan, joan, "machines.txt");
  await joan.at(server).requests.respond(request_id, { decision: "accept", attestation_id });
  await leaveClaim(server, folder, people);
}

async function endorse(server: string, from: Person, to: Person): Promise<void> {
  const { entry } = await from.at(server).endorsements.offer({
    endorsed_fingerprint: to.fingerprint,
    category: "x-service:human_attestation",
  });
  await to.at(server).endorsements.accept(entry.id, "Thank you.");
}

const subjectOf = (name: DocumentName) => ({
  title: name,
  content_hash: `sha256:${createHash("sha256").update(DOCUMENTS[name]).digest("hex")}`,
  tags: ["demo"],
});

/** The author's receipt is kept beside the file, and beside the changed copy. */
async function attest(
  server: string,
  folder: string,
  author: Person,
  name: DocumentName,
  options: AttestOptions,
): Promise<void> {
  const { bundle } = await author.at(server).attest(subjectOf(name), options);
  const receipt = `${JSON.stringify(bundle, null, 2)}\n`;
  writeFileSync(join(folder, `${name}.attestation.json`), receipt);
  if (name === TAMPERED) writeFileSync(join(folder, "changed", `${name}.attestation.json`), receipt);
}

/** @returns the attestation's id */
async function review(server: string, author: Person, reviewer: Person, name: DocumentName): Promise<string> {
  const intent = `I have read what ${author.name} wrote.`;
  const { receipt } = await reviewer.at(server).attest(subjectOf(name), { type: "peer_review", intent });
  return receipt.attestation.id;
}

/** Grace leaves a claim that only Mary can read. Whoever posts claims has an account with a key in hardware. */
async function leaveClaim(server: string, folder: string, { grace, mary }: People): Promise<void> {
  const client = grace.at(server);
  await client.accounts.open({
    display_name: grace.name,
    email: "grace@example.org",
    credential_type: "hardware",
    device_label: "A key for the demonstration",
  });
  await client.login();
  const plaintext = { note: "The moth is in relay 70, panel F.", found: "1947-09-09" };
  const lookupKey = deriveLookupKey(randomBytes(32), "demo");
  const { payload } = encryptClaim(plaintext, { recipient: parsePublicKey(mary.publicKey), lookupKey });
  await client.claims.post({ ...payload });
  writeFileSync(join(folder, "claim.json"), `${JSON.stringify(payload, null, 2)}\n`);
}
