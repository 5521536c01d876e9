/** The list of keys goes on behind places that a key has left, because it has named itself in a later entry. */
import { expect, test } from "vitest";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { createClient } from "#cairnlog/server/client/index.js";
import { startTestService } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { all, asSigner, failure } from "./clients.js";
import { LyingProxy } from "./proxy.js";

test("every key is listed once, whatever strangers had recorded before it named itself", async () => {
  const service = await startTestService();
  const signers = Array.from({ length: 205 }, () => newSigner("ed25519"));
  const events = signers.map(({ fingerprint, publicKey }) =>
    eventOf("key_registration", {
      ...{ fingerprint, public_key: publicKey, pseudonym: "Ada", key_algorithm: "ed25519" },
      ...{ expiration_date: null, possession_signature: null },
    }),
  );
  await service.server.registry.log.append(events);
  await createClient({ server: service.url, signer: asSigner(signers[7]!) }).keys.register({ pseudonym: "Ada" });
  const client = createClient({ server: service.url });
  const inOrder = [...signers.toSpliced(7, 1), signers[7]!].map(({ fingerprint }) => fingerprint);
  for (const name of [undefined, "a", "ada"])
    expect((await all(client.keys.list(name))).map(({ fingerprint }) => fingerprint)).toEqual(inOrder);
  // One that names itself between two pages is on both.
  const listed: string[] = [];
  for await (const { fingerprint } of client.keys.list())
    if (listed.push(fingerprint) === 1)
      await createClient({ server: service.url, signer: asSigner(signers[3]!) }).keys.register({ pseudonym: "Ada" });
  expect(listed).toEqual(inOrder);
  // A key that the service gives twice has named itself in between, or the list is wrong.
  const proxy = await LyingProxy.before(service.url);
  for (const named of [false, true]) {
    proxy.lie = (path, { keys, ...page }) =>
      path.startsWith("/keys?") ? { ...page, keys: [keys[0], keys[0]].map((key) => ({ ...key, named })) } : page;
    const list = all(createClient({ server: proxy.url }).keys.list());
    expect((await failure(list)).code).toBe("malformed-answer");
  }
});
