/** What strangers may register at a log, as much as its bounds allow or more: nobody's append should cost more for it. */
import { generateKeyPairSync } from "node:crypto";

/** Numbers of rows. A key has at most 20 subscriptions. */
export const STRANGERS = {
  keys: 1_000,
  subscriptionsEach: 5,
  /** The first keys endorse each of the others of their circle, and are endorsed by them. */
  circle: 51,
} as const;

/** What it needs of a service's registry. Tests use it, too, which do not see the packages of the benchmarks. */
interface Registry {
  readonly keys: {
    register(key: {
      readonly public_key: string;
      readonly pseudonym: string;
      readonly key_algorithm: "ed25519";
    }): Promise<{ readonly fingerprint: string }>;
  };
  readonly endorsements: {
    offer(offer: {
      readonly endorser_fingerprint: string;
      readonly endorsed_fingerprint: string;
      readonly category: "x-service:human_attestation";
    }): Promise<{ readonly endorsement: { readonly offer_entry_id: number } }>;
    accept(acceptance: { readonly offer_entry_id: number; readonly endorsed_fingerprint: string }): Promise<unknown>;
  };
  readonly policies: {
    publish(
      target: string,
      policy: { readonly predicates: object; readonly default_action_on_failure: "decline" },
    ): Promise<unknown>;
  };
  readonly trustConfigs: { create(config: object): Promise<unknown> };
  readonly webhooks: { subscribe(subscription: { readonly url: string }, owner: string): Promise<unknown> };
}

/** Calls `work` for each item, so many at once that they share commits. */
async function inParallel<T>(items: readonly T[], work: (item: T, n: number) => Promise<unknown>): Promise<void> {
  const AT_ONCE = 100;
  for (let from = 0; from < items.length; from += AT_ONCE)
    await Promise.all(items.slice(from, from + AT_ONCE).map((item, n) => work(item, from + n)));
}

async function register(registry: Registry): Promise<string[]> {
  const fingerprints: string[] = [];
  await inParallel(Array.from({ length: STRANGERS.keys }), async (_, n) => {
    const { publicKey } = generateKeyPairSync("ed25519");
    const public_key = publicKey.export({ type: "spki", format: "pem" }).toString();
    const key = { public_key, pseudonym: `stranger ${n}`, key_algorithm: "ed25519" } as const;
    fingerprints.push((await registry.keys.register(key)).fingerprint);
  });
  return fingerprints;
}

/** Every key of the circle endorses every other: 50 endorsements each, in both directions. */
async function endorse({ endorsements }: Registry, circle: readonly string[]): Promise<void> {
  const pairs = circle.flatMap((endorser) =>
    circle.flatMap((endorsed) => (endorser === endorsed ? [] : [{ endorser, endorsed }])),
  );
  await inParallel(pairs, async ({ endorser, endorsed }) => {
    const { endorsement } = await endorsements.offer({
      endorser_fingerprint: endorser,
      endorsed_fingerprint: endorsed,
      category: "x-service:human_attestation",
    });
    const { offer_entry_id } = endorsement;
    await endorsements.accept({ offer_entry_id, endorsed_fingerprint: endorsed });
  });
}

/**
 * Registers at a service what strangers may: keys, subscriptions to every event at `receivers`, request policies, trust
 * configurations, and endorsements of one another.
 */
export async function registerStrangers(registry: Registry, receivers: readonly string[]): Promise<void> {
  const keys = await register(registry);
  await inParallel(keys, (target) =>
    registry.policies.publish(target, {
      predicates: { field: "requester_trust", op: "ge", value: 0.5 },
      default_action_on_failure: "decline",
    }),
  );
  const anchor = { fingerprint: keys[0]!, weight: 1 };
  await inParallel(keys, (fingerprint) =>
    registry.trustConfigs.create({ fingerprint, direct_signer_anchors: [anchor], minimum_threshold: 0.5 }),
  );
  await endorse(registry, keys.slice(0, STRANGERS.circle));
  const owners = keys.flatMap((key) => Array<string>(STRANGERS.subscriptionsEach).fill(key));
  await inParallel(owners, (owner, n) =>
    registry.webhooks.subscribe({ url: `${receivers[n % receivers.length]!}${n}` }, owner),
  );
}
