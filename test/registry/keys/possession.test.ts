/**
 * The holder of a key takes precedence over anybody who recorded something for it (docs/spec §4.7).
 */
import { open } from "lmdb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import type { KeyRow } from "#cairnlog/engine/store/schema/rows.js";
import {
  ALGORITHMS,
  at,
  closeWorlds,
  DAY,
  failure,
  HASH,
  heldRegistration,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  type Registration,
  registration,
  SECOND,
  submission,
  type TestSigner,
  type World,
} from "../world.js";

type Succession = Parameters<World["registry"]["keyLifecycle"]["succeed"]>[0];

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

const keyOf = ({ fingerprint }: TestSigner) => world.registry.keys.detail(fingerprint);
/** A registration that a stranger can make for somebody else's key. */
const register = (signer: TestSigner, pseudonym = "squatter", expiration?: string | null) =>
  world.registry.keys.register(registration(signer, pseudonym, expiration));

const held = heldRegistration;
const claim = (signer: TestSigner, ...rest: [pseudonym?: string, expiration?: string | null]) =>
  world.registry.keys.register(held(signer, ...rest));

const succession = (old: TestSigner, next: TestSigner, isSigned: boolean): Succession => ({
  old_fingerprint: old.fingerprint,
  new_public_key: next.pem,
  new_algorithm: next.algorithm,
  ...(isSigned
    ? { new_key_signature: next.sign(`service.key.succession.v1:${old.fingerprint}:${next.fingerprint}`) }
    : {}),
});
const succeed = (old: TestSigner, next: TestSigner, isSigned = false) =>
  world.registry.keyLifecycle.succeed(succession(old, next, isSigned), { recovery: false });

describe("a registration", () => {
  it.each(ALGORITHMS)("with a signature of the key proves it (%s)", async (algorithm) => {
    const signer = nodeSigner(algorithm);
    const { log_entry_id } = await claim(signer, "Ada");
    expect(keyOf(signer)).toMatchObject({ pseudonym: "Ada", proven: true, log_entry_id });
    const { payload } = world.registry.log.entry(log_entry_id)!;
    expect(payload!.possession_signature).toMatch(/^[\w+/]+=*$/);
  });

  it("without one proves nothing, and its entry says so", async () => {
    const signer = nodeSigner();
    const { log_entry_id } = await register(signer);
    expect(keyOf(signer).proven).toBe(false);
    expect(world.registry.log.entry(log_entry_id)!.payload).toHaveProperty("possession_signature", null);
  });

  it("is signed as it was sent, not as it is stored", async () => {
    const signer = nodeSigner();
    const expiration = "2030-01-01T02:00:00+02:00";
    await claim(signer, "Ada\u0308", expiration);
    expect(keyOf(signer)).toMatchObject({
      pseudonym: "Ad\u00e4",
      expires_at: "2030-01-01T00:00:00.000000Z",
      proven: true,
    });
  });

  it.each([
    [
      "another key's",
      (signer: TestSigner) => ({ ...held(signer), possession_signature: held(nodeSigner()).possession_signature! }),
    ],
    ["over another pseudonym", (signer: TestSigner) => ({ ...held(signer), pseudonym: "another" })],
    ["over another expiration", (signer: TestSigner) => ({ ...held(signer), expiration_date: "2031-01-01T00:00:00Z" })],
    [
      "over a succession",
      (signer: TestSigner) => ({
        ...held(signer),
        possession_signature: signer.sign(`service.key.succession.v1:${signer.fingerprint}:${signer.fingerprint}`),
      }),
    ],
  ])("with a signature that is %s is refused", async (_, input) => {
    const { size } = world.registry.log;
    expect(await failure(() => world.registry.keys.register(input(nodeSigner())))).toMatchObject({
      code: "invalid-signature",
    });
    expect(world.registry.log.size).toBe(size);
  });

  it.each([[7], ["no base64"], [""], ["===="]])("with %j for a signature is refused", async (possession_signature) => {
    const input = { ...registration(nodeSigner()), possession_signature } as Registration;
    expect(await failure(() => world.registry.keys.register(input))).toMatchObject({
      code: possession_signature === "" ? expect.stringMatching(/^invalid-/) : "invalid-input",
    });
  });
});

