/** A log of format 4: when this version opens it, accepted endorsements are found without the offers that were not. */
import { afterAll, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { closeWorlds, newFolder, openWorld } from "../world.js";
import { newCase } from "./endorsementcase.js";

afterAll(closeWorlds);

test("accepted endorsements are listed as such", async () => {
  const [path, pem] = [newFolder(), generatePrivateKey("ed25519")];
  const before = await openWorld(path, pem);
  const [offered, accepted, ended] = [await newCase(before), await newCase(before), await newCase(before)];
  for (const one of [offered, accepted, ended]) await one.offer();
  for (const one of [accepted, ended]) await one.accept();
  await ended.revoke();
  await before.registry.close();

  const store = openStore({ path });
  const listed = [...store.range("acceptedEndorsements")];
  expect(listed.map(({ key }) => key[1])).toEqual(expect.arrayContaining([accepted.id, ended.id]));
  expect(listed).toHaveLength(2);
  const meta = { ...store.get("meta", "log")!, format: 4 };
  await store.commit({
    after: store.position().sequence,
    position: null,
    batches: [],
    rows: [
      { table: "meta", key: "log", row: meta },
      ...listed.map(({ key }) => ({ table: "acceptedEndorsements", key, row: undefined }) as const),
    ],
    tiles: [],
  });
  await store.close();

  const { registry } = await openWorld(path, pem);
  expect(registry.log.row("meta", "log")!.format).toBe(FORMAT);
  expect(registry.log.stateDifferences()).toEqual([]);
  const { endorsementQueries: queries } = registry;
  expect((await queries.received(accepted.endorsed, { status: "pending_activation" })).total).toBe(1);
  expect((await queries.received(ended.endorsed, { status: "acceptance_revoked" })).total).toBe(1);
  expect((await queries.received(offered.endorsed, { status: "offered" })).total).toBe(1);
});
