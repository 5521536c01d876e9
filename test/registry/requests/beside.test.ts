/** A reader in another thread reads rows from disk. It may read a row before the writer tells it of the row's entry. */
import { randomUUID } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { servedRegistry } from "#cairnlog/engine/registry/registry.js";
import { BASE, closeWorlds, newFolder, nodeSigner, openWorld, registration } from "../world.js";

afterAll(closeWorlds);

test("requests, their answers and policies are whole, though the reader was not told of them yet", async () => {
  const path = newFolder();
  const options = { requestQuota: null, policyQuota: null };
  const pem = generatePrivateKey("ed25519");
  const world = await openWorld(path, pem, options);
  const { keys, requests, policies } = world.registry;
  const [asker, target] = [nodeSigner(), nodeSigner()];
  for (const signer of [asker, target]) await keys.register(registration(signer));

  const operator = operatorKey(pem);
  const log = openLogFollower({ path, operatorKey: operator.public.pem, projection, writer: {} as never });
  const served = servedRegistry(log, { ...options, path, operator, predicateBase: BASE }, {} as never);
  try {
    const told = log.size;
    const { request_id } = await requests.create(asker.fingerprint, {
      target_fingerprint: target.fingerprint,
      attestation_type: "peer_review",
      nonce: randomUUID(),
    });
    await requests.respond(target.fingerprint, request_id, { decision: "decline", reason: "no time" });
    await policies.publish(target.fingerprint, { predicates: { any: [] }, default_action_on_failure: "decline" });

    expect(log.size).toBe(told);
    const [listed] = served.requestQueries.list({ target: target.fingerprint }).requests;
    expect(listed).toMatchObject({ request_id, log_entry_id: told + 1, leaf_index: told });
    const found = served.requestQueries.find(request_id);
    expect(found).toMatchObject({ leaf_index: told, response: { reason: "no time", leaf_index: told + 1 } });
    expect(served.policies.view(target.fingerprint).active).toMatchObject({ leaf_index: told + 2 });
  } finally {
    await log.close();
  }
});