describe("what a stranger recorded for a key", () => {
  it("gives way to a registration by its holder", async () => {
    const signer = nodeSigner();
    const first = await register(signer, "squatter", at(world.now + SECOND));
    world.now += DAY;
    const { keys, log } = world.registry;
    expect(keys.find(signer.fingerprint).status).toBe("expired");
    const receipt = await claim(signer, "Ada");
    expect(receipt).toMatchObject({ fingerprint: signer.fingerprint, pseudonym: "Ada", log_entry_id: log.size });
    expect(receipt.log_entry_id).toBeGreaterThan(first.log_entry_id);
    expect(keyOf(signer)).toMatchObject({
      pseudonym: "Ada",
      status: "active",
      expires_at: null,
      log_entry_id: receipt.log_entry_id,
      registered_at: at(world.now),
      proven: true,
    });
    const found = await keys.search("Ada", { per_page: 200 });
    expect(found.keys.map(({ fingerprint }) => fingerprint)).toContain(signer.fingerprint);
  });

  it("gives way also after the key has signed something else, which stays valid", async () => {
    const [stranger, signer] = [nodeSigner(), nodeSigner()];
    await claim(stranger);
    await succeed(stranger, signer);
    const registered = at(world.now);
    world.now += SECOND;
    const { attestation } = await world.registry.attestations.submit(submission(signer, manifestOf("first")) as never);
    expect(keyOf(signer)).toMatchObject({ proven: true, named: false, predecessor_confirmed: false });
    world.now += SECOND;
    const { log_entry_id } = await claim(signer, "Ada");
    expect(keyOf(signer)).toMatchObject({
      pseudonym: "Ada",
      named: true,
      predecessor_fingerprint: null,
      predecessor_confirmed: null,
      registered_at: registered,
      log_entry_id,
    });
    const manifest = { ...manifestOf("first"), attestations: [attestation] };
    const verdict = await world.registry.verification.verify({ manifest, source_hash: HASH });
    expect(verdict.overall_status).toBe("valid");
    expect(await failure(() => claim(signer, "Eve"))).toMatchObject({ code: "already-exists" });
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });

  it("as an expiration ends nothing for ever: its holder registers, and an expiration of its own stays", async () => {
    const signer = nodeSigner();
    await register(signer, "squatter", at(world.now + SECOND));
    await world.registry.attestations.submit(submission(signer, manifestOf("expiring")) as never);
    world.now += DAY;
    const again = () => world.registry.attestations.submit(submission(signer, manifestOf("expired")) as never);
    expect(await failure(again)).toMatchObject({ code: "key-not-active" });
    await claim(signer, "Ada", at(world.now + SECOND));
    await again();
    world.now += DAY;
    expect(keyOf(signer)).toMatchObject({ status: "expired", named: true });
    expect(await failure(() => claim(signer, "Ada"))).toMatchObject({ code: "already-exists" });
  });

  it("gives way to a succession that a key has signed which has acted before", async () => {
    const [old, next] = [nodeSigner(), nodeSigner()];
    await claim(old, "Ada");
    await register(next);
    await world.registry.attestations.submit(submission(next, manifestOf("acting")) as never);
    await succeed(old, next, true);
    expect(keyOf(next)).toMatchObject({
      pseudonym: "Ada",
      named: true,
      predecessor_fingerprint: old.fingerprint,
      predecessor_confirmed: true,
    });
    expect(keyOf(old)).toMatchObject({ successor_confirmed: true });
    expect(world.registry.keys.status(old.fingerprint)).toMatchObject({ successor_confirmed: true, named: true });
  });

  it("does so once: then the key is named", async () => {
    const signer = nodeSigner();
    await register(signer);
    await claim(signer, "Ada");
    const { size } = world.registry.log;
    for (const again of [() => claim(signer, "Eve"), () => claim(signer, "Ada"), () => register(signer)])
      expect(await failure(again)).toMatchObject({ code: "already-exists" });
    expect(world.registry.log.size).toBe(size);
    expect(keyOf(signer).pseudonym).toBe("Ada");
  });

  it("does not give way to another stranger", async () => {
    const signer = nodeSigner();
    await register(signer, "first");
    expect(await failure(() => register(signer, "second"))).toMatchObject({ code: "already-exists" });
    expect(keyOf(signer).pseudonym).toBe("first");
  });

  it("as a predecessor is removed", async () => {
    const [stranger, signer] = [nodeSigner(), nodeSigner()];
    await claim(stranger);
    await succeed(stranger, signer);
    expect(keyOf(signer)).toMatchObject({
      predecessor_fingerprint: stranger.fingerprint,
      predecessor_confirmed: false,
      proven: false,
      named: false,
    });
    const ended = {
      status: "succeeded",
      successor_fingerprint: signer.fingerprint,
      successor_confirmed: false,
    };
    expect(keyOf(stranger)).toMatchObject(ended);
    await claim(signer, "Ada");
    expect(keyOf(signer)).toMatchObject({
      predecessor_fingerprint: null,
      predecessor_confirmed: null,
      pseudonym: "Ada",
      proven: true,
      named: true,
    });
    expect(keyOf(stranger)).toMatchObject(ended);
    expect(world.registry.keys.status(stranger.fingerprint)).toMatchObject({ successor_confirmed: false });
  });

  it("gives way to a succession that the new key has signed, and to no other", async () => {
    const [old, next] = [nodeSigner(), nodeSigner()];
    await claim(old, "Ada");
    await register(next, "squatter", at(world.now + SECOND));
    expect(await failure(() => succeed(old, next))).toMatchObject({ code: "already-exists" });
    const { log_entry_id } = await succeed(old, next, true);
    expect(keyOf(next)).toMatchObject({
      pseudonym: "Ada",
      expires_at: null,
      predecessor_fingerprint: old.fingerprint,
      log_entry_id,
      proven: true,
    });
    const another = nodeSigner();
    await claim(another);
    expect(await failure(() => succeed(another, next, true))).toMatchObject({ code: "already-exists" });
  });

  it("at one moment gives way to one of two holders' registrations", async () => {
    const signer = nodeSigner();
    await register(signer);
    const results = await Promise.allSettled([claim(signer, "one"), claim(signer, "two")]);
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });
});

