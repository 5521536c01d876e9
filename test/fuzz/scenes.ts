/**
 * The parts of a valid request that a schema cannot describe: signatures, proofs, and a subject that no earlier request
 * has used. They are listed by operation. For all others the schema and `World.hints` are enough.
 */
import { randomUUID } from "node:crypto";
import type { Random } from "../reliability/random.js";
import {
  canonical,
  newManifest,
  newSigner,
  registration,
  sha256,
  submission,
  type TestSigner,
} from "../server/signers.js";
import { newRecipient, seal } from "../verify/claims/ecies.js";
import type { Actor, World } from "./world.js";

/** Parts of a request; absent parts are generated from the schema. */
export interface Valid {
  readonly body?: unknown;
  /** Parameters of the path and of the query. */
  readonly params?: Readonly<Record<string, unknown>>;
  /** The session token, if the request needs a session. */
  readonly token?: string;
}

type Scene = (world: World, actor: Actor, random: Random) => Promise<Valid> | Valid;

const recipient = newRecipient();
const CATEGORY = "x-service:human_attestation";

/** The members of a submission by which its key names itself. */
function naming({ fingerprint, sign }: TestSigner) {
  const pseudonym = "Named";
  const statement = { action: "service.key.register.v1", expiration_date: null, fingerprint, pseudonym };
  return { pseudonym, possession_signature: sign(canonical(statement)) };
}

/** A new endorsement between two new keys. */
async function endorsed(world: World, accepted: boolean) {
  const { service } = world;
  const [endorser, subject] = [await world.register(), await world.register()];
  const pair = { endorser_fingerprint: endorser.fingerprint, endorsed_fingerprint: subject.fingerprint };
  const offer = { ...pair, category: CATEGORY, auth: await service.proof(endorser) };
  const { id } = await service.send("/endorsements/offer", offer);
  const acceptance = { offer_entry_id: id, endorsed_fingerprint: subject.fingerprint };
  if (accepted) await service.send("/endorsements/accept", { ...acceptance, auth: await service.proof(subject) });
  return { endorser, subject, pair, id, acceptance };
}

/** A new account on a new key. */
async function account(world: World) {
  const { fingerprint: key_fingerprint } = await world.register();
  const named = { display_name: `Holder ${randomUUID()}`, email: "holder@example.org" };
  const credential = { credential_type: "software", device_label: "a", key_fingerprint };
  const { recovery_key } = await world.service.send("/users", { ...named, ...credential }, { status: 201 });
  return { pseudonym: named.display_name, recovery_key, credential };
}

async function request(world: World) {
  const [requester, target] = world.actors as [Actor, Actor];
  const body = {
    target_fingerprint: target.signer.fingerprint,
    attestation_type: "authorship",
    nonce: randomUUID(),
    claims: { n: 1 },
  };
  const { request_id } = await world.service.send("/log/attestation-requests", body, { token: requester.token });
  return { request_id, target };
}

const parts = () => [1, 2].map((n) => ({ title: `Part ${n}`, content_hash: newManifest().document.content_hash }));

