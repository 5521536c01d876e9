/**
 * Every verdict that is drawn from the row of a key says whose signature the row has. Anybody may register a key, with a
 * name, an expiration and a predecessor of their choice, so each verdict is looked at twice: for a row that the holder has
 * signed, and for one that a stranger has made.
 */
import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, it } from "vitest";
import { Holders } from "../accounts/holders.js";
import { attest, attestationOf, unlogged, verify } from "../attestations/manifests.js";
import { Case } from "../endorsements/endorsementcase.js";
import {
  at,
  closeWorlds,
  DAY,
  failure,
  heldRegistration,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  registration,
  SECOND,
  type TestSigner,
  type World,
} from "../world.js";

afterAll(closeWorlds);

const UNSIGNED = "has not signed";
const MAKERS = [
  ["the holder", heldRegistration],
  ["a stranger", registration],
] as const;
type Maker = (typeof MAKERS)[number][1];

/** A world with a key that `maker` has registered, until a day from now, and with another key. */
async function opened(maker: Maker, expires: boolean) {
  const world = await openWorld(newFolder(), undefined, { trust: { minTrust: 0 } });
  const [signer, other] = [nodeSigner(), nodeSigner()];
  await world.registry.keys.register(maker(signer, "someone", expires ? at(world.now + DAY) : null));
  await world.registry.keys.register(heldRegistration(other, "other"));
  return { world, signer, other };
}
type Opened = Awaited<ReturnType<typeof opened>>;

/** Acts of a key that is expired. */
const REFUSALS: readonly (readonly [string, (parts: Opened) => unknown])[] = [
  [
    "a challenge",
    ({ world, signer }) =>
      world.registry.challenges.issue({ fingerprint: signer.fingerprint, origin: "http://127.0.0.1" }),
  ],
  ["an attestation", ({ world, signer }) => attest(world, signer, manifestOf())],
  ["a revocation", ({ world, signer }) => world.registry.keyLifecycle.revoke(signer.fingerprint)],
  ["an offer by it", ({ world, signer, other }) => new Case(world, signer.fingerprint, other.fingerprint).offer()],
  ["an offer to it", ({ world, signer, other }) => new Case(world, other.fingerprint, signer.fingerprint).offer()],
  [
    "a request",
    ({ world, signer, other }) =>
      world.registry.requests.create(signer.fingerprint, {
        target_fingerprint: other.fingerprint,
        attestation_type: "authorship",
        nonce: randomUUID(),
      }),
  ],
  [
    "a policy",
    ({ world, signer }) =>
      world.registry.policies.publish(signer.fingerprint, {
        predicates: { all: [] },
        default_action_on_failure: "hold",
      }),
  ],
  ["an account", ({ world, signer }) => new Holders(() => world).create({ key_fingerprint: signer.fingerprint })],
];

describe.each(MAKERS)("where %s has recorded an expiration", (_, maker) => {
  const isHeld = maker === heldRegistration;

  it.each(REFUSALS)("%s is refused with whose word that is", async (_act, act) => {
    const parts = await opened(maker, true);
    parts.world.now += 2 * DAY;
    const { message } = await failure(() => act(parts));
    expect(message).toContain("expired");
    expect(message.includes(UNSIGNED)).toBe(!isHeld);
  });

  it("the key's holder can get out of it, unless it is the holder's own", async () => {
    const { world, signer } = await opened(maker, true);
    world.now += 2 * DAY;
    const register = () => world.registry.keys.register(heldRegistration(signer, "me"));
    if (isHeld) expect(await failure(register)).toMatchObject({ code: "already-exists" });
    else await register();
    expect(world.registry.keys.status(signer.fingerprint)).toMatchObject({
      status: isHeld ? "expired" : "active",
      named: true,
    });
  });
});

const revoke = ({ world, signer }: Opened) => world.registry.keyLifecycle.revoke(signer.fingerprint);
const succeed = ({ world, signer }: Opened, next: TestSigner, isConfirmed: boolean) =>
  world.registry.keyLifecycle.succeed(
    {
      old_fingerprint: signer.fingerprint,
      new_public_key: next.pem,
      new_algorithm: next.algorithm,
      ...(isConfirmed
        ? { new_key_signature: next.sign(`service.key.succession.v1:${signer.fingerprint}:${next.fingerprint}`) }
        : {}),
    },
    { recovery: false },
  );

