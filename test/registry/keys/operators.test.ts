/** Operator keys in the registry: what a rotation says of both keys holds, whatever is registered afterwards. */
import { afterAll, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { systemClock as clock } from "#cairnlog/engine/log/state/clock.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { keyFrom } from "#cairnlog/server/client/static/key.js";
import { lookupHashes } from "#cairnlog/server/client/static/run.js";
import {
  closeWorlds,
  failure,
  HASH,
  heldRegistration,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  pemSigner,
  registration,
  submission,
  type TestSigner,
  type World,
} from "../world.js";

afterAll(closeWorlds);

/** A log that was handed over, and the signers of its two operator keys. */
async function rotated(before: (world: World, next: TestSigner) => Promise<unknown>) {
  const [path, from, to] = [newFolder(), generatePrivateKey("ed25519"), generatePrivateKey("ed25519")];
  const first = await openWorld(path, from, { clock });
  await before(first, pemSigner(to));
  await first.registry.close();
  await rotateOperatorKey({ path, from: operatorKey(from), to: operatorKey(to), projection });
  const world = await openWorld(path, to, { clock });
  return { world, retired: first.operator, current: world.operator };
}

const ACCOUNT = {
  display_name: "Ada",
  email: "ada@example.org",
  credential_type: "software",
  device_label: "one",
} as const;
const proof = { recovery: false };
const succession = (old: TestSigner, next: TestSigner, new_key_signature: string | null) => ({
  old_fingerprint: old.fingerprint,
  new_public_key: next.pem,
  new_algorithm: next.algorithm,
  ...(new_key_signature === null ? {} : { new_key_signature }),
});

test("a retired operator key stays succeeded: nothing registers it anew", async () => {
  const other = nodeSigner();
  const { world, retired, current } = await rotated(({ registry }) => registry.keys.register(registration(other)));
  const { keys, keyLifecycle, attestations, accounts, log } = world.registry;
  const standing = () => keys.detail(retired.fingerprint);
  const before = standing();
  expect(before).toMatchObject({
    status: "succeeded",
    successor_fingerprint: current.fingerprint,
    successor_confirmed: true,
  });
  const size = log.size;
  const link = `service.key.succession.v1:${other.fingerprint}:${retired.fingerprint}`;
  for (const [code, way] of [
    ["already-exists", () => keys.register(registration(retired))],
    ["already-exists", () => keys.register(heldRegistration(retired))],
    ["already-exists", () => keyLifecycle.succeed(succession(other, retired, null), proof)],
    ["already-exists", () => keyLifecycle.succeed(succession(other, retired, retired.sign(link)), proof)],
    ["key-not-active", () => attestations.submit(submission(retired, manifestOf()))],
    ["wrong-key-status", () => accounts.create({ ...ACCOUNT, key_fingerprint: retired.fingerprint })],
  ] as const) {
    expect((await failure(way)).code).toBe(code);
    expect(standing()).toEqual(before);
  }
  expect(log.size).toBe(size);

  // Earlier versions took such a registration.
  const { fingerprint, pem: public_key } = retired;
  const named = {
    pseudonym: "someone",
    key_algorithm: retired.algorithm,
    expiration_date: null,
    possession_signature: null,
  };
  await world.append(eventOf("key_registration", { fingerprint, public_key, ...named }));
  const { status, successor_fingerprint, successor_confirmed } = before;
  expect(standing()).toMatchObject({ pseudonym: "someone", status, successor_fingerprint, successor_confirmed });
  expect((await failure(() => attestations.submit(submission(retired, manifestOf())))).code).toBe("key-not-active");
});

test("both keys of a rotation confirm it, whoever registers the new one, before or afterwards", async () => {
  const ways: readonly ((world: World, key: TestSigner) => Promise<unknown>)[] = [
    ({ registry }, key) => registry.keys.register(registration(key, "by a stranger")),
    ({ registry }, key) => registry.attestations.submit(submission(key, manifestOf("of the new key"))),
    ({ registry }, key) => registry.keys.register(heldRegistration(key, "by itself")),
  ];
  for (const isBefore of [true, false]) {
    let id = "";
    let attested = {};
    const { world, retired, current } = await rotated(async (first, next) => {
      const { attestation } = await first.registry.attestations.submit(submission(first.operator, manifestOf()));
      ({ id } = attestation);
      attested = attestation;
      if (isBefore) for (const way of ways) await way(first, next);
    });
    const { keys, verification, requests, attestations } = world.registry;
    // What a reader of the published entries works out is the same, as far as they say it.
    const published = ({ fingerprint }: TestSigner) => {
      const all = Array.from({ length: world.registry.log.size }, (_, i) => world.registry.log.entryAt(i)!);
      const term = fingerprint.slice("sha256:".length);
      return keyFrom(
        fingerprint,
        all.filter((entry) => lookupHashes(entry).includes(term)),
      );
    };
    const check = async () => {
      for (const key of [retired, current]) {
        const { proven: _, ...known } = published(key) ?? keys.detail(key.fingerprint);
        expect(keys.detail(key.fingerprint)).toMatchObject({ ...known, registered_at: expect.any(String) });
      }
      expect([keys.detail(retired.fingerprint), keys.detail(current.fingerprint)]).toMatchObject([
        { status: "succeeded", successor_fingerprint: current.fingerprint, successor_confirmed: true },
        { status: "active", predecessor_fingerprint: retired.fingerprint, predecessor_confirmed: true },
      ]);
      const manifest = { ...manifestOf(), attestations: [attested] };
      expect((await verification.verify({ manifest, source_hash: HASH })).attestations).toMatchObject([
        { id, layer1: { status: "valid" }, layer2: { status: "valid" } },
      ]);
    };
    await check();
    for (const way of isBefore ? [] : ways) {
      await way(world, current);
      await check();
    }
    // What the new key attests answers a request to the old one.
    const asker = nodeSigner();
    await world.registry.keys.register(registration(asker));
    const request = { target_fingerprint: retired.fingerprint, attestation_type: "authorship", nonce: "1" };
    const { request_id } = await requests.create(asker.fingerprint, request);
    const { attestation } = await attestations.submit(submission(current, manifestOf("asked for")));
    const answer = { decision: "accept", attestation_id: attestation.id } as const;
    expect(await requests.respond(asker.fingerprint, request_id, answer)).toMatchObject({ status: "accepted" });
  }
});
