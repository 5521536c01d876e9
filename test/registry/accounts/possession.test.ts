/** An account that a stranger opened with somebody's key loses the key to its holder (docs/spec §6.1). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  closeWorlds,
  compact,
  failure,
  nodeSigner,
  openWorld,
  registration,
  type TestSigner,
  type World,
} from "../world.js";
import { type AccountInput, Holders, newName } from "./holders.js";

afterAll(closeWorlds);

let world: World;
const holders = new Holders(() => world);
beforeAll(async () => {
  world = await openWorld();
});

async function newSigner(): Promise<TestSigner> {
  const signer = nodeSigner();
  await world.registry.keys.register(registration(signer));
  return signer;
}

/** A request by the holder of a key. The signature is over exactly the sent values. */
function held(signer: TestSigner, more: Partial<AccountInput> = {}): AccountInput {
  const content = {
    display_name: newName(),
    email: "holder@example.org",
    key_fingerprint: signer.fingerprint,
    ...more,
  };
  const { display_name, email, key_fingerprint } = content;
  const statement = { action: "service.user.create.v1", display_name, email, key_fingerprint };
  const possession_signature = signer.sign(compact(statement));
  return { credential_type: "software", device_label: "a laptop", possession_signature, ...content };
}
const create = (account: AccountInput) => world.registry.accounts.create(account);
const placeOf = ({ fingerprint }: TestSigner) => world.registry.log.row("credentialKeys", fingerprint);

describe("an account opened by the holder of a key", () => {
  it("takes the key from one that somebody opened without it", async () => {
    const signer = await newSigner();
    const squatted = await holders.create({ key_fingerprint: signer.fingerprint });
    const { user, credential } = await create(held(signer));
    expect(credential).toMatchObject({ key_fingerprint: signer.fingerprint, status: "active" });
    expect(Object.keys(credential)).not.toContain("confirmed");
    expect(placeOf(signer)).toEqual({ user_id: user.id, credential_id: credential.id });
    const { log } = world.registry;
    expect(log.row("credentials", [squatted.user.id, squatted.credential.id])).toBeUndefined();
    expect(log.row("users", squatted.user.id)).toBeDefined();
  });

  it("takes it also from one that a recovery has bound it to, every row of it", async () => {
    const signer = await newSigner();
    const { user, recovery_key } = await holders.create({ key_fingerprint: signer.fingerprint });
    await holders.recover(user.display_name, recovery_key, { key_fingerprint: signer.fingerprint });
    const opened = await create(held(signer));
    expect(placeOf(signer)!.user_id).toBe(opened.user.id);
    expect(world.registry.log.rows("credentials", [user.id], [user.id, "\uffff"])).toEqual([]);
  });

  it("keeps the key", async () => {
    const signer = await newSigner();
    const { user } = await create(held(signer));
    for (const again of [() => create(held(signer)), () => holders.create({ key_fingerprint: signer.fingerprint })])
      expect(await failure(again)).toMatchObject({ code: "already-exists" });
    const other = await holders.create();
    const recovering = () =>
      holders.recover(other.user.display_name, other.recovery_key, { key_fingerprint: signer.fingerprint });
    expect(await failure(recovering)).toMatchObject({ code: "already-exists" });
    expect(placeOf(signer)!.user_id).toBe(user.id);
  });

  it("keeps it through its own recovery", async () => {
    const signer = await newSigner();
    const { user, recovery_key } = await create(held(signer));
    await holders.recover(user.display_name, recovery_key, { key_fingerprint: signer.fingerprint });
    expect(await failure(() => create(held(signer)))).toMatchObject({ code: "already-exists" });
  });

  it("is signed as it was sent: name, address and key", async () => {
    const signer = await newSigner();
    await holders.create({ key_fingerprint: signer.fingerprint });
    const key_fingerprint = signer.fingerprint.slice("sha256:".length).toUpperCase();
    const { user } = await create(held(signer, { display_name: "Ada\u0308", key_fingerprint }));
    expect(user.display_name).toBe("Ad\u00e4");
  });

  it.each<[string, (account: AccountInput, signer: TestSigner) => AccountInput]>([
    ["of another key", (account) => ({ ...account, possession_signature: held(nodeSigner()).possession_signature! })],
    ["over another name", (account) => ({ ...account, display_name: newName() })],
    ["over another address", (account) => ({ ...account, email: "thief@example.org" })],
    [
      "that the log has of the key",
      (account, signer) => ({
        ...account,
        possession_signature: signer.sign(
          compact({
            action: "service.key.register.v1",
            expiration_date: null,
            fingerprint: signer.fingerprint,
            pseudonym: account.display_name,
          }),
        ),
      }),
    ],
  ])("is refused with a signature %s", async (_, change) => {
    const signer = await newSigner();
    const squatted = await holders.create({ key_fingerprint: signer.fingerprint });
    const refused = await failure(() => create(change(held(signer), signer)));
    expect(refused).toMatchObject({ code: "invalid-signature" });
    expect(placeOf(signer)!.user_id).toBe(squatted.user.id);
  });

  it("is refused with what is no base64", async () => {
    const signer = await newSigner();
    const account = { ...held(signer), possession_signature: "no base64" };
    expect(await failure(() => create(account))).toMatchObject({
      code: "invalid-input",
      paths: ["/possession_signature"],
    });
  });
});
