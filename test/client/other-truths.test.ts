/**
 * True answers to other requests, and lies that fit together: an old answer, or one about something else, is not
 * trusted.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { eventOf, type PayloadOf } from "#cairnlog/engine/verify/events/kinds.js";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { successionMessage } from "#cairnlog/engine/verify/keys/contract.js";
import { type Client, createClient, memoryStore } from "#cairnlog/server/client/index.js";
import { startCalendar } from "../anchoring/calendar.js";
import { startTestService, type TestService } from "../server/harness.js";
import { newManifest, newSigner } from "../server/signers.js";
import { all, asSigner, conviction, failure, newClient, operatorSigner } from "./clients.js";
import { LyingProxy } from "./proxy.js";

const SIZE = 12;
let service: TestService;
let proxy: LyingProxy;
beforeAll(async () => {
  service = await startTestService();
  for (let n = 0; n < SIZE / 2; n++) await newClient(service.url).client.attest(newManifest().document);
});

/** A client that has seen the newest head, and whose service lies from now on. */
async function acquainted() {
  proxy = await LyingProxy.before(service.url);
  const client = createClient({ server: proxy.url, store: memoryStore() });
  const head = (await client.log.head())!;
  return { client, head };
}

/** Lies about one path; the request's query may be anything. */
// biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
function lieAbout(path: string, change: (answer: any, asked: string) => unknown): void {
  proxy.lie = (asked, answer) => (asked.split("?")[0] === path ? change(answer, asked) : answer);
}

const truth = async (path: string) => (await service.get(path)).body;

describe("heads and proofs", () => {
  test("a checkpoint of before, after a newer head", async () => {
    const old = (await service.get("/log/checkpoint")).text;
    await newClient(service.url).client.keys.register({ pseudonym: "Ada" });
    const { client } = await acquainted();
    lieAbout("/log/checkpoint", () => old);
    expect(await failure(client.log.checkpoint())).toMatchObject({ code: "stale-answer" });
    proxy.repent();
    await client.log.checkpoint();
  });

  test.each<[string, (client: Client) => Promise<unknown>]>([
    ["the head", ({ log }) => log.head()],
    ["the checkpoint", ({ log }) => log.checkpoint()],
    ["a proof", ({ log }) => log.proof(3)],
    ["an entry", ({ log }) => log.entry(4)],
    ["the summary", ({ log }) => log.summary()],
    ["all entries", ({ log }) => all(log.since(0))],
    ["whether it has ended", ({ shards }) => shards.end()],
    ["how it began", ({ shards }) => shards.beginning()],
  ])("%s, asked for of the newest tree: the answers of before, that were true, are none", async (_, ask) => {
    proxy = await LyingProxy.before(service.url);
    const before = new Map<string, unknown>();
    proxy.lie = (path, answer) => {
      before.set(path, answer);
      return answer;
    };
    await ask(createClient({ server: proxy.url }));
    await newClient(service.url).client.keys.register({ pseudonym: "Ada" });
    const { client } = await acquainted();
    proxy.lie = (path, answer) => before.get(path) ?? answer;
    expect((await failure(ask(client))).code).toMatch(/^(?:stale-answer|log-misbehaved)$/);
    proxy.repent();
    await ask(client);
  });

  test.each([
    ["the first", (heads: object[]) => heads.slice(1)],
    ["one between", (heads: object[]) => heads.toSpliced(1, 1)],
    ["the last", (heads: object[]) => heads.slice(0, -1)],
    ["all", () => []],
  ])("%s left out of the heads", async (_, change) => {
    const { client } = await acquainted();
    lieAbout("/log/heads", ({ heads }) => ({ heads: change(heads) }));
    await conviction(client.log.heads(SIZE - 3, 100));
    proxy.repent();
    expect((await client.log.heads(SIZE - 3, 3)).map(({ tree_size }) => tree_size)).toEqual([9, 10, 11]);
  });

  test("a proof under the tree of another version", async () => {
    const other = await truth("/log/proof/3?tree_size=7&tree_version=1");
    const { client } = await acquainted();
    lieAbout("/log/proof/3", () => other);
    await conviction(client.log.proof(3, 7));
    const { sth } = await truth("/log/proof/3?tree_size=7");
    lieAbout("/log/proof/3", () => ({ ...other, sth }));
    await conviction(client.log.proof(3, 7));
  });

  test("a consistency proof of other sizes, though it holds", async () => {
    const { client } = await acquainted();
    for (const [from, to] of [
      [3, 8],
      [2, 7],
      [2, 9],
    ]) {
      const other = await truth(`/log/consistency?from=${from}&to=${to}`);
      lieAbout("/log/consistency", (answer, asked) => (asked.includes("from=2&to=8") ? other : answer));
      await conviction(client.log.consistency(2, 8));
    }
    proxy.repent();
    expect(await client.log.consistency(2, 8)).toMatchObject({ from_size: 2, to_size: 8 });
  });
});

