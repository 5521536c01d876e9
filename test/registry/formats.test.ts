/**
 * A log of format 4: when this version opens it, the derived rows become those that a rebuild would make. What follows from
 * entries alone is made of them, so no row of the earlier version counts.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeEach, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import type { RowChange } from "#cairnlog/engine/store/changeset.js";
import { DERIVED_TABLES, FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { attest } from "./attestations/manifests.js";
import { Case } from "./endorsements/endorsementcase.js";
import {
  closeWorlds,
  failure,
  heldRegistration,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  registration,
  type TestSigner,
} from "./world.js";

afterAll(closeWorlds);

const pem = generatePrivateKey("ed25519");
let path = "";
let signers: Readonly<Record<"named" | "unnamed" | "late" | "successor" | "denied", TestSigner>>;

/** Every kind of row that entries make, and what format 4 refused of imported history. */
async function fill(): Promise<void> {
  const world = await openWorld(path, pem);
  const { registry } = world;
  const { named, unnamed, late, successor, denied } = signers;
  await registry.keys.register(heldRegistration(named, "Ada"));
  await registry.keys.register(registration(unnamed, "squatter"));
  await attest(world, unnamed, manifestOf("first act"));
  await registry.keys.register(registration(late, "squatter"));
  await attest(world, late, manifestOf("act"));
  // Earlier versions refused a registration by a key that had acted, but imported history may have one.
  const held = heldRegistration(late, "Eve");
  await world.append({
    event_type: "key_registration",
    payload: { ...held, fingerprint: late.fingerprint, expiration_date: null } as never,
  });
  const made = new Case(world, named.fingerprint, unnamed.fingerprint);
  await world.append({
    event_type: "endorsement_offer",
    payload: {
      endorser_key_fingerprint: made.endorser,
      endorsed_key_fingerprint: made.endorsed,
      category: "x-service:human_attestation",
      valid_until: null,
      institutional_metadata: null,
      external_identifiers: null,
    },
  });
  const request = { target_fingerprint: named.fingerprint, attestation_type: "authorship", nonce: randomUUID() };
  const { request_id } = await registry.requests.create(unnamed.fingerprint, request);
  await registry.requests.respond(named.fingerprint, request_id, { decision: "decline" });
  await registry.policies.publish(named.fingerprint, { predicates: { all: [] }, default_action_on_failure: "hold" });
  const succession = { old_fingerprint: named.fingerprint, new_public_key: successor.pem, new_algorithm: "ed25519" };
  await registry.keyLifecycle.succeed(
    {
      ...succession,
      new_algorithm: "ed25519",
      new_key_signature: successor.sign(`service.key.succession.v1:${named.fingerprint}:${successor.fingerprint}`),
    },
    { recovery: false },
  );
  await registry.keyLifecycle.succeed(
    { old_fingerprint: unnamed.fingerprint, new_public_key: denied.pem, new_algorithm: "ed25519" },
    { recovery: false },
  );
  await registry.close();
}

/** The derived rows, as text. */
function rowsOn(folder: string): string {
  const store = openStore({ path: folder });
  const rows = DERIVED_TABLES.map((table) => [table, [...store.range(table)]]);
  void store.close();
  return JSON.stringify(rows);
}

/** Makes the rows those of format 4, and changes the meta row. */
async function age(more: object = {}): Promise<void> {
  const store = openStore({ path });
  const rows: RowChange[] = [
    { table: "meta", key: "log", row: { ...store.get("meta", "log")!, format: 4, ...more } },
    ...[...store.range("keys")].map(({ key, row: { named: _, ...row } }) => ({ table: "keys" as const, key, row })),
  ];
  const after = store.position().sequence;
  await store.commit({ after, position: null, batches: [], rows, tiles: [] });
  await store.close();
}

beforeEach(async () => {
  path = newFolder();
  const [named, unnamed, late, successor, denied] = Array.from({ length: 5 }, () => nodeSigner()) as [
    TestSigner,
    TestSigner,
    TestSigner,
    TestSigner,
    TestSigner,
  ];
  signers = { named, unnamed, late, successor, denied };
  await fill();
});

test("gets the rows that a rebuild makes, whatever rows it had", async () => {
  const before = rowsOn(path);
  await age();
  expect(rowsOn(path)).not.toBe(before);
  const world = await openWorld(path, pem);
  const { log, keys } = world.registry;
  expect(log.row("meta", "log")).toMatchObject({ format: FORMAT });
  expect(log.stateDifferences()).toEqual([]);
  const said = Object.entries(signers).map(([name, { fingerprint }]) => {
    const { named, pseudonym, predecessor_confirmed, successor_confirmed } = keys.detail(fingerprint);
    return [name, named, pseudonym, predecessor_confirmed, successor_confirmed];
  });
  expect(said).toEqual([
    ["named", true, "Ada", null, true],
    ["unnamed", false, "squatter", null, false],
    ["late", true, "Eve", null, null],
    ["successor", true, "Ada", true, null],
    ["denied", false, "squatter", false, null],
  ]);
  await world.registry.close();
  expect(rowsOn(path)).toBe(before);
});

test("that was left in the middle of the conversion is converted again; an interrupted rebuild still is refused", async () => {
  const before = rowsOn(path);
  await age({ rebuilding: true, migrating: true });
  const store = openStore({ path });
  const rows = [...store.range("keys")].slice(1).map(({ key }) => ({ table: "keys" as const, key, row: undefined }));
  await store.commit({ after: store.position().sequence, position: null, batches: [], rows, tiles: [] });
  await store.close();
  const world = await openWorld(path, pem);
  expect(world.registry.log.row("meta", "log")).not.toHaveProperty("rebuilding");
  expect(world.registry.log.row("meta", "log")).not.toHaveProperty("migrating");
  await world.registry.close();
  expect(rowsOn(path)).toBe(before);
  await age({ rebuilding: true });
  expect(await failure(() => openWorld(path, pem))).toMatchObject({ code: "corrupt-log" });
});