/** What happens to a key after it has attested, and the verdict about the attestation. */
const STANDINGS: readonly (readonly [string, string, (parts: Opened) => unknown])[] = [
  ["active", "valid", () => undefined],
  ["revoked", "warning", revoke],
  ["succeeded and confirmed", "valid", (parts) => succeed(parts, nodeSigner(), true)],
  ["succeeded and not confirmed", "warning", (parts) => succeed(parts, nodeSigner(), false)],
];

describe.each(MAKERS)("layer 2 about a key that %s has registered", (_, maker) => {
  const words = maker === heldRegistration ? "has signed its name and expiration" : UNSIGNED;

  it.each(STANDINGS)("and that is %s", async (_state, status, change) => {
    const parts = await opened(maker, false);
    const manifest = await attest(parts.world, parts.signer, manifestOf());
    parts.world.now += SECOND;
    await change(parts);
    const { layer2 } = (await verify(parts.world, manifest)).attestations[0]!;
    expect(layer2).toMatchObject({ status, details: expect.stringContaining(words) });
  });

  it.each([
    ["after", "warning", 0],
    ["before", "invalid", 2 * DAY],
  ])("and that expired %s the attestation", async (_when, status, later) => {
    const { world, signer } = await opened(maker, true);
    const manifest = unlogged(world, signer, manifestOf(), { timestamp: at(world.now + later) });
    world.now += 3 * DAY;
    const { layer2 } = (await verify(world, manifest)).attestations[0]!;
    expect(layer2).toMatchObject({ status, details: expect.stringContaining(words) });
    expect(attestationOf(manifest).signer_key_fingerprint).toBe(signer.fingerprint);
  });
});

describe.each(MAKERS)("every view of a key that %s has registered", (_, maker) => {
  const named = maker === heldRegistration;

  it("says whose the name is", async () => {
    const { world, signer } = await opened(maker, false);
    const { keys, graphs } = world.registry;
    const { fingerprint } = signer;
    for (const view of ["find", "detail", "status"] as const) expect(keys[view](fingerprint)).toMatchObject({ named });
    expect(keys.list().keys[0]).toMatchObject({ fingerprint, named });
    expect((await keys.search("someone")).keys).toMatchObject([{ fingerprint, named }]);
    expect((await graphs.around(fingerprint)).nodes).toMatchObject([{ fingerprint, named }]);
    const { nodes } = (await verify(world, await attest(world, signer, manifestOf()))).attestation_graph;
    expect(nodes).toContainEqual(expect.objectContaining({ id: fingerprint, named }));
  });
});

/** An endorsement of `to` by the operator, which is an anchor, active a day later. */
async function endorsedByOperator(world: World, to: string): Promise<void> {
  await world.registry.keys.register(registration(world.operator, "operator"));
  const offered = new Case(world, world.operator.fingerprint, to);
  await offered.offer();
  await offered.accept();
  world.now += 2 * DAY;
}

describe("trust", () => {
  it.each([true, false])("does not pass over a succession (confirmed: %s)", async (isConfirmed) => {
    const parts = await opened(heldRegistration, false);
    const { world, signer } = parts;
    await endorsedByOperator(world, signer.fingerprint);
    const next = nodeSigner();
    expect(await world.registry.trust.level(signer.fingerprint)).toBeGreaterThan(0.4);
    await succeed(parts, next, isConfirmed);
    expect(await world.registry.trust.level(next.fingerprint)).toBeCloseTo(0.1, 12);
    expect(await world.registry.trust.level(signer.fingerprint)).toBe(0);
  });

  it("and the graph show at once that a key has named itself, however long they are kept", async () => {
    const { world, signer, other } = await opened(registration, true);
    await endorsedByOperator(world, other.fingerprint);
    const offered = new Case(world, other.fingerprint, signer.fingerprint);
    world.now -= 2 * DAY - SECOND;
    await offered.offer();
    await offered.accept();
    world.now += 3 * DAY;
    const { graphs, keys, trust } = world.registry;
    const node = async () =>
      (await graphs.around(other.fingerprint)).nodes.find(({ fingerprint }) => fingerprint === signer.fingerprint);
    expect(await node()).toMatchObject({ pseudonym: "someone", status: "expired", named: false });
    expect(await trust.level(signer.fingerprint)).toBe(0);
    await keys.register(heldRegistration(signer, "me"));
    expect(await node()).toMatchObject({ pseudonym: "me", status: "active", named: true });
    expect(await trust.level(signer.fingerprint)).toBeGreaterThan(0.1);
  });
});
