/** What a key does in the batch in which it ends, behind its end: the request was checked when the key was active. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { commandNamed, type Transaction } from "#cairnlog/engine/log/state/commands.js";
import { revokeKey } from "#cairnlog/engine/registry/keys/commands.js";
import { runIn } from "../log/inline.js";
import { closeWorlds, failure, nodeSigner, openWorld, registration, type World } from "./world.js";

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

const url = "https://receiver.example/hook";
const draft = { url, host: "receiver.example", events: [], key_fingerprint: null, document_hash: null, secret: null };

test.each([
  [
    "webhook.subscribe",
    (owner_fingerprint: string) => ({ owner_fingerprint, subscription: draft, address: null, per_address: null }),
  ],
  ["trust-config.create", (fingerprint: string) => ({ fingerprint, policy: "{}", quota: null })],
  ["password.set", (fingerprint: string) => ({ fingerprint, known_hash: null, hash: "x", version: "x" })],
  ["claim.post", (poster_fingerprint: string) => ({ poster_fingerprint, hardware_roots: [], quota: 1, claim: {} })],
  ["policy.publish", (target_fingerprint: string) => ({ target_fingerprint, effective_from: null, quota: null })],
  ["request.create", (key: string) => ({ requester_fingerprint: key, target_fingerprint: key })],
  ["request.respond", (responder_fingerprint: string) => ({ responder_fingerprint, request_id: "x" })],
])("%s", async (name, inputOf) => {
  const signer = nodeSigner();
  await world.registry.keys.register(registration(signer));
  const ending = (transaction: Transaction) => {
    revokeKey.run(transaction, { fingerprint: signer.fingerprint });
    commandNamed(name)!.run(transaction, inputOf(signer.fingerprint) as never);
  };
  expect(await failure(() => runIn(world.registry.log, ending))).toMatchObject({ code: "key-not-active" });
});
