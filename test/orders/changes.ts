/**
 * One change beside one question, before it, after it, and in each of its pauses. What it answers must be true before the change
 * or after it: not of each a part.
 */
import { expect, vi } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import type { EventInput } from "#cairnlog/engine/log/state/projection.js";
import { runIn } from "../log/inline.js";
import { attest } from "../registry/attestations/manifests.js";
import { HUMAN, newKey } from "../registry/endorsements/endorsementcase.js";
import { HASH, manifestOf, nodeSigner, registration, sha256, type TestSigner, type World } from "../registry/world.js";
import type { Scene, Step } from "./orders.js";

/** More than are read between two pauses. */
const ROWS = 300;
const keyNamed = (name: string | number) => `sha256:${sha256(`${name}`)}`;
const LOOKUP_KEY = sha256("a lookup key");
const NAME = "Grace Hopper";

/** A world in which there is more of everything than is read between two pauses. */
export interface Crowded {
  readonly world: World;
  readonly key: string;
  readonly signers: readonly TestSigner[];
  readonly manifest: object;
  /** What accepts each of the key's offers that are accepted, oldest first. */
  readonly acceptances: EventInput[];
}

const offer = (endorser: string, endorsed: string): EventInput => ({
  event_type: "endorsement_offer",
  payload: { endorser_key_fingerprint: endorser, endorsed_key_fingerprint: endorsed, category: HUMAN },
});
const claim = (n: number): EventInput => ({
  event_type: "encrypted_claim",
  payload: { ciphertext: "AAAA", commitment: sha256(`${n}`), lookup_key: LOOKUP_KEY },
});
const alert = (about: string, n: number): EventInput => ({
  event_type: "endorser_revocation_alert",
  payload: { endorser_key_fingerprint: keyNamed(n), compromised_key_fingerprint: about, reason: "it was lost" },
});
const named = (): EventInput => {
  const { fingerprint, pem } = nodeSigner();
  const payload = { fingerprint, public_key: pem, pseudonym: NAME, key_algorithm: "ed25519", expiration_date: null };
  return { event_type: "key_registration", payload };
};
const upTo = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));

export async function openCrowded(world: World): Promise<Crowded> {
  const key = await newKey(world);
  await world.append(...upTo(ROWS, (n) => offer(keyNamed(n), key)), ...upTo(ROWS, (n) => offer(key, keyNamed(n))));
  const offers = await world.registry.log.append(upTo(ROWS, (n) => offer(keyNamed(`accepted ${n}`), key)));
  const acceptances = offers.map(({ log_entry_id }, n) => {
    const keys = { endorser_key_fingerprint: keyNamed(`accepted ${n}`), endorsed_key_fingerprint: key };
    return { event_type: "endorsement_acceptance", payload: { offer_entry_id: log_entry_id, ...keys } };
  });
  await world.append(...acceptances);
  await world.append(...upTo(ROWS, (n) => alert(key, n)), ...upTo(8, claim), ...upTo(ROWS, named));
  const signers = upTo(8, () => nodeSigner());
  let manifest = manifestOf();
  for (const signer of signers) {
    await world.registry.keys.register(registration(signer));
    manifest = await attest(world, signer, manifest);
  }
  return { world, key, signers, manifest, acceptances };
}

type Question = (crowded: Crowded) => Promise<unknown>;

export const ASKED: Readonly<Record<string, Question>> = {
  "endorsements of a key": ({ world, key }) =>
    world.registry.endorsementQueries.received(key, { page: 2, per_page: 200 }),
  "those that are accepted": ({ world, key }) =>
    world.registry.endorsementQueries.received(key, { status: "pending_activation", page: 2, per_page: 200 }),
  "those of them on the first page": ({ world, key }) =>
    world.registry.endorsementQueries.received(key, { status: "pending_activation", per_page: 200 }),
  "endorsements by a key": ({ world, key }) =>
    world.registry.endorsementQueries.issued(key, { page: 2, per_page: 200 }),
  "how many there are of each status": ({ world, key }) => world.registry.endorsementQueries.statusCounts(key),
  "alerts about a key": ({ world, key }) => world.registry.endorsementQueries.alerts(key, { page: 2, per_page: 200 }),
  "claims under a lookup key": async ({ world }) => {
    const { entries, total } = await world.registry.claims.list(LOOKUP_KEY, { per_page: 3 });
    return { entries: entries.map(String), total };
  },
  "keys by a name": ({ world }) => world.registry.keys.search(NAME, { page: 2, per_page: 200 }),
  "the verdict on a manifest": ({ world, manifest }) =>
    world.registry.verification.verify({ manifest, source_hash: HASH } as never),
};

