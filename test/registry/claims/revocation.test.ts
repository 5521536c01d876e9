/** A poster's credential is revoked while claims are posted: no claim comes after the revocation. */
import { randomUUID } from "node:crypto";
import { beforeEach, expect, it } from "vitest";
import { systemClock } from "#cairnlog/engine/log/state/clock.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { createAccount, recoverAccount } from "#cairnlog/engine/registry/accounts/commands.js";
import { Claims } from "#cairnlog/engine/registry/claims/claims.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { registerKey } from "#cairnlog/engine/registry/keys/commands.js";
import { Writes } from "#cairnlog/engine/registry/writes/writes.js";
import { type Faults, openFaultyLog } from "../../log/harness.js";
import { newRecipient, seal } from "../../verify/claims/ecies.js";
import { nodeSigner, sha256, type TestSigner } from "../world.js";

let log: LogWriter;
let faults: Faults;
let claims: Claims;
const user_id = randomUUID();
const hardware_roots: string[] = [];
let poster: TestSigner;
let successor: TestSigner;

const newCredential = ({ fingerprint }: TestSigner) => ({
  id: randomUUID(),
  key_fingerprint: fingerprint,
  credential_type: "hardware" as const,
  device_label: "a token",
  hardware_root: null,
});

beforeEach(async () => {
  ({ log, faults } = await openFaultyLog({ projection }));
  claims = new Claims({
    log,
    writes: new Writes(log, { isReached: () => false, reaches: async () => false }),
    credentials: { hardwareRoots: hardware_roots },
    clock: systemClock,
    reveals: null,
    bytesPerKey: 2 ** 24,
  });
  [poster, successor] = [nodeSigner(), nodeSigner()];
  for (const key of [poster, successor])
    await log.execute(registerKey, { key, pseudonym: "holder", expiration_date: null, possession_signature: null });
  await log.execute(createAccount, {
    user: { id: user_id, display_name: "Ada", email: "ada@example.org", recovery_hash: "first" },
    folded_name: "ada",
    credential: newCredential(poster),
    hardware_roots,
  });
});

const post = () =>
  claims.post(seal({ a: 1 }, newRecipient().point, { lookupKey: sha256("a") }).payload, poster.fingerprint);

/** Gives the account another credential, which revokes the poster's. */
const revoke = () =>
  log.execute(recoverAccount, {
    user_id,
    known_hash: "first",
    recovery_hash: "second",
    credential: newCredential(successor),
    hardware_roots,
  });

it("is refused when the revocation is earlier in the same batch", async () => {
  const [revoked, posted] = await Promise.allSettled([revoke(), post()]);
  expect(revoked.status).toBe("fulfilled");
  expect(posted).toMatchObject({ reason: { code: "forbidden" } });
  expect(log.size).toBe(2);
});

it("is refused when the revocation is on its way to the disk", async () => {
  let release = () => {};
  faults.hold = new Promise((resolve) => {
    release = resolve;
  });
  const revoked = revoke();
  // This number of commands is formed without waiting for the disk.
  while (log.queued) await new Promise((resolve) => setImmediate(resolve));
  const appends = Array.from({ length: 200 }, (_, n) => log.append({ event_type: "note", payload: { n } }));
  const posted = Promise.allSettled([post()]);
  while (log.queued) await new Promise((resolve) => setImmediate(resolve));
  expect(log.row("users", user_id)).toMatchObject({ recovery_hash: "first" });
  release();
  await Promise.all([revoked, ...appends]);
  expect(await posted).toMatchObject([{ reason: { code: "forbidden" } }]);
  expect(log.size).toBe(2 + appends.length);
});

it("is accepted if the account was recovered with the same key", async () => {
  const recovered = log.execute(recoverAccount, {
    user_id,
    known_hash: "first",
    recovery_hash: "second",
    credential: newCredential(poster),
    hardware_roots,
  });
  const [, posted] = await Promise.all([recovered, post()]);
  expect(posted.leaf_index).toBe(2);
});
