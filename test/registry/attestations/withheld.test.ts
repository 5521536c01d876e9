/** An attestation whose payload is withheld, sent once more: it does not come back, whoever sends it and whatever the disk has left. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import {
  closeWorlds,
  compact,
  failure,
  manifestOf,
  nodeSigner,
  openWorld,
  submission,
  type TestSigner,
  type World,
} from "../world.js";

afterAll(closeWorlds);

let world: World;
let signer: TestSigner;
let input: ReturnType<typeof submission>;
/** An attestation of the same document by the same key that nobody withholds. */
let other: ReturnType<typeof submission>;
/** Signed over the manifest without the attestation in it. */
let alone: ReturnType<typeof submission>;
let withheld: number;

const submit = (one: object, isHolder = false) =>
  world.registry.attestations.submit(
    one as never,
    isHolder ? { fingerprint: signer.fingerprint, isForThis: false } : null,
  );
const refused = async (one: object, isHolder = false) => (await failure(() => submit(one, isHolder))).code;

beforeAll(async () => {
  world = await openWorld();
  signer = nodeSigner("ecdsa-p256");
  input = submission(signer, manifestOf("Withheld"));
  other = submission(signer, manifestOf("Shown"));
  const first = await submit(input);
  await submit(other);
  const co = nodeSigner();
  const manifest = manifestOf("Withheld", [first.attestation]);
  alone = { ...submission(co, manifest), signature: co.sign(compact(manifestOf("Withheld"))) };
  const second = await submit(alone);
  withheld = (await withhold(world.registry, first.log_entry_id, { reason: "An order.", basis: null })).log_entry_id;
  await withhold(world.registry, second.log_entry_id, { reason: "An order.", basis: null });
});

// The payload is on the disk until the log is opened again; what is derived from entries is made anew then.
describe.each([
  ["until a restart", async () => {}],
  ["after a restart", () => world.reopen()],
  ["after another one", () => world.reopen()],
])("%s", (_, reopen) => {
  beforeAll(reopen);

  it("is gone, in each form of its signature, for its holder too", async () => {
    const { size } = world.registry.log;
    for (const isHolder of [false, true]) {
      expect(await refused(input, isHolder)).toBe("gone");
      expect(await refused({ ...input, signature: signer.sign(compact(input.manifest)) }, isHolder)).toBe("gone");
      expect(await refused(alone)).toBe("gone");
    }
    expect((await failure(() => submit(input))).message).toContain(`withheld by entry ${withheld}`);
    expect(world.registry.log.size).toBe(size);
  });

  it("lends its signature to no other attestation", async () => {
    const { size } = world.registry.log;
    for (const changes of [{ intent_statement: "I did." }, { attestation_type: "publication" }]) {
      expect(await refused({ ...input, ...changes })).toBe("proof-required");
      expect(await refused({ ...alone, ...changes })).toBe("proof-required");
    }
    expect(await refused({ ...alone, manifest: manifestOf("Withheld") })).toBe("proof-required");
    expect(world.registry.log.size).toBe(size);
  });

  it("leaves all others what they are", async () => {
    const { size } = world.registry.log;
    expect((await submit(other)).duplicate).toBe(true);
    expect(world.registry.log.size).toBe(size);
    const statement = { intent_statement: `Said ${size} entries later.` };
    expect((await submit({ ...input, ...statement }, true)).duplicate).toBe(false);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });
});