export const SCENES: Readonly<Record<string, Scene>> = {
  "POST /api/v1/attestations": (_, { signer }, random) => ({
    body: {
      ...submission(signer, random.chance(0.5) ? newManifest() : ({ ...newManifest(), extra: { n: 1 } } as never)),
      ...(random.chance(0.3) ? naming(signer) : {}),
    },
  }),
  "POST /api/v1/attestations/batch": async (world, actor, random) => {
    const submissions: unknown[] = Array.from({ length: random.below(4) + 1 }, () => submission(actor.signer));
    if (random.chance(0.3)) submissions.push(submissions[0]);
    if (random.chance(0.3)) submissions.push({ ...submission(actor.signer), auth: await world.proof(actor) });
    return { body: { submissions }, ...(random.chance(0.3) ? { token: actor.token } : {}) };
  },
  "POST /api/v1/documents/sign": (_, { signer }) => {
    const { content_hash } = newManifest().document;
    return { body: { title: "A", content_hash, public_key_pem: signer.publicKey, tags: ["a"] } };
  },
  "POST /api/v1/verify": (_, { signer }) => {
    const manifest = newManifest();
    const { content_hash } = manifest.document;
    const attestation = {
      id: "1",
      type: "authorship",
      scope: { content_hash },
      signer_key_fingerprint: signer.fingerprint,
      signature_algorithm: signer.algorithm,
      signature: signer.sign(canonical(manifest)),
      timestamp: new Date().toJSON(),
    };
    const body = { manifest: { ...manifest, attestations: [attestation] }, source_hash: content_hash };
    return { body: { ...body, trust_config: { minimum_threshold: 0.5 } } };
  },
  "POST /api/v1/keys/register": (_, __, random) => ({
    body: registration(newSigner(random.pick(["ed25519", "ecdsa-p256"]))),
  }),
  "POST /api/v1/keys/succeed": async (world) => {
    const [old, next] = [await world.register(), newSigner()];
    const payload = {
      old_fingerprint: old.fingerprint,
      new_public_key: next.publicKey,
      new_algorithm: next.algorithm,
      new_key_signature: next.sign(`service.key.succession.v1:${old.fingerprint}:${next.fingerprint}`),
    };
    return { body: { payload, auth: await world.service.proof(old) } };
  },
  "POST /api/v1/keys/revoke": async (world) => {
    const { fingerprint, ...signer } = await world.register();
    return { body: { payload: { fingerprint }, auth: await world.service.proof({ fingerprint, ...signer }) } };
  },
  "POST /api/v1/auth/login": async (world, actor) => ({ body: await world.proof(actor) }),
  "POST /api/v1/auth/password": async (world) => ({
    body: { ...(await world.service.proof(await world.register())), password: "correct horse" },
  }),
  "POST /api/v1/users": async (world) => {
    const { fingerprint } = await world.register();
    const named = { display_name: `Holder ${randomUUID()}`, email: "holder@example.org" };
    return { body: { ...named, credential_type: "software", device_label: "a", key_fingerprint: fingerprint } };
  },
  "POST /api/v1/users/recover": async (world) => {
    const { pseudonym, recovery_key, credential } = await account(world);
    const { fingerprint } = await world.register();
    return { body: { pseudonym, recovery_key, ...credential, key_fingerprint: fingerprint } };
  },
  "POST /api/v1/credentials/enroll": async (world) => {
    const [issuer] = world.actors as [Actor];
    const signer = await world.register();
    const named = { issuing_fingerprint: issuer.signer.fingerprint, key_fingerprint: signer.fingerprint };
    const { challenge_id, challenge_signature } = await world.service.proof(signer);
    const chain = { action: "service.credential.enroll.v1", challenge_id, ...named };
    const signatures = { challenge_id, challenge_signature, chain_signature: issuer.signer.sign(canonical(chain)) };
    return { body: { ...named, ...signatures, credential_type: "hardware", device_label: "a" } };
  },
  "POST /api/v1/endorsements/offer": async (world) => {
    const [endorser, subject] = [await world.register(), await world.register()];
    const pair = { endorser_fingerprint: endorser.fingerprint, endorsed_fingerprint: subject.fingerprint };
    const more = { category: CATEGORY, valid_until: "2099-01-01", institutional_metadata: { name: "ACME" } };
    return { body: { ...pair, ...more, auth: await world.service.proof(endorser) } };
  },
  "POST /api/v1/endorsements/accept": async (world) => {
    const { subject, acceptance } = await endorsed(world, false);
    return { body: { ...acceptance, auth: await world.service.proof(subject) } };
  },
  "POST /api/v1/endorsements/withdraw": async (world) => {
    const { endorser, pair, id } = await endorsed(world, false);
    const body = { ...pair, original_offer_entry_id: id, note: "a mistake" };
    return { body: { ...body, auth: await world.service.proof(endorser) } };
  },
  "POST /api/v1/endorsements/revoke-acceptance": async (world) => {
    const { subject, id } = await endorsed(world, true);
    const body = { endorsed_fingerprint: subject.fingerprint, original_offer_entry_id: id, note: "no" };
    return { body: { ...body, auth: await world.service.proof(subject) } };
  },
  "POST /api/v1/endorsements/revocation-alert": async (world) => {
    const { endorser, subject } = await endorsed(world, true);
    const pair = { endorser_fingerprint: endorser.fingerprint, compromised_fingerprint: subject.fingerprint };
    return { body: { ...pair, reason: "stolen", evidence: "a letter", auth: await world.service.proof(endorser) } };
  },
  "POST /api/v1/trust-configs": (_, { token, signer: { fingerprint } }) => ({
    body: { fingerprint, direct_signer_anchors: [{ fingerprint, weight: 1 }], minimum_threshold: 0.5 },
    token,
  }),
  "POST /api/v1/trust-configs/revoke": async (world, { token, signer: { fingerprint } }) => {
    const config = { fingerprint, direct_signer_anchors: [{ fingerprint, weight: 1 }], minimum_threshold: 0.5 };
    await world.service.send("/trust-configs", config, { token });
    return { body: { fingerprint }, token };
  },
  "GET /api/v1/trust-configs/{fingerprint}": async (world, { token, signer: { fingerprint } }) => {
    const config = { fingerprint, direct_signer_anchors: [], endorser_anchors: [], minimum_threshold: 0.5 };
    await world.service.send("/trust-configs", config, { token });
    return { params: { fingerprint }, token };
  },
  "POST /api/v1/composite/assemble": () => ({ body: { title: "A volume", parts: parts() } }),
  "POST /api/v1/composite/compile": () => {
    const [title, made] = ["A volume", parts()];
    const composite_hash = sha256(canonical({ parts: made.map(({ content_hash }) => content_hash), title }));
    return { body: { composite: { title, parts: made, composite_hash } } };
  },
  "POST /api/v1/claims": (world, __, random) => ({
    body: { payload: seal({ a: random.below(9) }, recipient.point).payload },
    token: world.actors[0]!.token,
  }),
  "POST /api/v1/claims/{entry_id}/reveal": async (world) => {
    const { token } = world.actors[0]!;
    const { payload, commitmentKey } = seal({ a: 1 }, recipient.point);
    const { entry_id } = await world.service.send("/claims", { payload }, { token });
    return { params: { entry_id }, body: { plaintext: { a: 1 }, commitment_key: commitmentKey }, token };
  },
  "POST /api/v1/log/attestation-requests": (world, { token, signer }) => ({
    body: {
      target_fingerprint: signer.fingerprint,
      attestation_type: "authorship",
      nonce: randomUUID(),
      claims: { n: 1 },
    },
    token: token || world.operatorToken,
  }),
  "POST /api/v1/log/attestation-requests/{request_id}/respond": async (world) => {
    const { request_id, target } = await request(world);
    return { params: { request_id }, body: { decision: "decline", reason: "no" }, token: target.token };
  },
  "POST /api/v1/log/request-policies": (_, { token, signer: { fingerprint } }, random) => ({
    body: {
      target_fingerprint: fingerprint,
      predicates: { not: { any: [{ field: "claims.fee", op: "lt", value: random.below(9) }] } },
      default_action_on_failure: random.pick(["allow", "hold", "decline"]),
    },
    token,
  }),
  "GET /api/v1/log/attestation-requests": (_, { signer: { fingerprint } }) => ({ params: { requester: fingerprint } }),
  "GET /tlog/tile/{level}/{n1}": () => ({ params: { level: "entries", n1: "000" } }),
  "GET /tlog/tile/{level}/{n1}/{n2}": () => ({ params: { level: 0, n1: "000.p", n2: 2 } }),
  "GET /api/v1/log/audit-trail": (_, { signer: { fingerprint } }) => ({ params: { fingerprint } }),
  "POST /api/v1/inbox/{id}/read": async (world) => {
    const { target } = await request(world);
    const path = "/inbox?unread=true";
    const { notifications } = await world.service.send(path, null, { token: target.token, method: "GET" });
    return { params: { id: notifications[0].id }, token: target.token };
  },
  "DELETE /api/v1/webhooks/{webhook_id}": async (world, { token }) => {
    const { id } = await world.service.send("/webhooks", { url: "https://example.org/hook" }, { token });
    return { params: { webhook_id: id }, token };
  },
};
