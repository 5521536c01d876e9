/** A log of an earlier version: when this version opens it, it adds the rows that the earlier one did not have. */
import { randomUUID } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import type { RowChange } from "#cairnlog/engine/store/changeset.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { closeWorlds, newFolder, nodeSigner, openWorld, registration } from "../world.js";

afterAll(closeWorlds);

const pem = generatePrivateKey("ed25519");

/** Registers two keys. The first asks the second three times, and the second declines once. */
async function fill(path: string): Promise<{ readonly asker: string; readonly target: string }> {
  const { registry } = await openWorld(path, pem, { requestQuota: null });
  const [from, to] = [nodeSigner(), nodeSigner()];
  for (const signer of [from, to]) await registry.keys.register(registration(signer));
  const requests: string[] = [];
  for (let n = 0; n < 3; n++) {
    const request = { target_fingerprint: to.fingerprint, attestation_type: "peer_review", nonce: randomUUID() };
    requests.push((await registry.requests.create(from.fingerprint, request)).request_id);
  }
  await registry.requests.respond(to.fingerprint, requests[1]!, { decision: "decline" });
  await registry.close();
  return { asker: from.fingerprint, target: to.fingerprint };
}

/** Takes away what formats 3 and 4 have added to the rows. */
async function makeOld(path: string): Promise<void> {
  const store = openStore({ path });
  const rows: RowChange[] = [
    { table: "meta", key: "log", row: { ...store.get("meta", "log")!, format: 2 } },
    ...[...store.range("requestsByPair")].map(({ key }) => ({ table: "requestsByPair" as const, key, row: undefined })),
    ...[...store.range("requestCounts")]
      .filter(({ key }) => key[0] === "pair")
      .map(({ key }) => ({ table: "requestCounts" as const, key, row: undefined })),
    ...[...store.range("keys")].map(({ key, row: { proven, ...row } }) => ({ table: "keys" as const, key, row })),
  ];
  expect(rows.length).toBe(1 + 6 + 1 + 2);
  const after = store.position().sequence;
  await store.commit({ after, position: null, batches: [], rows, tiles: [] });
  await store.close();
}

test("requests are listed by both keys together, and keys that acted are proven", async () => {
  const path = newFolder();
  const { asker, target } = await fill(path);
  await makeOld(path);
  const { registry } = await openWorld(path, pem);
  expect(registry.log.row("meta", "log")!.format).toBe(FORMAT);
  const totals = (["open", "declined", undefined] as const).map((status) => {
    const criteria = { target, requester: asker, ...(status && { status }) };
    return registry.requestQueries.list(criteria).total;
  });
  expect(totals).toEqual([2, 1, 3]);
  for (const fingerprint of [asker, target])
    expect(registry.log.row("keys", fingerprint)).toMatchObject({ proven: true });
  expect(registry.log.stateDifferences()).toEqual([]);
});
