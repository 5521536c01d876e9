import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import type { EventInput } from "#cairnlog/engine/log/state/projection.js";
import { jsonValues } from "../texts.js";
import { at, closeWorlds, DAY, manifestOf, nodeSigner, openWorld, submission, type TestSigner } from "./world.js";

afterAll(closeWorlds);

const registered = (signer: TestSigner, more: Record<string, unknown> = {}): EventInput => ({
  event_type: "key_registration",
  payload: {
    fingerprint: signer.fingerprint,
    public_key: signer.pem,
    pseudonym: "someone",
    key_algorithm: signer.algorithm,
    expiration_date: null,
    ...more,
  },
});
const succeeded = (old: TestSigner, next: TestSigner, more: Record<string, unknown> = {}): EventInput => ({
  event_type: "key_succession",
  payload: { ...registered(next).payload, old_fingerprint: old.fingerprint, ...more },
});
const revoked = (signer: TestSigner): EventInput => ({
  event_type: "key_revocation",
  payload: { fingerprint: signer.fingerprint },
});

describe("succession and revocation", () => {
  it("link the two keys and end the old one", async () => {
    const world = await openWorld();
    const [first, second] = [nodeSigner(), nodeSigner("rsa-2048")];
    await world.append(registered(first));
    world.now += DAY;
    await world.append(succeeded(first, second, { pseudonym: "someone new", expiration_date: at(world.now + DAY) }));
    const { keys } = world.registry;
    expect(keys.find(first.fingerprint)).toMatchObject({
      status: "succeeded",
      successor_fingerprint: second.fingerprint,
      ended_at: at(world.now),
    });
    expect(keys.find(second.fingerprint)).toMatchObject({
      status: "active",
      algorithm: "rsa-2048",
      pseudonym: "someone new",
      predecessor_fingerprint: first.fingerprint,
      registered_at: at(world.now),
      expires_at: at(world.now + DAY),
      log_entry_id: 2,
    });
    expect(keys.list().keys.map(({ fingerprint }) => fingerprint)).toEqual([first.fingerprint, second.fingerprint]);
    expect((await keys.search("ONE NEW")).total).toBe(1);
    world.now += 1;
    await world.append(revoked(second));
    expect(keys.find(second.fingerprint)).toMatchObject({ status: "revoked", ended_at: at(world.now) });
    expect(world.registry.log.stateDifferences()).toEqual([]);
    await world.reopen();
    expect(world.registry.keys.status(first.fingerprint).successor_fingerprint).toBe(second.fingerprint);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });

  it("win over expiry, and change nothing of a key that has ended", async () => {
    const world = await openWorld();
    const [first, second, third] = [nodeSigner(), nodeSigner(), nodeSigner()];
    await world.append(registered(first, { expiration_date: at(world.now + DAY) }), succeeded(first, second));
    world.now += 2 * DAY;
    const { keys } = world.registry;
    const before = keys.find(first.fingerprint);
    expect(before.status).toBe("succeeded");
    await world.append(revoked(first), succeeded(first, third), registered(first));
    expect(keys.find(first.fingerprint)).toEqual(before);
    expect(keys.lookup(third.fingerprint)).toBeUndefined();
    await world.append(revoked(second));
    const ended = keys.find(second.fingerprint);
    world.now += DAY;
    await world.append(revoked(second), succeeded(second, third));
    expect(keys.find(second.fingerprint)).toEqual(ended);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });
});

