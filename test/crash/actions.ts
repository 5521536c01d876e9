/**
 * The actions of the load: valid, repeated and invalid requests to every route that writes. Acknowledged changes are
 * added to the ledger.
 */
import { randomUUID } from "node:crypto";
import type { Random } from "../reliability/random.js";
import { canonical, newManifest, newSigner, registration, submission, type TestSigner } from "../server/signers.js";
import { newRecipient, seal } from "../verify/claims/ecies.js";
import type { Connection } from "./connection.js";
import type { Ledger, Receipt } from "./ledger.js";

const HUMAN = "x-service:human_attestation";
const PASSWORD = "correct horse battery staple";
/** Number of submissions that are kept to be sent again, in this round or in a later one. */
const REMEMBERED = 500;

const recipient = newRecipient();

/** The state that workers share over all rounds. */
export interface Scene {
  readonly ledger: Ledger;
  /** The key whose attestations the webhook receives. */
  readonly watched: TestSigner;
  readonly submitted: { readonly body: object; readonly receipt: Receipt }[];
  readonly hookUrl: string;
  operator: TestSigner | null;
}

/** A key with a session, whose hardware-backed account may post claims. */
export interface Actor {
  readonly signer: TestSigner;
  readonly token: string;
}

/** The input of an action. */
export interface Work {
  readonly scene: Scene;
  readonly ledger: Ledger;
  readonly service: Connection;
  readonly random: Random;
  readonly alice: Actor;
  readonly bob: Actor;
}

type Action = (work: Work) => Promise<void>;

export async function register(
  { ledger, service }: Pick<Work, "ledger" | "service">,
  signer = newSigner(),
): Promise<TestSigner> {
  const receipt = await service.send("/keys/register", registration(signer));
  ledger.add(receipt, { fingerprint: signer.fingerprint });
  ledger.holds("keys", signer.fingerprint, { public_key: signer.publicKey });
  return signer;
}

const accountOf = (signer: TestSigner, credential_type = "software") => ({
  display_name: `Holder ${randomUUID()}`,
  email: "holder@example.org",
  credential_type,
  key_fingerprint: signer.fingerprint,
  device_label: "a token",
});

let recovering: ReturnType<Connection["send"]> = Promise.resolve({});

export async function openAccount(
  { ledger, service }: Pick<Work, "ledger" | "service">,
  signer: TestSigner,
  type?: string,
) {
  const body = accountOf(signer, type);
  const { user, credential, recovery_key } = await service.send("/users", body, { status: 201 });
  ledger.holds("users", user.id, { display_name: body.display_name });
  ledger.holds("credentials", [user.id, credential.id], { status: "active" });
  return { body, user, credential, recovery_key };
}

/** Attests with `body` and records the answer. */
async function attest({ scene, ledger, service }: Work, body: ReturnType<typeof submission>, path = "/attestations") {
  const receipt = await service.send(path, body);
  const { content_hash: document_hash } = body.manifest.document;
  ledger.add(receipt, { document_hash, signer_key_fingerprint: receipt.fingerprint });
  if (receipt.fingerprint === scene.watched.fingerprint) ledger.told.push(receipt.log_entry_id);
  if (scene.submitted.length < REMEMBERED) scene.submitted.push({ body, receipt });
  return receipt;
}

function sameReceipt(service: Connection, answer: Receipt & { duplicate: boolean }, receipt: Receipt): void {
  const names = ["log_entry_id", "leaf_index", "entry_hash", "sth"] as const;
  const differs = names.filter((name) => JSON.stringify(answer[name]) !== JSON.stringify(receipt[name]));
  if (differs.length || !answer.duplicate)
    throw new Error(
      `${service.url}: sent again, entry ${receipt.log_entry_id} got another receipt: ${JSON.stringify(answer)}`,
    );
}

