/** Every method of the client, each with the data that must exist before the call. */
import { randomUUID } from "node:crypto";
import { beginLog } from "#cairnlog/engine/log/operator/entries.js";
import {
  type AssembleComposite,
  type AttestedDocument,
  type AttestOptions,
  type Client,
  type ClientOptions,
  createClient,
} from "#cairnlog/server/client/index.js";
import { startTestService } from "../../server/harness.js";
import { newManifest, newSigner } from "../../server/signers.js";
import { all, asSigner, operatorSigner } from "../clients.js";
import { FILLING, HUMAN, OFFER, POLICY, type Somebody, type World } from "./world.js";

/** One call of a method. */
export interface Prepared {
  /** Options of the client; without a key, if absent. */
  readonly options?: Partial<ClientOptions>;
  /** Whether the client has not seen the log before. */
  readonly isNew?: boolean;
  readonly act: (client: Client) => Promise<unknown>;
}

/** By the name of the method, followed by the variant of the call if there are several. */
export type Steps = Readonly<Record<string, (world: World) => Promise<Prepared> | Prepared>>;

const by = ({ signer }: Somebody, act: Prepared["act"]): Prepared => ({ options: { signer }, act });

/** Acts with a session, so that signing in is not part of the call. */
async function signedIn({ client, signer }: Somebody, act: Prepared["act"]): Promise<Prepared> {
  return { options: { signer, session: await client.login() }, act };
}

/** Attests documents, none of which may be refused. */
async function attestAll(client: Client, documents: readonly AttestedDocument[], options: AttestOptions = {}) {
  const outcomes = await all(client.attestAll(documents, options));
  for (const { error } of outcomes) if (error) throw error;
  return outcomes;
}

const ENDING = { reason: "The year is over." };

/** The operator of a log of its own, which may end. */
async function ofAnother() {
  const { url: server, server: running } = await startTestService();
  const signer = operatorSigner(running.dataDir);
  return { server, signer, session: await createClient({ server, signer }).login() };
}

