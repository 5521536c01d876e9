/** Payloads that the operator withholds, as clients see them: withheld, and neither valid nor invalid. */
import { beforeAll, expect, test } from "vitest";
import { isPayloadOf, isWithheld, payloadHash, withholdingFault } from "#cairnlog/engine/verify/events/withheld.js";
import { entryHash } from "#cairnlog/engine/verify/index.js";
import { type Client, createClient } from "#cairnlog/server/client/index.js";
import { startTestService, type TestService } from "../server/harness.js";
import { newManifest } from "../server/signers.js";
import { all, failure, newClient, operatorSigner } from "./clients.js";
import { LyingProxy } from "./proxy.js";

let service: TestService;
let withheld: number;
let by: number;
/** The entry as somebody has kept it. */
// biome-ignore lint/suspicious/noExplicitAny: an entry as it was served
let kept: any;
const reason = "A court has ordered it.";
beforeAll(async () => {
  service = await startTestService();
  const { client } = newClient(service.url);
  const attest = async (title: string) =>
    (await client.attest({ title, content_hash: newManifest().document.content_hash })).receipt.log_entry_id;
  await attest("First");
  withheld = await attest("Zwetschgenkuchen");
  kept = (await service.get(`/log/${withheld}`)).body;
  await attest("Third");
  const operator = createClient({ server: service.url, signer: operatorSigner(service.server.dataDir) });
  by = (await operator.withholding.withhold(withheld, { reason })).log_entry_id;
  expect(await failure(operator.withholding.withhold(withheld, { reason }))).toMatchObject({ status: 409 });
  expect(await failure(operator.withholding.withhold(by, { reason }))).toMatchObject({ status: 422 });
  expect(await failure(client.withholding.withhold(by, { reason }))).toMatchObject({ status: 403 });
});

test("every client has it proven that the operator withholds it, and whoever kept it can prove it", async () => {
  const { client } = newClient(service.url);
  const { entry, proof } = await client.log.entry(withheld);
  expect(entry).toMatchObject({ payload: null, withheld_by: by });
  expect(isWithheld(entry)).toBe(true);
  expect(proof.entry_hash).toBe(kept.entry_hash);
  expect(isPayloadOf(entry, kept.payload)).toBe(true);
  expect(isPayloadOf(entry, { ...kept.payload, document_title: "Another" })).toBe(false);
  expect((await client.log.entry(by)).entry.payload).toMatchObject({ entry_id: withheld, reason });
  const listed = await all(client.log.since(0));
  expect(listed.map(({ payload }) => payload === null).indexOf(true)).toBe(proof.leaf_index);
  expect((await all(client.log.entries())).length).toBe(listed.length);
});

test("a payload that is missing without such an entry is a misbehaviour, and so is one of another entry", async () => {
  const lies: ((entry: Record<string, unknown>) => unknown)[] = [
    (entry) => entry,
    (entry) => ({ ...entry, withheld_by: withheld - 1 }),
    (entry) => ({ ...entry, withheld_by: by - 1 }),
    (entry) => ({ ...entry, withheld_by: by + 100 }),
    (entry) => ({ ...entry, withheld_by: by, event_type: "key_revocation" }),
    (entry) => ({ ...entry, withheld_by: by, entry_hash: "0".repeat(64) }),
  ];
  const proxy = await LyingProxy.before(service.url);
  for (const lie of lies) {
    proxy.lie = (path, answer) => (path === `/log/${withheld}` ? lie({ ...kept, payload: null }) : answer);
    expect(await failure(newClient(proxy.url).client.log.entry(withheld)), lie.toString()).toMatchObject({
      code: "log-misbehaved",
    });
  }
  proxy.lie = (path, answer) => (path === `/log/${withheld}` ? { ...kept, payload: null, withheld_by: by } : answer);
  await newClient(proxy.url).client.log.entry(withheld);
});

test("an entry that withholds it in all but that it is on no log is believed by no read", async () => {
  const [whole, withholds] = [(await service.get(`/log/${withheld + 1}`)).body, (await service.get(`/log/${by}`)).body];
  const { id, entry_hash } = whole;
  const payload = { ...withholds.payload, entry_id: id, entry_hash, payload_hash: payloadHash(whole.payload) };
  const hash = entryHash({ ...withholds, payload });
  const digest = { algorithm: "sha2-256", digest_hex: hash, is_primary: true };
  const invented = { ...withholds, payload, entry_hash: hash, entry_hashes: [digest] };
  const cut = { ...whole, payload: null, withheld_by: by };
  expect(withholdingFault(cut, invented)).toBeUndefined();
  const proxy = await LyingProxy.before(service.url);
  const shown = (entry: { id: number }) => (entry.id === id ? cut : entry);
  proxy.lie = (path, answer) => {
    if (path === `/log/${by}`) return invented;
    return Array.isArray(answer.entries) ? { ...answer, entries: answer.entries.map(shown) } : shown(answer);
  };
  const reads: ((client: Client) => Promise<unknown>)[] = [
    ({ log }) => log.entry(id),
    ({ log }) => all(log.entries()),
    ({ log }) => all(log.since(0)),
    ({ log }) => all(log.byFingerprint(whole.payload.signer_key_fingerprint)),
    ({ log }) => all(log.auditTrail({ document_hash: whole.payload.document_hash })),
    ({ audit }) => all(audit.entries()),
  ];
  for (const read of reads)
    expect(await failure(read(newClient(proxy.url).client)), read.toString()).toMatchObject({ code: "log-misbehaved" });
});

test("one that was withheld while a list was read stands in it, where the filter still found it, and accuses nobody", async () => {
  const { document_title: title, document_hash, signer_key_fingerprint: fingerprint } = kept.payload;
  const shown = (await service.get(`/log/${withheld}`)).body;
  const proxy = await LyingProxy.before(service.url);
  proxy.lie = (_, answer) => (Array.isArray(answer.entries) ? { ...answer, entries: [shown], total: 1 } : answer);
  const { client } = newClient(proxy.url);
  for (const list of [
    client.log.entries({ title }),
    client.log.entries({ search: document_hash }),
    client.log.byFingerprint(fingerprint),
    client.log.auditTrail({ document_hash }),
    client.audit.entries({ document_hash, scope: "attestations" }),
  ])
    expect(await all(list)).toEqual([shown]);
  proxy.lie = (_, answer) =>
    Array.isArray(answer.entries) ? { ...answer, entries: [{ ...shown, withheld_by: withheld + 1 }] } : answer;
  expect(await failure(all(client.log.entries({ title })))).toMatchObject({ code: "log-misbehaved" });
});

test("it stands in no list whose filter it does not pass by what it still shows, nor a second time", async () => {
  const shown = (await service.get(`/log/${withheld}`)).body;
  const proxy = await LyingProxy.before(service.url);
  proxy.lie = (_, answer) => (Array.isArray(answer.entries) ? { ...answer, entries: [shown, shown] } : answer);
  const { client } = newClient(proxy.url);
  for (const list of [
    client.log.entries({ event_type: "encrypted_claim" }),
    client.audit.entries({ start_date: "2999-01-01" }),
    client.audit.entries({ scope: "keys" }),
    client.audit.entries({ after_id: withheld }),
    // A service that goes on so would be asked for ever.
    client.audit.entries({ scope: "attestations" }),
  ])
    expect(await failure(all(list))).toMatchObject({ code: "log-misbehaved" });
});
