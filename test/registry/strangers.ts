/** Strangers: holders of keys that nobody knows, who do everything that a service lets anybody do. */
import { randomUUID } from "node:crypto";
import { setPassword } from "#cairnlog/engine/registry/access/commands.js";
import { createAccount } from "#cairnlog/engine/registry/accounts/commands.js";
import { acceptEndorsement, fileAlert, offerEndorsement } from "#cairnlog/engine/registry/endorsements/commands.js";
import { newRecipient, seal } from "../verify/claims/ecies.js";
import { HUMAN } from "./endorsements/endorsementcase.js";
import { manifestOf, nodeSigner, registration, sha256, submission, type TestSigner, type World } from "./world.js";

const CONTENT = {
  category: HUMAN,
  valid_until: null,
  institutional_metadata: null,
  external_identifiers: null,
} as const;

/**
 * Has `count` strangers act. Each registers a key, attests the document that everybody attests, opens an account, sets a
 * password, posts a claim, publishes a policy and a trust configuration, subscribes to all events, is endorsed by the
 * one before it, files an alert, and offers an endorsement to and asks an attestation of each of `holders`.
 */
export async function letStrangersAct(world: World, count: number, holders: readonly TestSigner[]): Promise<void> {
  const { registry } = world;
  const { log, keys, attestations, claims, policies, trustConfigs, requests, webhooks } = registry;
  const settings = { operator_fingerprint: world.operator.fingerprint, activation_delay_seconds: 0 };
  const claim = seal({ a: 1 }, newRecipient().point, { lookupKey: sha256("a") }).payload;
  const offer = async (endorser: string, endorsed: string) => {
    const parties = { endorser_fingerprint: endorser, endorsed_fingerprint: endorsed };
    const { value } = await log.execute(offerEndorsement, {
      ...parties,
      content: CONTENT,
      may_endorse: true,
      ...settings,
    });
    return value.offer_entry_id;
  };
  const act = async (_: unknown, i: number) => {
    const stranger = nodeSigner();
    const { fingerprint } = stranger;
    await keys.register(registration(stranger, `someone ${i}`));
    await attestations.submit(submission(stranger, manifestOf()));
    await log.execute(createAccount, {
      user: { id: randomUUID(), display_name: `Stranger ${i}`, email: "s@example.org", recovery_hash: "none" },
      folded_name: `stranger ${i}`,
      credential: {
        id: randomUUID(),
        key_fingerprint: fingerprint,
        credential_type: "hardware",
        device_label: "a token",
        confirmed: false,
        hardware_root: null,
      },
      hardware_roots: [],
    });
    await log.execute(setPassword, { fingerprint, known_hash: null, hash: "none", version: randomUUID() });
    await claims.post(claim, fingerprint);
    await policies.publish(fingerprint, { predicates: { all: [] }, default_action_on_failure: "allow" });
    await trustConfigs.create({ fingerprint, minimum_threshold: 0.5 });
    await webhooks.subscribe({ url: `https://${i}.example/hook`, secret: "a secret of sixteen and more" }, fingerprint);
    for (const holder of holders) {
      await offer(fingerprint, holder.fingerprint);
      await requests.create(fingerprint, {
        target_fingerprint: holder.fingerprint,
        attestation_type: "authorship",
        nonce: holder.fingerprint,
        claims: {},
      });
    }
    return fingerprint;
  };
  const strangers = await Promise.all(Array.from({ length: count }, act));
  for (const [i, one] of strangers.entries()) {
    const other = strangers[(i + 1) % count]!;
    if (other === one) continue;
    const offer_entry_id = await offer(one, other);
    await log.execute(acceptEndorsement, { offer_entry_id, endorsed_fingerprint: other, note: null, ...settings });
    await log.execute(fileAlert, {
      endorser_fingerprint: one,
      compromised_fingerprint: other,
      reason: "stolen",
      evidence: null,
      operator_fingerprint: world.operator.fingerprint,
    });
  }
}