test("a summary without the newest entry, and a proof with another head, of a log that has both", async () => {
  const { client } = await acquainted();
  lieAbout("/log/head", (answer) => ({ ...answer, head: null }));
  await conviction(client.log.summary());
  for (const [lie, other] of [
    ["to_sth", "from_sth"],
    ["from_sth", "to_sth"],
  ] as const) {
    lieAbout("/log/consistency", (answer) => ({ ...answer, [lie]: answer[other] }));
    await conviction(client.log.consistency(2, 8));
  }
});

describe("lists of entries", () => {
  const isList = (change: (entries: Entry[]) => Entry[]) =>
    lieAbout("/log", (answer) => ({ ...answer, entries: change(answer.entries) }));

  test("ids that are moved, all or from one entry on", async () => {
    const { client } = await acquainted();
    for (const from of [0, 1, 5]) {
      isList((entries) => entries.map((entry, i) => (i < from ? entry : { ...entry, id: entry.id + 1_000 })));
      await conviction(all(client.log.since(0)));
      await conviction(all(client.log.since(from)));
    }
  });

  test("types that are relabelled", async () => {
    const { client } = await acquainted();
    const revoked = newClient(service.url);
    await revoked.client.keys.register({ pseudonym: "Ada" });
    await revoked.client.keys.revoke();
    isList((entries) =>
      entries.map((entry) => (entry.event_type === "key_revocation" ? { ...entry, event_type: "note" } : entry)),
    );
    await conviction(all(client.log.since(0)));
    await conviction(all(client.log.entries()));
    expect((await all(newClient(service.url).client.log.since(0))).at(-1)!.event_type).toBe("key_revocation");
  });

  test("an anchoring proof that is none, or is another entry's", async () => {
    const calendar = await startCalendar();
    const other = await startTestService({ SERVICE_OTS_CALENDARS: calendar.url });
    await newClient(other.url).client.keys.register({ pseudonym: "Ada" });
    const signer = operatorSigner(other.server.dataDir);
    const anchored = await createClient({ server: other.url, signer }).anchoring.anchor();
    const { ots_proof: another } = anchored;
    // An earlier answer, for an entry that is not the newest any more.
    await newClient(other.url).client.keys.register({ pseudonym: "Ben" });
    const late = await LyingProxy.before(other.url);
    late.lie = (path, answer) => (path === "/log/anchor" ? anchored : answer);
    const operator = createClient({ server: late.url, publicOrigin: other.url, signer });
    await conviction(operator.anchoring.anchor());
    late.lie = (path, answer) => (path === "/log/anchor" ? { ...answer, ots_proof: another } : answer);
    expect(await failure(operator.anchoring.anchor())).toMatchObject({ code: "malformed-answer" });
    const { client } = await acquainted();
    for (const ots_proof of ["", "AAAA", "no base64", another]) {
      isList((entries) => entries.map((entry, i) => (i === 2 ? { ...entry, ots_proof } : entry)));
      await conviction(all(client.log.since(0)));
      await conviction(all(client.log.entries()));
    }
  });

  test("a page that is given again, after the first and for ever", async () => {
    const long = await startTestService();
    const { payload } = (await truth("/log/1")) as Entry;
    await long.server.registry.log.append(
      Array.from({ length: 450 }, () => ({ event_type: "key_registration", payload: payload! })),
    );
    const before = await LyingProxy.before(long.url);
    const client = createClient({ server: before.url });
    const { entries } = (await long.get("/log?per_page=200")).body;
    before.lie = (path, answer) => (path.startsWith("/log?") ? { ...answer, entries } : answer);
    await conviction(all(client.log.since(0)));
    await conviction(all(client.log.entries()));
    before.repent();
    expect(await all(client.log.since(0))).toHaveLength(450);
  });

  test("entries by fingerprint that are repeated, or name other keys", async () => {
    const eve = newClient(service.url);
    await eve.client.keys.register({ pseudonym: "Eve" });
    await eve.client.attest(newManifest().document);
    const { client } = await acquainted();
    const path = `/log/by-fingerprint/${encodeURIComponent(eve.fingerprint)}`;
    const foreign = await truth("/log/3");
    for (const change of [
      (entries: Entry[]) => [entries[0]!, ...entries],
      (entries: Entry[]) => [foreign, ...entries],
      () => [foreign],
    ]) {
      lieAbout(path, (answer) => ({ ...answer, entries: change(answer.entries) }));
      await conviction(all(client.log.byFingerprint(eve.fingerprint)));
    }
    proxy.repent();
    const own = await all(client.log.byFingerprint(eve.fingerprint));
    expect(own.map(({ event_type }) => event_type.split("/").at(-2) ?? event_type)).toEqual([
      "key_registration",
      "authorship",
    ]);
  });

  test("an entry of before as that of a receipt", async () => {
    proxy = await LyingProxy.before(service.url);
    const { client } = newClient(proxy.url);
    await client.keys.register({ pseudonym: "Ada" });
    await client.log.head();
    const [ben, cleo] = [newClient(service.url), newClient(service.url)];
    for (const other of [ben, cleo]) await other.client.keys.register({ pseudonym: "Other" });
    const category = "x-service:human_attestation";
    const { id } = (await client.endorsements.offer({ endorsed_fingerprint: ben.fingerprint, category })).entry;
    lieAbout("/endorsements/offer", (answer) => ({ ...answer, id }));
    const second = client.endorsements.offer({ endorsed_fingerprint: cleo.fingerprint, category });
    expect(await failure(second)).toMatchObject({
      code: "log-misbehaved",
      detail: "The receipt names an entry that is older than it.",
    });
  });

  test("an offer that only another log has, and its acceptance here", async () => {
    proxy = await LyingProxy.before(service.url);
    const [ada, bob, elsewhere] = [newClient(service.url), newClient(proxy.url), await startTestService()];
    for (const { client } of [ada, bob]) await client.keys.register({ pseudonym: "Somebody" });
    const category = "x-service:human_attestation";
    const { entry } = await ada.client.endorsements.offer({ endorsed_fingerprint: bob.fingerprint, category });
    await bob.client.log.head();
    const endorser_fingerprint = `sha256:${"e".repeat(64)}`;
    const { event_type: _, ...offered } = entry.payload as PayloadOf<"endorsement_offer"> & { event_type: string };
    const invented = { ...offered, endorser_key_fingerprint: endorser_fingerprint };
    for (let id = 1; id <= entry.id; id++)
      await elsewhere.server.registry.log.append([eventOf("endorsement_offer", invented)]);
    const offer = (await elsewhere.get(`/log/${entry.id}`)).body as Entry;
    const { size } = service.server.registry.log;
    const acceptance = { ...invented, offer_entry_id: entry.id, note: null };
    await service.server.registry.log.append([eventOf("endorsement_acceptance", acceptance)]);
    const log_entry = (await truth(`/log/${size + 1}`)) as Entry;
    const { timestamp: accepted_at } = log_entry;
    proxy.lie = (path, answer) => {
      if (path === `/log/${entry.id}`) return offer;
      if (path !== "/endorsements/accept") return answer;
      const times = { offered_at: offer.timestamp, accepted_at, activates_at: accepted_at };
      return { log_entry, endorsement: { ...answer.endorsement, endorser_fingerprint, ...times, status: "active" } };
    };
    const { entry: shown } = await conviction(bob.client.endorsements.accept(entry.id));
    expect(shown).toEqual(offer);
  });

  test.each<[string, unknown]>([
    ["old_fingerprint", newSigner().fingerprint],
    ["fingerprint", newSigner().fingerprint],
    ["public_key", newSigner().publicKey],
    ["pseudonym", "Mallory"],
    ["key_algorithm", "ecdsa-p256"],
    ["expiration_date", "2030-01-01T00:00:00.000000Z"],
    ["new_key_signature", newSigner().sign("another message")],
  ])("a succession that the log has recorded with another %s", async (member, value) => {
    proxy = await LyingProxy.before(service.url);
    const { client, fingerprint: old_fingerprint } = newClient(proxy.url);
    await client.keys.register({ pseudonym: "Ada" });
    await client.log.head();
    const successor = newSigner();
    const { fingerprint, publicKey } = successor;
    const event_type = "key_succession";
    const payload = {
      ...{ event_type, old_fingerprint, fingerprint, public_key: publicKey, pseudonym: "Ada again" },
      ...{ key_algorithm: "ed25519", expiration_date: null },
      new_key_signature: successor.sign(successionMessage(old_fingerprint, fingerprint)),
      [member]: value,
    };
    let id = 0;
    const record = async () => {
      await service.server.registry.log.append([{ event_type, payload }]);
      const { head, entry_count } = await truth("/log/head");
      ({ id } = head);
      const place = { log_entry_id: id, leaf_index: entry_count - 1, entry_hash: head.entry_hash };
      return JSON.stringify({ old_fingerprint, new_fingerprint: fingerprint, ...place });
    };
    proxy.seize = (path, response) => {
      if (path !== "/keys/succeed") return false;
      response.setHeader("content-type", "application/json");
      void record().then((receipt) => response.end(receipt));
      return true;
    };
    const work = client.keys.succeed(asSigner(successor), { pseudonym: "Ada again" });
    expect(await failure(work)).toMatchObject({
      code: "log-misbehaved",
      detail: `Entry ${id} is not what was asked for: it differs in ${member}.`,
    });
  });

  test("entries by a hash, in every spelling of it", async () => {
    const { client } = await acquainted();
    const { id, payload } = (await truth("/log/2")) as Entry;
    const { document_hash, signer_key_fingerprint } = payload as Record<string, string>;
    const spellings = (hash: string) => {
      const bare = hash.slice("sha256:".length);
      return [bare, bare.toUpperCase()].flatMap((text) => [text, `sha256:${text}`]);
    };
    const lists = [
      ...spellings(document_hash!).flatMap((hash) => [
        client.log.auditTrail({ document_hash: hash }),
        client.log.entries({ search: hash }),
      ]),
      ...spellings(signer_key_fingerprint!).map((fingerprint) => client.log.auditTrail({ fingerprint })),
    ];
    for (const list of lists) expect((await all(list)).map((entry) => entry.id)).toContain(id);
  });

  test("entries that do not pass the filter", async () => {
    const { client } = await acquainted();
    const [first, second] = [(await truth("/log/1")) as Entry, (await truth("/log/2")) as Entry];
    const isList = /^\/(?:log|log\/audit-trail|audit\/export)\?/;
    proxy.lie = (path, answer) => (isList.test(path) ? { ...answer, entries: [first] } : answer);
    await conviction(all(client.log.entries({ event_type: "key_revocation,key_succession" })));
    await conviction(all(client.log.entries({ tags: "draft" })));
    await conviction(all(client.log.entries({ search: second.entry_hash.slice(0, 8) })));
    await conviction(all(client.log.auditTrail({ document_hash: `${second.payload!.document_hash}` })));
    await conviction(all(client.log.auditTrail({ start_date: "2100-01-01" })));
    await conviction(all(client.log.auditTrail({ end_date: "2000-01-01" })));
    await conviction(all(client.audit.entries({ scope: "claims" })));
    await conviction(all(client.audit.entries({ after_id: 1 })));
    const passing = [
      client.log.entries({ event_type: "key_registration,key_succession" }),
      client.log.entries({ search: first.entry_hash.slice(0, 8).toUpperCase() }),
      client.log.entries({ search: `${first.payload!.fingerprint}` }),
      client.log.entries({ search: `${first.payload!.fingerprint}`.slice(0, 20) }),
      client.log.auditTrail({ fingerprint: `${first.payload!.fingerprint}`.slice("sha256:".length).toUpperCase() }),
      client.log.auditTrail({ start_date: first.timestamp.slice(0, 10), end_date: first.timestamp.slice(0, 10) }),
      client.audit.entries({ scope: "keys", start_date: first.timestamp, end_date: first.timestamp }),
    ];
    for (const list of passing) expect(await all(list)).toEqual([first]);
  });
});