describe("events that make no sense", () => {
  const [known, unknown, other] = [nodeSigner(), nodeSigner(), nodeSigner("ecdsa-p256")];
  const odd: EventInput[] = [
    registered(known, { pseudonym: "again" }),
    ...["fingerprint", "public_key", "pseudonym", "key_algorithm", "expiration_date"]
      .flatMap((member) =>
        [7, "x", "", false, [], {}, "x".repeat(5000)].map((value) => registered(unknown, { [member]: value })),
      )
      .filter(({ payload }) => typeof payload.pseudonym !== "string" || payload.pseudonym === "someone"),
    registered(unknown, { fingerprint: other.fingerprint }),
    registered(unknown, { key_algorithm: "rsa-2048" }),
    { event_type: "key_registration", payload: {} },
    succeeded(unknown, other),
    succeeded(known, known),
    { event_type: "key_succession", payload: { old_fingerprint: known.fingerprint } },
    ...[7, null, "x", "x".repeat(5000), {}].map((old_fingerprint) => succeeded(known, other, { old_fingerprint })),
    revoked(unknown),
    ...[7, null, "", "x".repeat(5000), []].map((fingerprint) => ({
      event_type: "key_revocation",
      payload: { fingerprint },
    })),
    { event_type: "key_expiry", payload: { fingerprint: known.fingerprint } },
    { event_type: "https://example.org/x", payload: {} },
    {
      event_type: "https://example.org/x",
      payload: { attestation_id: 7, signer_key_fingerprint: [], manifest_hash: {} },
    },
    { event_type: "attestation", payload: { attestation_id: "x", signer_key_fingerprint: "y", manifest_hash: "z" } },
  ];

  it("change no key", async () => {
    const world = await openWorld();
    // Proven already: the event required the key's signature, whatever else its effect is.
    await world.append(registered(known, { possession_signature: "as it was verified" }));
    const { keys, log } = world.registry;
    const before = keys.find(known.fingerprint);
    for (const event of odd) {
      await world.append(event);
      expect(keys.find(known.fingerprint)).toEqual(before);
      for (const { fingerprint } of [unknown, other]) expect(keys.lookup(fingerprint)).toBeUndefined();
    }
    expect(log.stateDifferences()).toEqual([]);
    expect(keys.list().keys.map(({ fingerprint }) => fingerprint)).toEqual([known.fingerprint]);
    expect((await keys.search("again")).total).toBe(0);
    await world.reopen();
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });

  it("never throw, for any JSON", async () => {
    const world = await openWorld();
    const member = fc.constantFrom(
      "fingerprint",
      "old_fingerprint",
      "public_key",
      "pseudonym",
      "key_algorithm",
      "expiration_date",
      "attestation_id",
      "signer_key_fingerprint",
      "manifest_hash",
    );
    const value = fc.oneof(
      jsonValues(),
      fc.constantFrom(known.fingerprint, known.pem, "ed25519", other.pem, other.fingerprint, "2030-01-01T00:00:00Z"),
    );
    const type = fc.constantFrom("key_registration", "key_succession", "key_revocation", "https://example.org/x");
    await fc.assert(
      fc.asyncProperty(type, fc.dictionary(member, value), async (event_type, payload) => {
        await world.append({ event_type, payload: { ...payload } });
      }),
      { numRuns: 150 },
    );
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });
});

it("state follows from a mixed history, also after a restart", async () => {
  const world = await openWorld();
  const signers = Array.from({ length: 6 }, (_, i) => nodeSigner(i % 2 ? "ecdsa-p256" : "ed25519"));
  const { attestations, keys } = world.registry;
  await Promise.all([
    ...signers.slice(0, 3).map((signer) => attestations.submit(submission(signer, manifestOf()))),
    keys.register(registered(signers[3]!).payload as never),
    world.append({ event_type: "something_else", payload: { fingerprint: "x", tags: ["a"] } }),
  ]);
  await world.append(succeeded(signers[0]!, signers[4]!), revoked(signers[1]!), revoked(signers[5]!));
  await Promise.all(
    signers.slice(2, 5).map((signer) => attestations.submit(submission(signer, manifestOf("Another title")))),
  );
  expect(world.registry.log.stateDifferences()).toEqual([]);
  await world.reopen();
  expect(world.registry.log.stateDifferences()).toEqual([]);
  // An event that does not belong in this log can only be written directly, and verification reports it.
  expect((await world.registry.log.verify()).errors).toEqual([expect.objectContaining({ code: "wrong-event" })]);
  expect(world.registry.keys.list().total).toBe(5);
});