const READING: Steps = {
  health: () => ({ act: (client) => client.health() }),
  writers: () => ({ act: (client) => client.writers() }),
  verify: async ({ ada, document }) => {
    const { receipt, bundle } = await ada.client.attest(document, { type: "publication" });
    const manifest = { ...bundle.manifest, attestations: [receipt.attestation] };
    return { act: (client) => client.verify(manifest, { verifier_fingerprint: ada.fingerprint }) };
  },
  "log.operatorKey": () => ({ isNew: true, act: (client) => client.log.operatorKey() }),
  "log.head": () => ({ act: (client) => client.log.head() }),
  "log.headOf": () => ({ act: (client) => client.log.headOf(3) }),
  "log.heads": () => ({ act: (client) => client.log.heads(2, 3) }),
  "log.summary": () => ({ act: (client) => client.log.summary() }),
  "log.entry": () => ({ act: (client) => client.log.entry(263) }),
  "log.proof": () => ({ act: (client) => client.log.proof(262, 265) }),
  "log.consistency": () => ({ act: (client) => client.log.consistency(2, 265) }),
  "log.checkpoint": () => ({ act: (client) => client.log.checkpoint() }),
  "log.tile": () => ({ act: async (client) => Buffer.from(await client.log.tile(2, 0, 0)).toString("hex") }),
  "log.tile (partial)": () => ({
    act: async (client) => Buffer.from(await client.log.tile(2, 0, 0, 2)).toString("hex"),
  }),
  "tlog.vkey": () => ({ act: (client) => client.tlog.vkey() }),
  "tlog.checkpoint": ({ vkey }) => ({ act: (client) => client.tlog.checkpoint(vkey) }),
  "tlog.tile": () => ({ act: async (client) => Buffer.from(await client.tlog.tile(0, 0)).toString("hex") }),
  "tlog.tile (partial)": () => ({
    act: async (client) => Buffer.from(await client.tlog.tile(0, 0, 2)).toString("hex"),
  }),
  "tlog.bundle": () => ({ act: (client) => client.tlog.bundle(0, 2) }),
  "tlog.inclusion": ({ vkey, sixthHash }) => ({
    act: async (client) => {
      const { proof, ...rest } = await client.tlog.inclusion(5, sixthHash, vkey);
      return { ...rest, proof: proof.map((hash) => Buffer.from(hash).toString("hex")) };
    },
  }),
  "tlog.proofFile": ({ vkey }) => ({ act: async (client) => (await client.tlog.proofFile(6, { vkey })).text }),
  "log.verify": () => ({ act: (client) => client.log.verify() }),
  "log.entries": () => ({
    act: (client) => all(client.log.entries({ event_type: "key_registration,attestation_request" })),
  }),
  "log.byFingerprint": ({ ada }) => ({ act: (client) => all(client.log.byFingerprint(ada.fingerprint)) }),
  "log.auditTrail": ({ document }) => ({
    act: (client) => all(client.log.auditTrail({ document_hash: document.content_hash, tags: "old,draft" })),
  }),
  "log.since": () => ({ act: (client) => all(client.log.since(FILLING - 2)) }),
  "audit.entries": ({ ada }) => ({
    act: (client) => all(client.audit.entries({ fingerprint: ada.fingerprint, scope: "endorsements" })),
  }),
  "audit.csv": ({ ada }) => ({ act: (client) => client.audit.csv({ fingerprint: ada.fingerprint }) }),
  "keys.find": ({ ada }) => ({ act: (client) => client.keys.find(ada.fingerprint) }),
  "keys.status": ({ ada }) => ({ act: (client) => client.keys.status(ada.fingerprint) }),
  "keys.list": () => ({ act: (client) => all(client.keys.list()) }),
  "keys.list (of a pseudonym)": () => ({ act: (client) => all(client.keys.list("ada")) }),
  "endorsements.received": ({ bob }) => ({ act: (client) => all(client.endorsements.received(bob.fingerprint)) }),
  "endorsements.issued": ({ ada }) => ({
    act: (client) => all(client.endorsements.issued(ada.fingerprint, { status: "offered", category: OFFER.category })),
  }),
  "endorsements.alerts": ({ bob }) => ({ act: (client) => all(client.endorsements.alerts(bob.fingerprint)) }),
  "endorsements.identifierTypes": () => ({ act: (client) => client.endorsements.identifierTypes() }),
  "requests.find": ({ requestId }) => ({ act: (client) => client.requests.find(requestId) }),
  "requests.list": ({ ada }) => ({ act: (client) => all(client.requests.list({ requester: ada.fingerprint })) }),
  "policies.find": ({ bob }) => ({ act: (client) => client.policies.find(bob.fingerprint) }),
  "trust.find": ({ ada }) => ({ act: (client) => client.trust.find(ada.fingerprint) }),
  "trust.list": () => ({ act: (client) => all(client.trust.list()) }),
  "trust.graph": ({ ada }) => ({ act: (client) => client.trust.graph(ada.fingerprint, { max_depth: 2 }) }),
  "trust.standing": ({ bob }) => ({ act: (client) => client.trust.standing(bob.fingerprint) }),
  "claims.list": ({ lookupKey }) => ({ act: (client) => all(client.claims.list(lookupKey)) }),
  "claims.payload": ({ claimId }) => ({ act: (client) => client.claims.payload(claimId) }),
  "shards.beginning": () => ({ act: (client) => client.shards.beginning() }),
  "shards.beginning (continued)": async () => {
    const last = await ofAnother();
    const ended = createClient(last);
    const tree_head = await ended.shards.freeze(ENDING);
    const next = await startTestService();
    const predecessor = { url: last.server, operator_key: last.signer.publicKeyPem, tree_head };
    await next.server.registry.log.execute(beginLog, { predecessor });
    return { isNew: true, options: { server: next.url }, act: (client) => client.shards.beginning() };
  },
  "shards.successor": async () => {
    const last = await ofAnother();
    const next = await startTestService();
    const vkey = (await next.send("GET", "/tlog/vkey")).text.trim();
    await createClient(last).shards.freeze({ ...ENDING, successor: { url: next.url, vkey } });
    return { isNew: true, options: { server: last.server }, act: (client) => client.shards.successor() };
  },
  "shards.end": () => ({ act: (client) => client.shards.end() }),
  "shards.end (frozen)": async () => {
    const ending = await ofAnother();
    await createClient(ending).shards.freeze(ENDING);
    return { isNew: true, options: { server: ending.server }, act: (client) => client.shards.end() };
  },
  // What it sends is what the entry must say.
  "shards.freeze": async () => ({
    isNew: true,
    options: await ofAnother(),
    act: (client) => client.shards.freeze(ENDING),
  }),
  "withholding.withhold": async () => {
    const options = await ofAnother();
    const { receipt } = await createClient({ server: options.server, signer: asSigner(newSigner()) }).attest({
      title: "A secret",
      content_hash: newManifest().document.content_hash,
    });
    return {
      isNew: true,
      options,
      act: (client) => client.withholding.withhold(receipt.log_entry_id, { reason: "It was a secret." }),
    };
  },
  "anchoring.status": () => ({ act: (client) => client.anchoring.status() }),
  "inbox.list": ({ bob }) => signedIn(bob, (client) => all(client.inbox.list({ unread: true }))),
  "webhooks.list": ({ ada }) => signedIn(ada, (client) => client.webhooks.list()),
  // Behind those that read the newest entries: it is tried with all others of its method, which attest.
  "attestAll (refused)": (world) =>
    by(world.somebody(), async (client) => {
      const outcomes = await all(client.attestAll([{ title: "none", content_hash: "none" }]));
      // As JSON, an error would be an empty object.
      return outcomes.map(({ error }) => [error?.code, error?.detail]);
    }),
};

