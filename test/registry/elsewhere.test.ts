/** A registry whose log another process writes. */
import { afterAll, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { appendEvents } from "#cairnlog/engine/log/state/commands.js";
import { openRegistryReader } from "#cairnlog/engine/registry/registry.js";
import { closeWorlds, newFolder, nodeSigner, openWorld, registration } from "./world.js";

afterAll(closeWorlds);

test("is read, and every command is refused", async () => {
  const [path, pem, pool] = [newFolder(), generatePrivateKey("ed25519"), createPool(1)];
  const { registry } = await openWorld(path, pem);
  const signer = nodeSigner();
  await registry.keys.register(registration(signer));
  const operator = operatorKey(pem);
  const { keys, writer, log, close } = await openRegistryReader({
    path,
    operator,
    pool,
    predicateBase: "https://p.example",
  });
  expect([log.size, keys.find(signer.fingerprint).status]).toEqual([1, "active"]);
  const refused = [
    writer.append({ event_type: "note", payload: {} }),
    writer.execute(appendEvents, { events: [] }),
    new Promise((resolve, reject) => writer.enqueue(appendEvents, { events: [] }, resolve, reject)),
    writer.signHead(),
    keys.register(registration(nodeSigner())),
  ];
  for (const command of refused) await expect(command).rejects.toMatchObject({ code: "signer-unavailable" });
  await close();
  await pool.close();
});