describe("a key is proven", () => {
  it("by its attestation", async () => {
    const signer = nodeSigner();
    await register(signer);
    await world.registry.attestations.submit(submission(signer, manifestOf("proving")) as never);
    expect(keyOf(signer)).toMatchObject({ proven: true, named: false });
  });

  it("by an attestation that registers it", async () => {
    const signer = nodeSigner();
    await world.registry.attestations.submit(submission(signer, manifestOf("registering")) as never);
    expect(keyOf(signer)).toMatchObject({ proven: true, named: false });
  });

  it("by a succession that it authorised, which proves the new one only where that has signed, too", async () => {
    const [old, next, last] = [nodeSigner(), nodeSigner(), nodeSigner()];
    await register(old);
    await succeed(old, next);
    expect([keyOf(old).proven, keyOf(next).proven]).toEqual([true, false]);
    const { log_entry_id } = await succeed(next, last, true);
    expect([keyOf(next).proven, keyOf(last).proven]).toEqual([true, true]);
    expect(world.registry.log.entry(log_entry_id)!.payload!.new_key_signature).toBe(
      succession(next, last, true).new_key_signature,
    );
  });

  it("by its revocation, so that no registration undoes that", async () => {
    const signer = nodeSigner();
    await register(signer);
    await world.registry.keyLifecycle.revoke(signer.fingerprint);
    expect(keyOf(signer)).toMatchObject({ status: "revoked", proven: true });
    expect(await failure(() => claim(signer))).toMatchObject({ code: "already-exists" });
  });

  it("by what it does among keys, and not by what others do to it", async () => {
    const [actor, other] = [nodeSigner(), nodeSigner()];
    const parties = { endorser_key_fingerprint: actor.fingerprint, endorsed_key_fingerprint: other.fingerprint };
    const reversed = { endorser_key_fingerprint: other.fingerprint, endorsed_key_fingerprint: actor.fingerprint };
    const events = [
      ["endorsement_offer", parties],
      ["endorsement_acceptance", reversed],
      ["endorsement_withdrawal", parties],
      ["acceptance_revocation", reversed],
      [
        "endorser_revocation_alert",
        { endorser_key_fingerprint: actor.fingerprint, compromised_key_fingerprint: other.fingerprint },
      ],
      ["attestation_request", { requester_fingerprint: actor.fingerprint, target_fingerprint: other.fingerprint }],
      ["attestation_request_response", { responder_fingerprint: actor.fingerprint }],
      ["request_policy", { target_fingerprint: actor.fingerprint }],
    ] as const;
    for (const [event_type, payload] of events) {
      const inner = await openWorld();
      await inner.registry.keys.register(registration(actor));
      await inner.registry.keys.register(registration(other));
      await inner.append({ event_type, payload });
      const proven = [actor, other].map(({ fingerprint }) => inner.registry.keys.detail(fingerprint).proven);
      expect([event_type, ...proven]).toEqual([event_type, true, false]);
      expect(inner.registry.log.stateDifferences()).toEqual([]);
    }
  });
});

