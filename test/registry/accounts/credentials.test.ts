/** Credentials: enrolling further keys, and which keys are hardware-backed. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HardwareRoots } from "#cairnlog/engine/crypto/hardware.js";
import { committedState } from "#cairnlog/engine/registry/accounts/accounts.js";
import { enrollCredential, hasHardware, recoverAccount } from "#cairnlog/engine/registry/accounts/commands.js";
import { type Authority, newRoot, removeChains } from "../../crypto/chains.js";
import {
  at,
  closeWorlds,
  compact,
  failure,
  newFolder,
  nodeSigner,
  openWorld,
  registration,
  SECOND,
  type TestSigner,
  type World,
} from "../world.js";
import { chainMessage, type Enrolment, type EnrolmentMembers, enrolment } from "./holders.js";

const MAX_CREDENTIALS = 100;

afterAll(async () => {
  await closeWorlds();
  removeChains();
});

async function newKey(world: World): Promise<TestSigner> {
  const signer = nodeSigner();
  await world.registry.keys.register(registration(signer));
  return signer;
}

let names = 0;
/** Opens an account with the key of `signer`. */
const open = (world: World, signer: TestSigner, more: EnrolmentMembers = {}) =>
  world.registry.accounts.create({
    display_name: `Holder ${++names}`,
    email: "holder@example.org",
    credential_type: "hardware",
    key_fingerprint: signer.fingerprint,
    device_label: "a token",
    ...(more as object),
  });

/** Opens an account with a signature by the holder of the key. */
function openWithProof(world: World, signer: TestSigner) {
  const content = {
    display_name: `Holder ${++names}`,
    email: "holder@example.org",
    key_fingerprint: signer.fingerprint,
  };
  const possession_signature = signer.sign(compact({ action: "service.user.create.v1", ...content }));
  const more = { credential_type: "hardware", device_label: "a token", possession_signature } as const;
  return world.registry.accounts.create({ ...content, ...more });
}

describe("an account", () => {
  it("has at most 100 credentials: enrolment is refused, and a recovery makes room", async () => {
    const world = await openWorld();
    const { log } = world.registry;
    const issuing = await newKey(world);
    const { user } = await open(world, issuing);
    const own = () => log.rows("credentials", [user.id], [user.id, "\uffff"]).map(({ row }) => row);
    const draft = (key: TestSigner, confirmed: boolean) => ({
      id: randomUUID(),
      key_fingerprint: key.fingerprint,
      credential_type: "hardware" as const,
      device_label: "a token",
      confirmed,
      hardware_root: null,
    });
    const enroll = async (key: TestSigner) => {
      const credential = draft(key, true);
      world.now += SECOND;
      return log.execute(enrollCredential, {
        issuing_fingerprint: issuing.fingerprint,
        credential,
        hardware_roots: [],
      });
    };
    const second = await newKey(world);
    await enroll(second);
    while (own().length < MAX_CREDENTIALS) await enroll(await newKey(world));
    const last = await newKey(world);
    expect((await failure(() => enroll(last))).code).toBe("precondition-failed");

    for (const [i, key] of [issuing, second, second, last].entries()) {
      world.now += SECOND;
      const credential = draft(key, false);
      const [oldest] = own().toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1));
      const { value } = await log.execute(recoverAccount, {
        user_id: user.id,
        known_hash: log.row("users", user.id)!.recovery_hash,
        recovery_hash: `hash ${i}`,
        credential,
        hardware_roots: [],
      });
      expect(value.revoked).toBe(i ? 1 : MAX_CREDENTIALS);
      expect(own()).toHaveLength(MAX_CREDENTIALS);
      expect(own().map(({ id }) => id)).not.toContain(oldest!.id);
      expect(own().filter(({ status }) => status === "active")).toMatchObject([
        // What a key has signed for this account counts as long as it is on it.
        { id: credential.id, confirmed: key === second },
      ]);
      expect(log.row("credentialKeys", credential.key_fingerprint)).toMatchObject({ credential_id: credential.id });
    }
    // Whatever leads to a credential leads to one that is there.
    for (const { key, row } of log.rows("credentialKeys", "", "~"))
      expect(log.row("credentials", [row.user_id, row.credential_id])?.key_fingerprint).toBe(key);
  });
});

