/** A history that runs every command of the service, for tests that hold for all of them. */

import { expect } from "vitest";
import { beginLog, freeze, withhold } from "#cairnlog/engine/log/operator/entries.js";
import { newRecipient, seal } from "../verify/claims/ecies.js";
import { enrolment } from "./accounts/holders.js";
import { HUMAN, INSTITUTIONAL } from "./endorsements/endorsementcase.js";
import {
  at,
  BASE,
  DAY,
  failure,
  manifestOf,
  nodeSigner,
  registration,
  SECOND,
  sha256,
  submission,
  type TestSigner,
  type World,
} from "./world.js";

/**
 * Runs every command, and appends events of every kind. At the end no private table is empty.
 * @param meanwhile called with the keys that act, when they are registered
 */
export async function tour(
  world: World,
  meanwhile: (holders: readonly TestSigner[]) => Promise<void> = async () => {},
): Promise<void> {
  const { registry } = world;
  const { keys, keyLifecycle, accounts, credentials, passwords, attestations, endorsements, webhooks } = registry;
  const { requests, policies, inbox, trustConfigs, claims, log } = registry;
  const later = (micros: number) => {
    world.now += micros;
  };
  const newKey = async (expires?: string) => {
    const signer = nodeSigner();
    await keys.register(registration(signer, "someone", expires));
    later(SECOND);
    return signer;
  };
  // Only an empty log goes on from another one.
  const tree_head = {
    tree_size: 1,
    root_hash: sha256("a"),
    signature: "",
    timestamp: at(0),
    key_id: "",
    tree_version: 2 as const,
  };
  const predecessor = { url: "https://2026.log.example", operator_key: "", tree_head };
  if (!log.size) await log.execute(beginLog, { predecessor });
  const [one, two, three] = [await newKey(), await newKey(), await newKey()];
  await meanwhile([one, two, three]);

  const hook = { url: "https://receiver.example/hook", secret: "a secret of sixteen and more" };
  const { id: lasting } = await webhooks.subscribe(hook, one.fingerprint);
  const { id: ending } = await webhooks.subscribe({ ...hook, events: ["key.registered"] }, two.fingerprint);
  await passwords.set(three.fingerprint, { password: "correct horse battery" });

  // One batch, in which one command is refused and another sees the effect of an earlier one.
  const lost = nodeSigner();
  await Promise.allSettled([
    log.append([
      { event_type: "note", payload: { n: 1, tags: ["Ä"] } },
      { event_type: "note", payload: { bad: "\ud800" } },
    ]),
    log.append([
      { event_type: "note", payload: { n: 1, tags: ["Ä"] } },
      { event_type: "note", payload: { n: 2 } },
    ]),
    keys.register(registration(lost)),
    keys.register(registration(lost)),
    keyLifecycle.revoke(lost.fingerprint),
    webhooks.deactivate(ending, two.fingerprint),
    keys.register(registration(nodeSigner())),
  ]);
  later(SECOND);
  const expiring = await newKey(at(world.now + DAY));
  later(2 * DAY);
  const succession = {
    old_fingerprint: expiring.fingerprint,
    new_public_key: nodeSigner().pem,
    new_algorithm: "ed25519" as const,
  };
  expect((await failure(() => keyLifecycle.succeed(succession, { recovery: false }))).code).toBe("key-not-active");
  await keyLifecycle.succeed(succession, { recovery: true });

  const manifest = manifestOf();
  await attestations.submit(submission(two, manifest, { intent_statement: "read it" }));
  expect((await attestations.submit(submission(two, manifest, { intent_statement: "read it" }))).duplicate).toBe(true);
  await attestations.submit(submission(nodeSigner(), manifest, { attestation_type: "https://other.example/v1" }));
  // One batch of a new key: registered by the first, the second is there twice, the last needs a proof.
  const batched = nodeSigner();
  const pages = ["page 1", "page 2", "page 2"].map((title) => submission(batched, manifestOf(title)));
  const retyped = submission(batched, manifestOf("page 1"), { attestation_type: "publication" });
  const recorded = await attestations.submitAll([...pages, retyped], async (one) => ({
    submission: one,
    possession: null,
  }));
  expect(recorded.map((one) => (one.status === "fulfilled" ? one.value.duplicate : one.reason.code))).toEqual([
    false,
    false,
    true,
    "proof-required",
  ]);

  const account = { email: "ada@example.org", device_label: "a token", credential_type: "hardware" as const };
  const { user, recovery_key } = await accounts.create({
    ...account,
    display_name: "Ada",
    key_fingerprint: one.fingerprint,
  });
  await credentials.enroll(await enrolment(world, one, two));
  await claims.post(seal({ a: 1 }, newRecipient().point, { lookupKey: sha256("a") }).payload, two.fingerprint);
  later(SECOND);
  const recovery = { ...account, pseudonym: "Ada", recovery_key, key_fingerprint: three.fingerprint };
  await accounts.recover(recovery, "192.0.2.1");
  expect(log.row("users", user.id)).toBeDefined();

  const pair = { endorser_fingerprint: one.fingerprint, endorsed_fingerprint: two.fingerprint };
  const offer = async (category: typeof HUMAN | typeof INSTITUTIONAL, more = {}) =>
    (await endorsements.offer({ ...pair, category, ...more })).endorsement.offer_entry_id;
  const human = await offer(HUMAN);
  const institutional = await offer(INSTITUTIONAL, {
    institutional_metadata: { name: "A library", z: [1.5, { "\u20ac": null }] },
    external_identifiers: [{ type: "doi", value: "10.1000/182" }],
    valid_until: "2030-01-01",
  });
  for (const offer_entry_id of [human, institutional]) {
    later(SECOND);
    await endorsements.accept({ offer_entry_id, endorsed_fingerprint: two.fingerprint });
  }
  await endorsements.alert({
    endorser_fingerprint: one.fingerprint,
    compromised_fingerprint: two.fingerprint,
    reason: "stolen",
  });
  await endorsements.withdraw({ ...pair, original_offer_entry_id: human, note: "left" });
  const ended = { original_offer_entry_id: institutional, note: "not wanted" };
  await endorsements.revokeAcceptance({ endorsed_fingerprint: two.fingerprint, ...ended });
  await offer(HUMAN);

  const question = { target_fingerprint: three.fingerprint, attestation_type: "authorship" };
  const ask = (nonce: string) =>
    requests.create(one.fingerprint, { ...question, nonce, claims: { b: 1, a: [true, { c: null }] } });
  const { request_id } = await ask("first");
  const given = await world.registry.attestations.submit(
    submission(three, manifestOf("An answer"), { password: "correct horse battery" }) as never,
  );
  const answer = { decision: "accept" as const, attestation_id: given.attestation.id };
  await requests.respond(three.fingerprint, request_id, answer);
  const trusting = { field: "requester_trust", op: "ge", value: 0.9 };
  const policy = (default_action_on_failure: string) =>
    policies.publish(three.fingerprint, { predicates: { all: [trusting] }, default_action_on_failure });
  for (const action of ["decline", "hold"]) {
    later(SECOND);
    await policy(action);
    await ask(`after the policy that says ${action}`);
  }
  const [newest] = inbox.list(three.fingerprint, {}).notifications;
  await inbox.markRead(three.fingerprint, newest!.id);

  for (const minimum_threshold of [0.5, 0.75])
    await trustConfigs.create({ fingerprint: one.fingerprint, minimum_threshold });
  await trustConfigs.create({ fingerprint: two.fingerprint, minimum_threshold: 0.5 });
  await trustConfigs.revoke(two.fingerprint);

  const { outbox } = webhooks;
  const outcome = { attempt: 0, at: at(world.now), jitter: 0.5 };
  const first = (next: number) =>
    ({ entryId: next, first: { event: "key.registered", created_at: at(0), next } }) as const;
  const { id: failing } = await webhooks.subscribe(hook, two.fingerprint);
  await outbox.settle([
    { ...outcome, ...first(1), webhookId: lasting, isDelivered: true },
    { ...outcome, ...first(2), webhookId: lasting, isDelivered: false },
    { ...outcome, ...first(1), webhookId: failing, isDelivered: false },
  ]);
  await webhooks.deactivate(failing, two.fingerprint);
  expect(outbox.webhookIds()).toContain(failing);
  await outbox.clear(failing);
  const owner = await newKey();
  const { id: orphan } = await webhooks.subscribe(hook, owner.fingerprint);
  await keyLifecycle.revoke(owner.fingerprint);
  expect(await webhooks.endWithKey([lasting, orphan])).toEqual([orphan]);
  await outbox.mark(2, [{ webhook_id: lasting, next: null }]);
  await outbox.mark(3, [{ webhook_id: lasting, next: 4 }]);

  const change = { proof: Buffer.from("a proof \0 of bytes"), status: "pending" as const, isSettled: false };
  await log.anchors.replace(log, 0, undefined, change);
  await log.anchors.replace(log, 1, undefined, { ...change, status: "confirmed", isSettled: true });
  expect(await log.anchors.replace(log, 0, undefined, change)).toBe(false);
  // Enough entries to fill a tile.
  await log.append(Array.from({ length: 256 }, (_, n) => ({ event_type: "note", payload: { n } })));
  await log.tryWriting();
  await log.signHead();
  const [attested] = log.match({ eventTypes: [`${BASE}/authorship/v1`] }, 0, 1).indexes;
  await withhold({ log, writer: log }, log.entryAt(attested!)!.id, { reason: "An order", basis: null });
  // Behind the end there are private rows alone.
  await freeze(log, { reason: "The tour is over.", successor: null });
  await log.signHead();
  await log.anchors.replace(log, 1, undefined, change);
}