describe("the state of possession", () => {
  it("follows from the log, also after a restart", async () => {
    expect(world.registry.log.stateDifferences()).toEqual([]);
    await world.reopen();
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });

  it("of a log that was written before signatures were kept: keys that acted are proven", async () => {
    const inner = await openWorld();
    const [idle, acting] = [nodeSigner(), nodeSigner()];
    const oldPayload = (signer: TestSigner) => ({
      fingerprint: signer.fingerprint,
      public_key: signer.pem,
      pseudonym: "before",
      key_algorithm: signer.algorithm,
      expiration_date: null,
    });
    for (const signer of [idle, acting])
      await inner.append({ event_type: "key_registration", payload: oldPayload(signer) });
    await inner.append({ event_type: "key_registration", payload: oldPayload(idle) });
    await inner.registry.attestations.submit(submission(acting, manifestOf("acting")) as never);
    const { keys } = inner.registry;
    expect([idle, acting].map(({ fingerprint }) => keys.detail(fingerprint).proven)).toEqual([false, true]);
    expect(await keys.register(held(idle, "holder"))).toMatchObject({ pseudonym: "holder" });
    expect(inner.registry.log.stateDifferences()).toEqual([]);
  });

  it("is added to the rows of a data directory of an older version", async () => {
    const path = newFolder();
    const pem = generatePrivateKey("ed25519");
    const inner = await openWorld(path, pem);
    const [idle, acting, revoked, late] = [nodeSigner(), nodeSigner(), nodeSigner(), nodeSigner()];
    for (const signer of [idle, acting, revoked]) await inner.registry.keys.register(registration(signer));
    await inner.registry.attestations.submit(submission(acting, manifestOf("acting")) as never);
    await inner.registry.keyLifecycle.revoke(revoked.fingerprint);
    // Imported history may have acts of keys that are registered later. They have no effect.
    await inner.append({ event_type: "key_revocation", payload: { fingerprint: late.fingerprint } });
    await inner.registry.keys.register(registration(late));
    const signers = [idle, acting, revoked, late];
    const detailed = (from: World) => signers.map(({ fingerprint }) => from.registry.keys.detail(fingerprint));
    const before = detailed(inner);
    expect(before.map(({ proven }) => proven)).toEqual([false, true, true, false]);
    const meta = inner.registry.log.row("meta", "log")!;
    await inner.registry.close();

    const env = open({ path, maxDbs: 50, mapSize: 2 ** 30 });
    await env.openDB({ name: "meta" }).put("log", { ...meta, format: 2 });
    const rows = env.openDB<KeyRow, string>({ name: "keys" });
    for (const { key, value } of [...rows.getRange()]) {
      const { proven: _, ...old } = value;
      await rows.put(key, old as KeyRow);
    }
    await env.flushed;
    await env.close();

    const later = await openWorld(path, pem);
    expect(later.registry.log.row("meta", "log")).toEqual(meta);
    expect(detailed(later)).toEqual(before);
    expect(later.registry.log.stateDifferences()).toEqual([]);
  });
});