export const ACTIONS: Readonly<Record<string, Action>> = {
  attest: async (work) => {
    await attest(work, submission(work.random.chance(0.7) ? work.scene.watched : work.alice.signer));
  },

  // The registration is part of the same batch.
  attestByNewKey: async (work) => {
    const signer = newSigner(work.random.pick(["ed25519", "ed25519", "ecdsa-p256"]));
    await attest(work, submission(signer, newManifest(), { pseudonym: "New", intent_statement: "I wrote it." }));
    work.ledger.holds("keys", signer.fingerprint, { public_key: signer.publicKey });
  },

  attestAgain: async ({ scene, service, random }) => {
    if (!scene.submitted.length) return;
    const { body, receipt } = random.pick(scene.submitted);
    sameReceipt(service, await service.send("/attestations", body), receipt);
  },

  attestTwiceAtOnce: async (work) => {
    const body = submission(work.scene.watched);
    const [a, b] = await Promise.all([attest(work, body), work.service.send("/attestations", body)]);
    if (a.log_entry_id !== b.log_entry_id)
      throw new Error(`one attestation became ${a.log_entry_id} and ${b.log_entry_id}`);
  },

  attestWrongly: async ({ ledger, service, scene }) => {
    const manifest = newManifest();
    ledger.refused.add(manifest.document.content_hash);
    const body = { ...submission(scene.watched, manifest), signature: scene.watched.sign("something else") };
    await service.send("/attestations", body, { status: 422 });
  },

  signDocument: async (work) => {
    const { signer } = work.alice;
    const { content_hash } = newManifest().document;
    const document = { title: "A contract", content_hash, public_key_pem: signer.publicKey, tags: ["crash"] };
    const { signing_payload, manifest } = await work.service.send("/documents/sign", document);
    const signature = signer.sign(Buffer.from(signing_payload, "base64"));
    const receipt = await work.service.send("/documents/sign", { ...document, signature });
    work.ledger.add(receipt, { document_hash: manifest.document.content_hash, tags: ["crash"] });
  },

  register: async (work) => {
    const signer = await register(work);
    await work.service.send("/keys/register", registration(signer), { status: 409 });
  },

  registerWrongly: async ({ ledger, service }) => {
    const signer = newSigner();
    ledger.refused.add(signer.fingerprint);
    const body = registration(signer, "", {});
    await service.send("/keys/register", body, { status: 422 });
  },

  succeed: async (work) => {
    const { ledger, service } = work;
    const [old, next] = [await register(work), newSigner()];
    const payload = { old_fingerprint: old.fingerprint, new_public_key: next.publicKey, new_algorithm: next.algorithm };
    const auth = await service.proof(old);
    ledger.changing("keys", old.fingerprint);
    ledger.add(await service.send("/keys/succeed", { payload, auth }), { fingerprint: next.fingerprint });
    ledger.holds("keys", old.fingerprint, { status: "succeeded", successor_fingerprint: next.fingerprint });
    ledger.holds("keys", next.fingerprint, { status: "active", predecessor_fingerprint: old.fingerprint });
  },

  revoke: async (work) => {
    const { ledger, service } = work;
    const signer = await register(work);
    const auth = await service.proof(signer);
    ledger.changing("keys", signer.fingerprint);
    ledger.add(await service.send("/keys/revoke", { payload: { fingerprint: signer.fingerprint }, auth }));
    ledger.holds("keys", signer.fingerprint, { status: "revoked" });
    const manifest = newManifest();
    ledger.refused.add(manifest.document.content_hash);
    await service.send("/attestations", submission(signer, manifest), { status: 403 });
  },

  endorse: async (work) => {
    const { ledger, service, random } = work;
    const [endorser, endorsed] = [await register(work), await register(work)];
    const pair = { endorser_fingerprint: endorser.fingerprint, endorsed_fingerprint: endorsed.fingerprint };
    const write = async (path: string, signer: TestSigner, body: object) =>
      service.send(`/endorsements/${path}`, { ...body, auth: await service.proof(signer) });
    const took = (answer: { log_entry: { id: number; entry_hash: string } }) =>
      ledger.add({ log_entry_id: answer.log_entry.id, entry_hash: answer.log_entry.entry_hash });
    const offer = await write("offer", endorser, {
      ...pair,
      category: HUMAN,
      institutional_metadata: { name: "ACME" },
    });
    const { id } = offer;
    took({ log_entry: offer });
    ledger.holds("endorsements", id, { endorser_fingerprint: endorser.fingerprint });
    if (random.chance(0.2)) {
      took(await write("withdraw", endorser, { ...pair, original_offer_entry_id: id, note: "a mistake" }));
      ledger.holds("endorsements", id, { end_kind: "withdrawn" });
      return;
    }
    const { endorsed_fingerprint } = pair;
    took(await write("accept", endorsed, { offer_entry_id: id, endorsed_fingerprint }));
    if (random.chance(0.5)) {
      const { endorser_fingerprint } = pair;
      const alert = { endorser_fingerprint, compromised_fingerprint: endorsed_fingerprint, reason: "a stolen laptop" };
      took(await write("revocation-alert", endorser, alert));
    }
    if (random.chance(0.5)) {
      ledger.changing("endorsements", id);
      took(
        await write("revoke-acceptance", endorsed, { endorsed_fingerprint, original_offer_entry_id: id, note: "no" }),
      );
      ledger.holds("endorsements", id, { end_kind: "acceptance_revoked" });
    }
  },

  claim: async ({ ledger, service, random, alice }) => {
    const plaintext = { salary: random.below(1e6) };
    const { payload, commitmentKey } = seal(plaintext, recipient.point);
    const { token } = alice;
    const receipt = await service.send("/claims", { payload }, { token });
    ledger.add(receipt, { commitment: payload.commitment, ciphertext: payload.ciphertext });
    const reveal = { plaintext, commitment_key: commitmentKey };
    const { valid } = await service.send(`/claims/${receipt.entry_id}/reveal`, reveal, { token });
    if (valid !== true) throw new Error(`claim ${receipt.entry_id} does not open`);
  },

  request: async ({ ledger, service, random, alice, bob }) => {
    const target_fingerprint = bob.signer.fingerprint;
    const body = { target_fingerprint, attestation_type: "authorship", nonce: randomUUID(), claims: { n: 1 } };
    const request = await service.send("/log/attestation-requests", body, { token: alice.token });
    ledger.add(request, { nonce: body.nonce, target_fingerprint });
    await service.send("/log/attestation-requests", body, { token: alice.token, status: 409 });
    if (request.response) ledger.add(request.response, { request_id: request.request_id });
    else if (random.chance(0.8)) {
      const path = `/log/attestation-requests/${request.request_id}/respond`;
      const answer = await service.send(path, { decision: "decline", reason: "no" }, { token: bob.token });
      ledger.add(answer, { request_id: request.request_id, decision: "decline" });
    }
  },

  // This changes Alice's answers: from now on every request to her is declined at once.
  publishPolicy: async ({ ledger, service, alice, bob }) => {
    const policy = { predicates: { any: [] }, default_action_on_failure: "decline" };
    const { fingerprint: target_fingerprint } = alice.signer;
    ledger.add(await service.send("/log/request-policies", policy, { token: alice.token }), { target_fingerprint });
    const body = { target_fingerprint, attestation_type: "authorship", nonce: randomUUID() };
    const request = await service.send("/log/attestation-requests", body, { token: bob.token });
    ledger.add(request, { nonce: body.nonce });
    ledger.add(request.response, { request_id: request.request_id, decision: "decline" });
  },

  readInbox: async ({ ledger, service, bob: { signer, token } }) => {
    const { notifications } = await service.send("/inbox?unread=true", null, { token, method: "GET" });
    for (const { id } of notifications.slice(0, 2)) {
      await service.send(`/inbox/${id}/read`, {}, { token });
      ledger.holds("notifications", [signer.fingerprint, id], { read: true });
    }
  },

  subscribe: async ({ ledger, service, random, scene, alice: { token, signer } }) => {
    const body = { url: `${scene.hookUrl}s`, events: ["key.revoked"], key_fingerprint: signer.fingerprint };
    const { id } = await service.send("/webhooks", body, { token });
    ledger.holds("webhooks", id, { owner_fingerprint: signer.fingerprint });
    if (random.chance(0.98)) {
      ledger.changing("webhooks", id);
      await service.send(`/webhooks/${id}`, null, { token, method: "DELETE" });
      ledger.lacks("webhooks", id);
    }
  },

  account: async (work) => {
    const { ledger, service, random } = work;
    const { body, user, credential, recovery_key } = await openAccount(work, await register(work));
    await service.send("/users", { ...body, key_fingerprint: (await register(work)).fingerprint }, { status: 409 });
    if (random.chance(0.5)) return;
    const { display_name: _, email: __, ...replacement } = accountOf(await register(work));
    ledger.changing("credentials", [user.id, credential.id]);
    const recovery = { pseudonym: body.display_name, recovery_key, ...replacement };
    const recover = () => service.send("/users/recover", recovery);
    // A try counts as wrong until it has been judged, and one address has only five.
    recovering = recovering.then(recover, recover);
    const recovered = await recovering;
    ledger.holds("credentials", [user.id, credential.id], { status: "revoked" });
    ledger.holds("credentials", [user.id, recovered.credential.id], { status: "active" });
  },

  enroll: async (work) => {
    const { ledger, service, alice } = work;
    const signer = await register(work);
    const { challenge_id, challenge_signature } = await service.proof(signer);
    const [issuing_fingerprint, key_fingerprint] = [alice.signer.fingerprint, signer.fingerprint];
    const chain = { action: "service.credential.enroll.v1", challenge_id, issuing_fingerprint, key_fingerprint };
    const { credential } = await service.send("/credentials/enroll", {
      issuing_fingerprint,
      key_fingerprint,
      device_label: "another token",
      credential_type: "hardware",
      challenge_id,
      challenge_signature,
      chain_signature: alice.signer.sign(canonical(chain)),
    });
    ledger.holds("credentialKeys", key_fingerprint, { credential_id: credential.id });
  },

  setPassword: async (work) => {
    const { ledger, service } = work;
    const signer = await register(work);
    await service.send("/auth/password", { ...(await service.proof(signer)), password: PASSWORD });
    ledger.holds("passwords", signer.fingerprint, {});
    await service.send("/auth/login", await service.proof(signer), { status: 403 });
    await service.login(signer, { password: PASSWORD });
  },

  trustConfig: async ({ ledger, service, random, alice: { token, signer }, bob }) => {
    const { fingerprint } = signer;
    const anchors = [{ fingerprint: bob.signer.fingerprint, weight: 0.5 }];
    const body = { fingerprint, direct_signer_anchors: anchors, minimum_threshold: 0.3 };
    await service.send("/trust-configs", body, { token });
    // Another worker may store one for the same key: only that there is one is certain.
    ledger.holds("trustConfigHeads", fingerprint, {});
    if (random.chance(0.5)) await service.send("/trust-configs/revoke", { fingerprint }, { token });
  },

  // Of an attestation that nobody sends again, with a title that nothing else has.
  withhold: async ({ ledger, service, scene, random, alice }) => {
    const title = Array.from({ length: 16 }, () => String.fromCharCode(0x61 + random.below(26))).join("");
    const body = submission(alice.signer, newManifest(title));
    const receipt = await service.send("/attestations", body);
    const { content_hash: document_hash } = body.manifest.document;
    ledger.add(receipt, { document_hash, signer_key_fingerprint: receipt.fingerprint });
    const token = await service.login(scene.operator!);
    const { log_entry_id: id } = receipt;
    ledger.asked.set(id, title);
    const said = { reason: "An order." };
    ledger.add(await service.send(`/log/${id}/withhold`, said, { token }), { entry_id: id, ...said });
    ledger.withheld.add(id);
  },

  anchor: async ({ ledger, service, scene }) => {
    const token = await service.login(scene.operator!);
    const { anchored_entry_id } = await service.send("/log/anchor", {}, { token });
    ledger.holds("anchors", anchored_entry_id - 1, { status: "pending" });
    await service.send("/log/sth/sign", {}, { token });
  },
};
