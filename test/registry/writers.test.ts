/** Who may write: each rule, and how a key becomes a writer under it. */
import { afterAll, expect, test } from "vitest";
import type { RegistryOptions } from "#cairnlog/engine/registry/registry.js";
import {
  closeWorlds,
  failure,
  heldRegistration,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  registration,
  submission,
  type TestSigner,
  type World,
} from "./world.js";

afterAll(closeWorlds);

const CLIENT = { address: "198.51.100.7" };
const HUMAN = "x-service:human_attestation" as const;
const DAY_US = 86_400_000_000;

const opened = (writers: RegistryOptions["writers"], more: Partial<RegistryOptions> = {}): Promise<World> =>
  openWorld(newFolder(), undefined, { ...(writers && { writers }), ...more });

let titles = 0;
/** What a key is told that writes: `written`, or the code of the refusal. */
async function told({ registry, now }: World, signer: TestSigner): Promise<string> {
  const sent = submission(signer, manifestOf(`Title ${now} ${titles++}`));
  return registry.attestations.submit(sent as never, null, CLIENT).then(
    () => "written",
    (error) => error.code,
  );
}

const parties = (endorser: TestSigner, endorsed: TestSigner) => ({
  endorser_fingerprint: endorser.fingerprint,
  endorsed_fingerprint: endorsed.fingerprint,
});

/** An anchor's offer, which the key accepts as a client. */
async function endorse({ registry }: World, anchor: TestSigner, key: TestSigner, more: object = {}): Promise<number> {
  const offer = await registry.endorsements.offer({ ...parties(anchor, key), category: HUMAN, ...more }, CLIENT);
  const { offer_entry_id } = offer.endorsement;
  await registry.endorsements.accept({ offer_entry_id, endorsed_fingerprint: key.fingerprint }, CLIENT);
  return offer_entry_id;
}

test("everybody, if nothing is said", async () => {
  const world = await opened(undefined);
  expect(world.registry.writers.view.rule).toBe("everybody");
  expect(await told(world, nodeSigner())).toBe("written");
});

test("registered: keys that the operator or an anchor has registered, and their successors", async () => {
  const [anchor, member, stranger, next] = [nodeSigner(), nodeSigner(), nodeSigner(), nodeSigner()];
  const world = await opened({ rule: "registered" }, { trust: { anchors: [anchor.fingerprint] } });
  const { keys, keyLifecycle } = world.registry;
  const { operator } = world;
  expect(await told(world, operator)).toBe("written");
  expect(await told(world, stranger)).toBe("not-a-writer");
  // Neither its own signature nor the session of a member lets a key in.
  const refused = (by: TestSigner | null, key: TestSigner) =>
    failure(() => keys.register(heldRegistration(key), CLIENT, by?.fingerprint));
  expect(await refused(null, stranger)).toMatchObject({ code: "not-a-writer" });
  await keys.register(registration(member), CLIENT, operator.fingerprint);
  expect(await refused(member, stranger)).toMatchObject({ code: "not-a-writer" });
  expect(await told(world, member)).toBe("written");
  const { message } = await refused(null, stranger);
  expect(message).toContain(stranger.fingerprint);
  expect(message).toContain("Send your public key to the operator");
  await keys.register(registration(anchor), CLIENT, operator.fingerprint);
  await keys.register(registration(stranger), CLIENT, anchor.fingerprint);
  expect(await told(world, stranger)).toBe("written");
  const succession = {
    old_fingerprint: member.fingerprint,
    new_public_key: next.pem,
    new_algorithm: next.algorithm,
  };
  await keyLifecycle.succeed(succession, { recovery: false }, CLIENT);
  expect(await told(world, next)).toBe("written");
  expect(await told(world, member)).toBe("key-not-active");
});

test("a registration without any signature is refused, and so is an account", async () => {
  const world = await opened({ rule: "registered" });
  const key = nodeSigner();
  const { keys, accounts } = world.registry;
  expect((await failure(() => keys.register(registration(key), CLIENT))).code).toBe("not-a-writer");
  await keys.register(registration(key));
  const account = {
    display_name: "Ada",
    email: "ada@example.org",
    credential_type: "software",
    key_fingerprint: key.fingerprint,
    device_label: "Laptop",
  } as const;
  expect(await failure(() => accounts.create(account, CLIENT))).toMatchObject({
    code: "not-a-writer",
    message: expect.stringContaining("No key that may write has signed this."),
  });
});

