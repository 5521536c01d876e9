/** An attestation by which its key names itself: its name takes the place of what strangers recorded. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ALGORITHMS,
  at,
  closeWorlds,
  compact,
  DAY,
  failure,
  heldRegistration,
  manifestOf,
  nodeSigner,
  openWorld,
  registration,
  SECOND,
  submission,
  type TestSigner,
  type World,
} from "../world.js";
import type { Submission } from "./manifests.js";

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

/** The signature by which a key names itself, over exactly the sent values. */
const possession = ({ fingerprint, sign }: TestSigner, pseudonym: string | null) =>
  sign(compact({ action: "service.key.register.v1", expiration_date: null, fingerprint, pseudonym }));
let titles = 0;
const naming = (signer: TestSigner, pseudonym: string | null, more: object = {}) =>
  submission(signer, manifestOf(`title ${++titles}`), {
    ...(pseudonym === null ? {} : { pseudonym }),
    possession_signature: possession(signer, pseudonym),
    ...more,
  }) as unknown as Submission;
const submit = (input: Submission) => world.registry.attestations.submit(input);
const keyOf = ({ fingerprint }: TestSigner) => world.registry.keys.detail(fingerprint);
const kinds = (from: number) =>
  Array.from({ length: world.registry.log.size - from }, (_, i) => world.registry.log.entry(from + i + 1)!.event_type);

it("an error that is met when it is recorded is told to who has sent it, in whatever form the key was shown", async () => {
  const { trust, passwords, keys, attestations } = world.registry;
  const [named, plain, held] = [nodeSigner(), nodeSigner(), nodeSigner()];
  await keys.register(heldRegistration(held, "Grace"));
  await passwords.set(held.fingerprint, { password: "correct horse" });
  const manifest = manifestOf(`title ${++titles}`);
  trust.isReached = () => {
    throw new Error("the log cannot be read");
  };
  try {
    for (const input of [
      naming(named, "Ada"),
      submission(plain, manifest) as unknown as Submission,
      submission(held, manifest, { password: "correct horse" }) as unknown as Submission,
    ])
      await expect(attestations.submit(input, null, { address: "192.0.2.1" })).rejects.toThrow(
        "the log cannot be read",
      );
  } finally {
    Reflect.deleteProperty(trust, "isReached");
  }
});