/** Makes what the change needs, and then the change. */
type Change = (crowded: Crowded) => Promise<() => Promise<unknown>>;

/** An offer that the key gets, and what becomes of it. */
const afterOffer =
  (event_type: string, isAccepted: boolean): Change =>
  async ({ world, key }) => {
    const endorser = await newKey(world);
    const { log_entry_id } = await world.registry.log.append(offer(endorser, key));
    const keys = { endorser_key_fingerprint: endorser, endorsed_key_fingerprint: key };
    const payload = { offer_entry_id: log_entry_id, ...keys };
    if (isAccepted) await world.append({ event_type: "endorsement_acceptance", payload });
    return () => world.append({ event_type, payload });
  };
const appending =
  (event: (crowded: Crowded, n: number) => EventInput): Change =>
  async (crowded) => {
    const { size } = crowded.world.registry.log;
    return () => crowded.world.append(event(crowded, size));
  };

export const CHANGES: Readonly<Record<string, Change>> = {
  "an offer is accepted": afterOffer("endorsement_acceptance", false),
  "an offer is withdrawn": afterOffer("endorsement_withdrawal", false),
  "an acceptance is revoked": afterOffer("acceptance_revocation", true),
  // Its row was read before a pause, if the change comes after that.
  "an old acceptance is revoked":
    async ({ world, acceptances }) =>
    () =>
      world.append({ event_type: "acceptance_revocation", payload: acceptances.shift()!.payload }),
  "a key gets an offer": appending(({ key }, n) => offer(keyNamed(n), key)),
  "a key makes an offer": appending(({ key }, n) => offer(key, keyNamed(n))),
  "an alert is filed": appending(({ key }, n) => alert(key, n)),
  "a claim is posted": appending((_, n) => claim(n)),
  // The oldest one: it is on the page that is asked for.
  "a claim is withheld": async ({ world }) => {
    const { log, claims } = world.registry;
    await world.append(claim(log.size));
    const { entries } = await claims.list(LOOKUP_KEY, { per_page: 1 });
    const { id } = JSON.parse(String(entries[0])) as { id: number };
    return () => withhold(world.registry, id, { reason: "An order.", basis: null });
  },
  "a key gets its name": appending(named),
  "a key that has signed is revoked": async ({ world, signers }) => {
    const signer =
      signers.find(({ fingerprint }) => world.registry.keys.find(fingerprint).status === "active") ?? signers[0]!;
    return () => world.append({ event_type: "key_revocation", payload: { fingerprint: signer.fingerprint } });
  },
  "rows change that no entry makes":
    async ({ world, key }) =>
    () =>
      runIn(world.registry.log, (transaction) => transaction.put("passwords", key, { phc: "$", set_at: "" } as never)),
};

/**
 * Makes every pause of the registry (`engine/base/turns.ts`) a step, also those that come only with time.
 * @returns ends that
 */
function holdPauses(step: Step): () => void {
  const { setImmediate: soon } = globalThis;
  let now = performance.now();
  const clock = vi.spyOn(performance, "now").mockImplementation(() => (now += 10));
  globalThis.setImmediate = ((run: (...given: unknown[]) => void, ...given: unknown[]) => {
    if (run.name !== "next" || !/\/base\/turns\.js/.test(new Error().stack!)) return soon(run, ...given);
    return void step("the question goes on", () => new Promise<void>((resolve) => soon(() => resolve(run()))));
  }) as typeof setImmediate;
  return () => {
    globalThis.setImmediate = soon;
    clock.mockRestore();
  };
}

export async function changeScene(step: Step, crowded: Crowded, ask: Question, prepare: Change): Promise<Scene> {
  const change = await prepare(crowded);
  const before = await ask(crowded);
  const release = holdPauses(step);
  let answer: unknown;
  return {
    actors: [
      async () => {
        answer = await step("somebody asks", () => ({ answer: ask(crowded) })).then((asked) => asked.answer);
      },
      () => step("the change", change).then(() => {}),
    ],
    async end() {
      release();
      expect([before, await ask(crowded)]).toContainEqual(answer);
    },
    close: release,
  };
}