test("endorsed: anchors, and whom they endorse, from the activation to the end", async () => {
  const [anchor, key, other] = [nodeSigner(), nodeSigner(), nodeSigner()];
  const world = await opened({ rule: "endorsed" }, { trust: { anchors: [anchor.fingerprint] } });
  const { registry, operator } = world;
  for (const one of [anchor, key, other]) await registry.keys.register(registration(one), CLIENT, operator.fingerprint);
  expect([await told(world, anchor), await told(world, operator)]).toEqual(["written", "written"]);
  expect(await told(world, key)).toBe("not-a-writer");
  const id = await endorse(world, anchor, key);
  expect(await told(world, key)).toBe("not-a-writer");
  world.now += DAY_US;
  expect(await told(world, key)).toBe("written");
  // What it endorses is no writer: only an anchor's word counts.
  const offer = { ...parties(key, other), category: HUMAN };
  const { endorsement } = await registry.endorsements.offer(offer, CLIENT);
  const { offer_entry_id } = endorsement;
  const acceptance = { offer_entry_id, endorsed_fingerprint: other.fingerprint };
  expect((await failure(() => registry.endorsements.accept(acceptance, CLIENT))).code).toBe("not-a-writer");
  await registry.endorsements.accept(acceptance);
  world.now += DAY_US;
  expect(await told(world, other)).toBe("not-a-writer");
  await registry.endorsements.withdraw(
    { ...parties(anchor, key), original_offer_entry_id: id, note: "The project has ended." },
    CLIENT,
  );
  expect(await told(world, key)).toBe("not-a-writer");
});

test("endorsed: it ends with its validity, and with the key of the anchor", async () => {
  const [anchor, key, other] = [nodeSigner(), nodeSigner(), nodeSigner()];
  const world = await opened({ rule: "endorsed" }, { trust: { anchors: [anchor.fingerprint] } });
  const { registry, operator } = world;
  for (const one of [anchor, key, other]) await registry.keys.register(registration(one), CLIENT, operator.fingerprint);
  await endorse(world, operator, key, { valid_until: "2025-01-10" });
  await endorse(world, anchor, other);
  world.now += DAY_US;
  expect([await told(world, key), await told(world, other)]).toEqual(["written", "written"]);
  world.now += 10 * DAY_US;
  expect([await told(world, key), await told(world, other)]).toEqual(["not-a-writer", "written"]);
  await registry.keyLifecycle.revoke(anchor.fingerprint, CLIENT);
  expect(await told(world, other)).toBe("not-a-writer");
});

test("file: listed keys in their time, until another list takes its place", async () => {
  const [always, once, later, stranger] = [nodeSigner(), nodeSigner(), nodeSigner(), nodeSigner()];
  const at = (day: string) => `2025-01-${day}T00:00:00.000000Z`;
  const listed = [
    { fingerprint: always.fingerprint },
    { fingerprint: once.fingerprint, validBefore: at("02") },
    { fingerprint: later.fingerprint, validAfter: at("09"), validBefore: at("10") },
    { fingerprint: later.fingerprint, validAfter: at("02"), validBefore: null },
  ];
  const world = await opened({ rule: "file", listed });
  const all = async () => {
    const answers: string[] = [];
    for (const key of [always, once, later, stranger, world.operator]) answers.push(await told(world, key));
    return answers.map((answer) => answer === "written");
  };
  expect(await all()).toEqual([true, true, false, false, true]);
  world.now += DAY_US;
  expect(await all()).toEqual([true, true, true, false, true]);
  world.now += 1;
  expect(await all()).toEqual([true, false, true, false, true]);
  world.registry.writers.renew([{ fingerprint: stranger.fingerprint }]);
  expect(await all()).toEqual([false, false, false, true, true]);
});

test("a program that embeds the log writes as before", async () => {
  const world = await opened({ rule: "file", listed: [] });
  await world.registry.keys.register(registration(nodeSigner()));
  expect(world.registry.log.size).toBe(1);
});