describe("enrolment, on declarations", () => {
  let world: World;
  let issuing: TestSigner;
  let userId: string;
  beforeAll(async () => {
    world = await openWorld();
    issuing = await newKey(world);
    userId = (await open(world, issuing)).user.id;
  });
  const enroll = async (request: Enrolment | Promise<Enrolment>) => world.registry.credentials.enroll(await request);
  const refused = async (key: TestSigner, more?: EnrolmentMembers) =>
    (await failure(() => enroll(enrolment(world, issuing, key, more)))).code;

  it("binds a key to the account of the issuing one, and appends nothing", async () => {
    const key = await newKey(world);
    const { size } = world.registry.log;
    expect(await enroll(enrolment(world, issuing, key))).toEqual({
      credential: {
        id: expect.any(String),
        key_fingerprint: key.fingerprint,
        credential_type: "hardware",
        device_label: "another token",
        hardware_backed: true,
        status: "active",
        created_at: at(world.now),
        revoked_at: null,
      },
    });
    expect(world.registry.log.size).toBe(size);
    expect(world.registry.log.row("credentialKeys", key.fingerprint)?.user_id).toBe(userId);
    expect(world.registry.credentials.believesDeclarations).toBe(true);
  });

  it("lets the enrolled key vouch for the next", async () => {
    const [second, third] = [await newKey(world), await newKey(world)];
    await enroll(enrolment(world, issuing, second));
    await enroll(enrolment(world, second, third));
    expect(world.registry.log.row("credentialKeys", third.fingerprint)?.user_id).toBe(userId);
  });

  it("accepts fingerprints in any form, and signs that form", async () => {
    const key = await newKey(world);
    const bare = (signer: TestSigner) => signer.fingerprint.slice("sha256:".length).toUpperCase();
    const more = { issuing_fingerprint: bare(issuing), key_fingerprint: bare(key) };
    expect((await enroll(enrolment(world, issuing, key, more))).credential.key_fingerprint).toBe(key.fingerprint);
  });

  it("checks every member, all at once", async () => {
    const everything = [
      "/credential_type",
      "/key_fingerprint",
      "/device_label",
      "/issuing_fingerprint",
      "/challenge_id",
    ];
    expect((await failure(() => enroll({} as Enrolment))).paths).toEqual([
      ...everything,
      "/chain_signature",
      "/challenge_signature",
    ]);
    const key = await newKey(world);
    const paths = async (more: EnrolmentMembers) =>
      (await failure(() => enroll(enrolment(world, issuing, key, more)))).paths;
    expect(await paths({ device_label: "é".repeat(101) })).toEqual(["/device_label"]);
    expect(await paths({ chain_signature: "no base64" })).toEqual(["/chain_signature"]);
    await enroll(enrolment(world, issuing, key, { device_label: "é".repeat(100) }));
  });

  it("wants the new key's signature over the nonce of its own challenge", async () => {
    const key = await newKey(world);
    const challenge = ({ fingerprint }: TestSigner, purpose: "login" | "general" = "general") =>
      world.registry.challenges.issue({ fingerprint, purpose, origin: "https://log.example" });
    const signed = (by: TestSigner, { challenge_id, nonce }: { challenge_id: string; nonce: string }) => ({
      challenge_id,
      challenge_signature: by.sign(nonce),
    });
    expect(await refused(key, signed(issuing, await challenge(key)))).toBe("unauthenticated");
    expect(await refused(key, signed(issuing, await challenge(issuing)))).toBe("unauthenticated");
    expect(await refused(key, signed(key, await challenge(issuing)))).toBe("unauthenticated");
    expect(await refused(key, signed(key, await challenge(key, "login")))).toBe("unauthenticated");
    expect(await refused(key, { challenge_signature: "no base64" })).toBe("unauthenticated");
    expect(await refused(key, { challenge_id: "unknown" })).toBe("not-found");
    const late = signed(key, await challenge(key));
    world.now += 301 * SECOND;
    expect(await refused(key, late)).toBe("gone");
    const used = signed(key, await challenge(key));
    await enroll(enrolment(world, issuing, key, used));
    expect(await refused(key, used)).toBe("challenge-used");
  });

  it("wants the issuing key's signature over exactly this enrolment", async () => {
    const [key, other] = [await newKey(world), await newKey(world)];
    const base = await enrolment(world, issuing, key);
    const messages: [TestSigner, EnrolmentMembers][] = [
      [key, base],
      [other, base],
      [issuing, { ...base, challenge_id: "another" }],
      [issuing, { ...base, key_fingerprint: other.fingerprint }],
      [issuing, { ...base, issuing_fingerprint: key.fingerprint }],
    ];
    for (const [signer, message] of messages) {
      const chain_signature = signer.sign(chainMessage(message));
      expect((await failure(() => enroll({ ...base, chain_signature }))).code).toBe("unauthenticated");
    }
    const action = issuing.sign(chainMessage(base).replace("enroll.v1", "enroll.v2"));
    expect((await failure(() => enroll({ ...base, chain_signature: action }))).code).toBe("unauthenticated");
    // None of these has used up the challenge.
    await enroll(base);
  });

  it("refuses keys that nobody knows, and an issuing key on no account", async () => {
    const key = await newKey(world);
    const stranger = nodeSigner();
    expect(await refused(key, { issuing_fingerprint: stranger.fingerprint })).toBe("not-found");
    expect(await refused(key, { key_fingerprint: stranger.fingerprint })).toBe("not-found");
    const unbound = await newKey(world);
    expect((await failure(() => enroll(enrolment(world, unbound, key)))).code).toBe("not-found");
  });

  it("refuses a key whose holder has put it on an account, the issuing key's own included", async () => {
    const taken = await newKey(world);
    await openWithProof(world, taken);
    expect(await refused(taken)).toBe("already-exists");
    expect(await refused(issuing)).toBe("already-exists");
    const twice = await newKey(world);
    const requests = [await enrolment(world, issuing, twice), await enrolment(world, issuing, twice)];
    const results = await Promise.allSettled(requests.map(enroll));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("moves a key from an account that somebody opened without it", async () => {
    const key = await newKey(world);
    const squatted = await open(world, key);
    const { credential } = await enroll(enrolment(world, issuing, key));
    const { log } = world.registry;
    expect(log.row("credentialKeys", key.fingerprint)).toEqual({ user_id: userId, credential_id: credential.id });
    expect(log.row("credentials", [squatted.user.id, squatted.credential.id])).toBeUndefined();
    expect(await refused(key)).toBe("already-exists");
  });

  it("refuses software on either side", async () => {
    const key = await newKey(world);
    expect(await refused(key, { credential_type: "software" })).toBe("forbidden");
    const soft = await newKey(world);
    await open(world, soft, { credential_type: "software" });
    expect((await failure(() => enroll(enrolment(world, soft, key)))).code).toBe("forbidden");
  });

  it("refuses an issuing key that has ended, or whose credential was revoked", async () => {
    const [first, key] = [await newKey(world), await newKey(world)];
    const { user, recovery_key } = await open(world, first);
    const replacement = {
      pseudonym: user.display_name,
      recovery_key,
      credential_type: "hardware",
      key_fingerprint: (await newKey(world)).fingerprint,
      device_label: "new",
    } as const;
    await world.registry.accounts.recover(replacement, "192.0.2.1");
    expect((await failure(() => enroll(enrolment(world, first, key)))).code).toBe("forbidden");

    const ended = await newKey(world);
    await open(world, ended);
    const request = await enrolment(world, ended, key);
    await world.append({ event_type: "key_revocation", payload: { fingerprint: ended.fingerprint } });
    expect((await failure(() => enroll(request))).code).toBe("key-not-active");
  });

  it("refuses a new key that has ended since it was challenged", async () => {
    const key = await newKey(world);
    const request = await enrolment(world, issuing, key);
    await world.append({ event_type: "key_revocation", payload: { fingerprint: key.fingerprint } });
    expect((await failure(() => enroll(request))).code).toBe("wrong-key-status");
  });
});

describe("hardware-backed", () => {
  let root: Authority;
  let maker: Authority;
  const options: { hardwareRoots?: HardwareRoots } = {};
  let world: World;
  beforeAll(async () => {
    root = newRoot("Root");
    maker = root.authority("Maker");
    options.hardwareRoots = new HardwareRoots(root.certificate);
    world = await openWorld(newFolder(), undefined, options);
    // Certificates are valid from the moment when they are made, which is up to a few seconds from now.
    world.now = (Date.now() + 3_600_000) * 1000;
  });
  const attestation = ({ pem }: TestSigner) => maker.certify(pem) + maker.certificate;
  const isBacked = ({ fingerprint }: TestSigner) => {
    const { log, credentials } = world.registry;
    return hasHardware(committedState(log), fingerprint, credentials.hardwareRoots);
  };
  const reopenWith = async (...roots: Authority[]) => {
    const bundle = roots.map(({ certificate }) => certificate).join("");
    options.hardwareRoots = roots.length ? new HardwareRoots(bundle) : new HardwareRoots();
    await world.reopen();
  };

  it("is a key with a hardware credential and an attestation", async () => {
    const key = await newKey(world);
    expect(isBacked(key)).toBe(false);
    const { credential } = await open(world, key, { hardware_attestation: attestation(key) });
    expect(credential).toMatchObject({ credential_type: "hardware", hardware_backed: true });
    expect(isBacked(key)).toBe(true);
    expect(world.registry.credentials.believesDeclarations).toBe(false);
  });

  it("is not a key without attestation, in software, or without an account", async () => {
    const [declared, soft] = [await newKey(world), await newKey(world)];
    expect((await open(world, declared)).credential).toMatchObject({
      credential_type: "hardware",
      hardware_backed: false,
    });
    const more = { credential_type: "software", hardware_attestation: attestation(soft) };
    expect((await open(world, soft, more)).credential.hardware_backed).toBe(false);
    for (const key of [declared, soft, nodeSigner()]) expect(isBacked(key)).toBe(false);
  });

  it("is refused with an invalid attestation", async () => {
    const [key, other] = [await newKey(world), await newKey(world)];
    const refusal = (hardware_attestation: string) => failure(() => open(world, key, { hardware_attestation }));
    expect((await refusal(attestation(other))).code).toBe("forbidden");
    expect((await refusal(newRoot("Root").certify(key.pem))).code).toBe("forbidden");
    expect(await refusal("garbage")).toMatchObject({ code: "invalid-input", paths: ["/hardware_attestation"] });
    const chain = attestation(key);
    world.now += 31 * 86_400 * SECOND;
    expect((await refusal(chain)).code).toBe("forbidden");
    world.now -= 31 * 86_400 * SECOND;
    expect(isBacked(key)).toBe(false);
  });

  it("must be both sides of an enrolment", async () => {
    const [issuing, key, declared] = [await newKey(world), await newKey(world), await newKey(world)];
    await open(world, issuing, { hardware_attestation: attestation(issuing) });
    await open(world, declared);
    const enroll = async (by: TestSigner, hardware_attestation?: string) =>
      world.registry.credentials.enroll(await enrolment(world, by, key, { hardware_attestation }));
    expect((await failure(() => enroll(issuing))).code).toBe("forbidden");
    expect((await failure(() => enroll(issuing, attestation(issuing)))).code).toBe("forbidden");
    expect((await failure(() => enroll(issuing, "garbage"))).code).toBe("invalid-input");
    expect((await failure(() => enroll(declared, attestation(key)))).code).toBe("forbidden");
    expect((await enroll(issuing, attestation(key))).credential.hardware_backed).toBe(true);
    expect(isBacked(key)).toBe(true);
  });

  it("ends with the credential, and comes with the next attestation", async () => {
    const [first, second] = [await newKey(world), await newKey(world)];
    const { user, recovery_key } = await open(world, first, { hardware_attestation: attestation(first) });
    const recovered = await world.registry.accounts.recover(
      {
        pseudonym: user.display_name,
        recovery_key,
        credential_type: "hardware",
        key_fingerprint: second.fingerprint,
        device_label: "second",
        hardware_attestation: attestation(second),
      },
      "192.0.2.1",
    );
    expect(recovered.credential.hardware_backed).toBe(true);
    expect([first, second].map(isBacked)).toEqual([false, true]);
  });

  it("is judged by the roots of today", async () => {
    const [attested, declared] = [await newKey(world), await newKey(world)];
    await open(world, attested, { hardware_attestation: attestation(attested) });
    await open(world, declared);
    expect([attested, declared].map(isBacked)).toEqual([true, false]);
    await reopenWith(newRoot("Another"));
    expect([attested, declared].map(isBacked)).toEqual([false, false]);
    await reopenWith();
    expect([attested, declared].map(isBacked)).toEqual([true, true]);
    const believed = await newKey(world);
    await open(world, believed, { hardware_attestation: attestation(believed) });
    expect(isBacked(believed)).toBe(true);
    await reopenWith(newRoot("Another"), root);
    expect([attested, declared, believed].map(isBacked)).toEqual([true, false, false]);
  });
});