describe("an attestation with possession_signature", () => {
  it.each(ALGORITHMS)("registers a new key under its name, in the same batch (%s)", async (algorithm) => {
    const signer = nodeSigner(algorithm);
    const { size } = world.registry.log;
    const input = naming(signer, "Ada\u0308");
    const receipt = await submit(input);
    expect(receipt).toMatchObject({ pseudonym: "Ad\u00e4", log_entry_id: size + 2, leaf_index: size + 1 });
    expect(kinds(size)).toEqual(["key_registration", expect.stringContaining("authorship")]);
    expect(world.registry.log.entry(size + 1)!.payload).toMatchObject({
      pseudonym: "Ad\u00e4",
      expiration_date: null,
      possession_signature: input.possession_signature,
    });
    expect(keyOf(signer)).toMatchObject({ named: true, proven: true, log_entry_id: size + 1 });
  });

  it.each<[string, (signer: TestSigner, stranger: TestSigner) => unknown]>([
    ["a registration", (signer) => world.registry.keys.register(registration(signer, "Mallory"))],
    [
      "a registration with an expiration that has passed",
      async (signer) => {
        await world.registry.keys.register(registration(signer, "Mallory", at(world.now + SECOND)));
        world.now += DAY;
      },
    ],
    [
      "a succession",
      async (signer, stranger) => {
        await world.registry.keys.register(heldRegistration(stranger, "Mallory"));
        const to = { new_public_key: signer.pem, new_algorithm: signer.algorithm };
        const succession = { old_fingerprint: stranger.fingerprint, ...to };
        await world.registry.keyLifecycle.succeed(succession, { recovery: false });
      },
    ],
    [
      "a registration, after which the key has attested",
      async (signer) => {
        await world.registry.keys.register(registration(signer, "Mallory"));
        await submit(submission(signer, manifestOf("before")) as never);
      },
    ],
  ])("replaces %s by a stranger", async (_, record) => {
    const [signer, stranger] = [nodeSigner(), nodeSigner()];
    await record(signer, stranger);
    const { size } = world.registry.log;
    const receipt = await submit(naming(signer, "Ada"));
    expect(receipt).toMatchObject({ pseudonym: "Ada", leaf_index: size + 1, duplicate: false });
    expect(keyOf(signer)).toMatchObject({
      pseudonym: "Ada",
      status: "active",
      expires_at: null,
      predecessor_fingerprint: null,
      named: true,
    });
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });

  it("without a pseudonym gives the key the name that nobody has chosen", async () => {
    const signer = nodeSigner();
    await world.registry.keys.register(registration(signer, "Mallory"));
    const { pseudonym } = await submit(naming(signer, null));
    expect(pseudonym).toBe(signer.fingerprint.slice(7, 19));
    expect(keyOf(signer)).toMatchObject({ pseudonym, named: true });
  });

  it("of a key that has named itself is an attestation like any other", async () => {
    const signer = nodeSigner();
    await world.registry.keys.register(heldRegistration(signer, "Ada"));
    const { size } = world.registry.log;
    expect(await submit(naming(signer, "Eve"))).toMatchObject({ pseudonym: "Ada", leaf_index: size });
    expect(kinds(size)).toHaveLength(1);
  });

  it("brings back no key that its holder has ended", async () => {
    const [revoked, expired] = [nodeSigner(), nodeSigner()];
    await world.registry.keys.register(registration(revoked, "Ada"));
    await world.registry.keyLifecycle.revoke(revoked.fingerprint);
    await world.registry.keys.register(heldRegistration(expired, "Ada", at(world.now + SECOND)));
    world.now += DAY;
    for (const signer of [revoked, expired])
      expect(await failure(() => submit(naming(signer, "Ada")))).toMatchObject({ code: "key-not-active" });
  });

  it("sent again is answered with the first receipt, and writes nothing", async () => {
    const signer = nodeSigner();
    const plain = submission(signer, manifestOf("twice"), { pseudonym: "Ada" }) as unknown as Submission;
    const first = await submit(plain);
    const { size } = world.registry.log;
    const again = await submit({ ...plain, possession_signature: possession(signer, "Ada") });
    expect(again).toEqual({ ...first, duplicate: true });
    expect(world.registry.log.size).toBe(size);
  });

  it.each<[string, (signer: TestSigner) => Partial<Submission>, string]>([
    ["another key's", () => ({ possession_signature: possession(nodeSigner(), "Ada") }), "invalid-signature"],
    ["over another name", () => ({ pseudonym: "Eve" }), "invalid-signature"],
    ["over no name", (signer) => ({ possession_signature: possession(signer, null) }), "invalid-signature"],
    ["no base64", () => ({ possession_signature: "no base64" }), "invalid-input"],
    ["no text", () => ({ possession_signature: 7 as never }), "invalid-input"],
  ])("that is %s is refused", async (_, change, code) => {
    const signer = nodeSigner();
    const { size } = world.registry.log;
    expect(await failure(() => submit(naming(signer, "Ada", change(signer))))).toMatchObject({ code });
    expect(world.registry.log.size).toBe(size);
  });

  it("in a list registers the key once, by the first that is recorded", async () => {
    const signer = nodeSigner();
    const { size } = world.registry.log;
    const wrong = { ...naming(signer, "Ada"), signature: naming(signer, "Ada").signature };
    const items = [wrong, naming(signer, "Ada"), naming(signer, "Ada")];
    const results = await world.registry.attestations.submitAll(items, (submitted) => ({
      submission: submitted,
      possession: null,
    }));
    expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect(kinds(size).map((kind) => kind === "key_registration")).toEqual([true, false, false]);
    expect(keyOf(signer)).toMatchObject({ pseudonym: "Ada", named: true });
  });
});