export const WRITING: Steps = {
  login: async (world) => by(await world.registered(), (client) => client.login()),
  "login (renewed)": async ({ bob }) => {
    const session = await bob.client.login();
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const options = { session: { ...session, expires_at } };
    // The result is the client's session.
    return { options, act: async (client) => void (await all(client.inbox.list({ unread: false }))) };
  },
  setPassword: async (world) => by(await world.registered(), (client) => client.setPassword("correct horse")),
  attest: (world) => {
    const { document } = newManifest();
    const options = { pseudonym: "Eve", intent: "I wrote it.", type: "peer_review" };
    return by(world.somebody(), (client) => client.attest({ ...document, tags: ["one"] }, options));
  },
  "attest (again)": async (world) => {
    const [eve, { document }] = [world.somebody(), newManifest()];
    await eve.client.attest(document);
    return by(eve, (client) => client.attest(document));
  },
  attestAll: (world) => {
    const documents = [newManifest().document, newManifest().document];
    const options = { pseudonym: "Eve", intent: "I wrote it.", type: "peer_review" };
    return by(world.somebody(), (client) => attestAll(client, documents, options));
  },
  "attestAll (again)": async (world) => {
    const documents = [newManifest().document, newManifest().document];
    const eve = world.somebody();
    await attestAll(eve.client, documents);
    return by(eve, (client) => attestAll(client, documents));
  },
  "keys.register": (world) =>
    by(world.somebody(), (client) =>
      client.keys.register({ pseudonym: "Zoe\u0308", expirationDate: "2098-12-31T23:59:59+01:00" }),
    ),
  "keys.succeed": async (world) => {
    const successor = asSigner(newSigner());
    return by(await world.registered(), (client) => client.keys.succeed(successor, { pseudonym: "Eve the second" }));
  },
  "keys.revoke": async (world) => by(await world.registered(), (client) => client.keys.revoke()),
  "endorsements.offer": async (world) => {
    const { fingerprint } = await world.registered();
    return by(await world.registered(), (client) =>
      client.endorsements.offer({ ...OFFER, endorsed_fingerprint: fingerprint }),
    );
  },
  "endorsements.accept": async (world) => {
    const { endorsed, offer } = await offered(world);
    return by(endorsed, (client) => client.endorsements.accept(offer, "thanks"));
  },
  "endorsements.withdraw": async (world) => {
    const { endorser, endorsed, offer } = await offered(world);
    return by(endorser, (client) => client.endorsements.withdraw(offer, endorsed.fingerprint, "we parted"));
  },
  "endorsements.revokeAcceptance": async (world) => {
    const { endorsed, offer } = await offered(world);
    await endorsed.client.endorsements.accept(offer);
    return by(endorsed, (client) => client.endorsements.revokeAcceptance(offer, "no longer"));
  },
  "endorsements.alert": async (world) => {
    const { endorser, endorsed, offer } = await offered(world);
    await endorsed.client.endorsements.accept(offer);
    return by(endorser, (client) => client.endorsements.alert(endorsed.fingerprint, "stolen", "a report"));
  },
  "requests.create": ({ ada }) => {
    const request = {
      target_fingerprint: ada.fingerprint,
      attestation_type: "authorship",
      nonce: randomUUID(),
      claims: { pages: 12 },
      intent_statement: "for the journal",
    };
    return by(ada, (client) => client.requests.create(request));
  },
  "requests.create (declined by policy)": ({ ada, bob }) => {
    const request = {
      target_fingerprint: bob.fingerprint,
      attestation_type: "peer_review",
      nonce: randomUUID(),
      deadline: new Date(Date.now() + 86_400_000).toISOString(),
    };
    return by(ada, (client) => client.requests.create(request));
  },
  "requests.respond": async ({ ada }) => {
    const ask = { target_fingerprint: ada.fingerprint, attestation_type: "authorship" };
    const { request_id } = await ada.client.requests.create(ask);
    return by(ada, (client) => client.requests.respond(request_id, { decision: "decline", reason: "no time" }));
  },
  "policies.publish": async (world) =>
    by(await world.registered(), (client) =>
      client.policies.publish({ ...POLICY, effective_from: "2097-01-01T00:00:00Z" }),
    ),
  "policies.publish (at once)": async (world) =>
    by(await world.registered(), (client) => client.policies.publish(POLICY)),
  "trust.configure": async (world) =>
    by(await world.registered(), (client) =>
      client.trust.configure({
        direct_signer_anchors: [{ fingerprint: world.bob.fingerprint, weight: 0.5 }],
        endorser_anchors: [{ fingerprint: world.ada.fingerprint, weight: 0.25 }],
        minimum_threshold: 0.3,
        category_weights: { [HUMAN]: 0.5 },
      }),
    ),
  "trust.revoke": async (world) => {
    const eve = await world.registered();
    await eve.client.trust.configure({ minimum_threshold: 0.5 });
    return by(eve, (client) => client.trust.revoke());
  },
  "claims.post": (world) => {
    const { payload } = world.newClaim();
    return signedIn(world.holder, (client) => client.claims.post({ ...payload }));
  },
  "claims.reveal": ({ holder, claim, claimId }) =>
    signedIn(holder, (client) => client.claims.reveal(claimId, { salary: 52_000 }, claim.commitmentKey)),
  "accounts.open": async (world) => {
    const account = { display_name: `Zoe\u0308 ${randomUUID()}`, email: "eve@example.org", device_label: "a token" };
    return by(await world.registered(), (client) => client.accounts.open({ ...account, credential_type: "software" }));
  },
  "accounts.recover": async (world) => {
    const { account, opened } = await world.account(await world.registered());
    const recovery = { pseudonym: account.display_name.toUpperCase(), device_label: "a laptop" };
    return by(await world.registered(), (client) =>
      client.accounts.recover({ ...recovery, credential_type: "software", recovery_key: opened.recovery_key }),
    );
  },
  "accounts.enroll": async (world) => {
    const further = await world.registered();
    return by(world.holder, (client) =>
      client.accounts.enroll(further.signer, { credential_type: "hardware", device_label: "another token" }),
    );
  },
  "documents.prepare": (world) => {
    const { document } = newManifest();
    return by(world.ada, (client) => client.documents.prepare({ ...document, tags: ["draft"] }));
  },
  "documents.assemble": (world) => {
    const parts = composite();
    return by(world.ada, (client) => client.documents.assemble({ title: "Both", parts }));
  },
  "documents.compile": async (world) => {
    const made = await world.ada.client.documents.assemble({ title: "Both", parts: composite() });
    return by(world.ada, (client) => client.documents.compile(made));
  },
  "inbox.markRead": async ({ ada }) => {
    await ada.client.requests.create({ target_fingerprint: ada.fingerprint, attestation_type: "authorship" });
    const [newest] = await all(ada.client.inbox.list({ unread: true }));
    return signedIn(ada, (client) => client.inbox.markRead(newest!.id));
  },
  "webhooks.create": async (world) => {
    const events = ["key.revoked", "attestation.created"] as const;
    const filters = { key_fingerprint: world.bob.fingerprint, document_hash: world.document.content_hash };
    return signedIn(await world.registered(), (client) =>
      client.webhooks.create({ url: "https://example.org/hook", events: [...events], ...filters }),
    );
  },
  "webhooks.remove": async (world) => {
    const eve = await world.registered();
    const { id } = await eve.client.webhooks.create({ url: "https://example.org/hook" });
    return signedIn(eve, (client) => client.webhooks.remove(id));
  },
  "anchoring.anchor": (world) => asOperator(world, (client) => client.anchoring.anchor()),
  "anchoring.signHead": (world) => asOperator(world, (client) => client.anchoring.signHead()),
};

export const STEPS: Steps = { ...READING, ...WRITING };

async function offered(world: World) {
  const [endorser, endorsed] = [await world.registered(), await world.registered()];
  const { entry } = await endorser.client.endorsements.offer({ ...OFFER, endorsed_fingerprint: endorsed.fingerprint });
  return { endorser, endorsed, offer: entry.id };
}

const composite = ({ document } = newManifest()): AssembleComposite["parts"] => [
  { ...document, manifest: { document, attestations: [] } },
  { title: "Two", content_hash: newManifest().document.content_hash, role: "annex" },
];

const asOperator = async ({ operator, operatorSigner: signer }: World, act: Prepared["act"]): Promise<Prepared> => ({
  options: { signer, session: await operator.login() },
  act,
});
