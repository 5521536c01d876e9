/** A log that lies is detected at once, with evidence; a log that cannot be reached is not accused. */
import { generateKeyPairSync, sign } from "node:crypto";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parsePublicKey, type TreeHead, verifyConsistency, verifyTreeHead } from "#cairnlog/engine/verify/index.js";
import { type Client, createClient, memoryStore, type Store } from "#cairnlog/server/client/index.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner, submission } from "../server/signers.js";
import { all, asSigner, conviction, failure, newClient } from "./clients.js";
import { LyingProxy } from "./proxy.js";

/** Two services with one operator key. Each signs and shows another history. */
let service: TestService;
let fork: TestService;
let proxy: LyingProxy;
beforeAll(async () => {
  const folder = temporaryFolder();
  service = await startTestService({ SERVICE_DATA_DIR: folder });
  fork = await startTestService({ SERVICE_OPERATOR_KEY: join(folder, "operator.pem") });
  await grow(service, 5);
  await grow(fork, 7);
});
beforeEach(async () => {
  proxy = await LyingProxy.before(service.url);
});

async function grow(to: TestService, size: number): Promise<void> {
  const missing = size - (await to.entryCount());
  const note = anyEvent({ of: to.url });
  if (missing > 0) await to.server.registry.log.append(Array.from({ length: missing }, () => note));
}

const document = () => newManifest().document;
const otherHash = (hash: string) => (hash.startsWith("0") ? "1" : "0") + hash.slice(1);

/** A client that has seen the newest head. */
async function acquainted(store: Store = memoryStore()) {
  const made = newClient(proxy.url, { store });
  const head = (await made.client.log.head())!;
  return { ...made, head, store };
}

describe("heads", () => {
  test("one with another root than was signed", async () => {
    const { client, head } = await acquainted();
    await grow(service, head.tree_size + 1);
    proxy.lie = (path, answer) =>
      path === "/log/sth" ? { ...answer, root_hash: otherHash(answer.root_hash) } : answer;
    const evidence = await conviction(client.log.head());
    expect(evidence).toMatchObject({ known: head, shown: { tree_size: head.tree_size + 1 } });
  });

  test("one that another key signed", async () => {
    const { client, head, store } = await acquainted();
    await grow(service, head.tree_size + 1);
    const { privateKey } = generateKeyPairSync("ed25519");
    const forged = ({ root_hash, tree_size, timestamp }: TreeHead) =>
      sign(null, Buffer.from(`${root_hash}:${tree_size}:${timestamp}`), privateKey).toString("base64");
    proxy.lie = (path, answer) => (path === "/log/sth" ? { ...answer, signature: forged(answer) } : answer);
    const { shown, known } = await conviction(client.log.head());
    expect({ shown, known }).toMatchObject({ shown: { tree_size: head.tree_size + 1 }, known: head });
    // The refused head is not stored.
    expect(await store.load()).toMatchObject({ head });
  });

  test("a longer one that does not go on from the one seen: the operator is convicted by its own signatures", async () => {
    const { client, head } = await acquainted();
    await grow(fork, head.tree_size + 3);
    proxy.upstream = fork.url;
    const { known, shown, proof, operatorKey } = await conviction(client.log.head());
    expect(known).toEqual(head);
    expect(shown!.tree_size).toBeGreaterThan(head.tree_size);
    const key = parsePublicKey(operatorKey);
    expect([await verifyTreeHead(known!, key), await verifyTreeHead(shown!, key)]).toEqual([true, true]);
    const given = proof as { peaks: string[]; extension: string[] };
    const claim = { fromSize: known!.tree_size, toSize: shown!.tree_size, peaks: given.peaks };
    const roots = { fromRoot: known!.root_hash, toRoot: shown!.root_hash, treeVersion: 2 } as const;
    expect(verifyConsistency({ ...claim, ...roots, extension: given.extension })).toBe(false);
  });

  test("another one of the same size", async () => {
    const size = Math.max(await service.entryCount(), await fork.entryCount());
    await grow(service, size);
    await grow(fork, size);
    const { client, head } = await acquainted();
    proxy.upstream = fork.url;
    const { known, shown } = await conviction(client.log.head());
    expect(known).toEqual(head);
    expect(shown).toMatchObject({ tree_size: size, key_id: head.key_id });
    expect(shown!.root_hash).not.toBe(head.root_hash);
  });

  test("a smaller one, though it was signed once", async () => {
    const earlier = (await service.get("/log/sth/3")).body;
    const { client, head } = await acquainted();
    proxy.lie = (path, answer) => (path === "/log/sth" ? earlier : answer);
    // An honest cache may have kept it: true, and no answer to the question.
    const { code, evidence } = await failure(client.log.head());
    expect([code, evidence]).toMatchObject(["stale-answer", { known: head, shown: earlier }]);
  });

  test("none any more", async () => {
    const { client, head } = await acquainted();
    proxy.lie = () => ({ type: "about:blank", title: "Not Found", status: 404, detail: "Empty.", code: "not-found" });
    proxy.status = 404;
    expect(await conviction(client.log.head())).toMatchObject({ known: head, shown: null });
    // The error page of a gateway is not the log's answer.
    proxy.lie = () => "<h1>Not Found</h1>";
    expect(await failure(client.log.head())).toMatchObject({ code: "malformed-answer", status: 404 });
  });

  test("one under another lens", async () => {
    const { client, head } = await acquainted();
    proxy.lie = (path, answer) => (path === "/log/sth" ? { ...answer, tree_version: 1 } : answer);
    expect(await conviction(client.log.head())).toMatchObject({ known: head, shown: { tree_version: 1 } });
  });

  test("one whose consistency is refused, or shown with a proof that does not hold", async () => {
    const { client, head, store } = await acquainted();
    await grow(service, head.tree_size + 1);
    const isProof = (path: string) => path.startsWith("/log/consistency");
    proxy.lie = (path, answer) => (isProof(path) ? { ...answer, extension: answer.extension.map(otherHash) } : answer);
    expect((await conviction(client.log.head())).proof).toMatchObject({ from_size: head.tree_size });
    // The sizes and roots in the proof itself are not trusted.
    proxy.lie = (path, answer) =>
      isProof(path) ? { ...answer, to_size: head.tree_size, to_root: head.root_hash, extension: [] } : answer;
    await conviction(client.log.head());
    const problem = { type: "about:blank", title: "No", status: 422, detail: "There is none.", code: "invalid-input" };
    proxy.lie = (path, answer) => (isProof(path) ? problem : answer);
    proxy.status = 422;
    expect((await conviction(client.log.head())).proof).toBeNull();
    // An overloaded service has not lied. The head is not trusted either.
    proxy.lie = (path, answer) => (isProof(path) ? { ...problem, status: 503, code: "overloaded" } : answer);
    proxy.status = 503;
    expect(await failure(client.log.head())).toMatchObject({ code: "overloaded", status: 503 });
    expect(await store.load()).toMatchObject({ head });
    proxy.repent();
    expect(await client.log.head()).toMatchObject({ tree_size: head.tree_size + 1 });
  });

  test("what one client saw, the next one with the same store goes by", async () => {
    const { store, head } = await acquainted();
    await grow(fork, head.tree_size + 1);
    proxy.upstream = fork.url;
    const { client } = newClient(proxy.url, { store });
    expect((await conviction(client.log.head())).known).toEqual(head);
  });
});

describe("the operator key", () => {
  test("where one is pinned no other signs, unless a chain of rotations leads to it", async () => {
    const other = newSigner().publicKey;
    const client = createClient({ server: proxy.url, operatorKey: other });
    const evidence = await conviction(client.log.head(), "operator-key-mismatch");
    expect(evidence).toMatchObject({ operatorKey: other, known: null });
    expect(proxy.asked).toEqual(["GET /log/sth", "GET /log/operator-key"]);
  });

  test.each([9, 0])(
    "the one seen first stays before another log of %i entries; another one pinned later is an error of its own",
    async (entries) => {
      const { store } = await acquainted();
      const stranger = await startTestService();
      if (entries) await grow(stranger, entries);
      proxy.upstream = stranger.url;
      await conviction(newClient(proxy.url, { store }).client.log.head(), "operator-key-mismatch");
      const { public_key } = (await stranger.get("/log/operator-key")).body;
      const pinned = createClient({ server: proxy.url, store, operatorKey: public_key });
      expect(await failure(pinned.log.head())).toMatchObject({ code: "operator-key-mismatch" });
    },
  );

  test("where one is known, another log at that address is sent nothing but questions without a session", async () => {
    const { store, signer } = await acquainted();
    const known = createClient({ server: service.url, store, signer: asSigner(signer) });
    await known.keys.register({ pseudonym: "Ada" });
    const session = await known.login();
    proxy.upstream = (await startTestService()).url;
    const writes: [string, (client: Client) => Promise<unknown>][] = [
      ["a sign-in", (client) => client.login()],
      ["an attestation", (client) => client.attest(document())],
      ["a list that needs a session", (client) => client.webhooks.list()],
    ];
    for (const [what, write] of writes) {
      proxy.asked.length = 0;
      const client = createClient({ server: proxy.url, store, signer: asSigner(signer), session });
      await conviction(write(client), "operator-key-mismatch");
      expect(
        proxy.asked.filter((asked) => !/^GET \/(?:log|keys)\//.test(asked)),
        what,
      ).toEqual([]);
    }
  });
});

describe("receipts", () => {
  test("an old entry is no receipt for a new key", async () => {
    const { client, head } = await acquainted();
    await client.keys.register({ pseudonym: "Ada" });
    const other = newClient(proxy.url);
    await other.client.log.head();
    const old = (await service.get("/log/1")).body;
    proxy.lie = (path, answer) =>
      path === "/keys/register" ? { ...answer, log_entry_id: 1, leaf_index: 0, entry_hash: old.entry_hash } : answer;
    const { entry, shown, known } = await conviction(other.client.keys.register({ pseudonym: "Eve" }));
    expect(entry).toEqual(old);
    expect([shown, known].every((one) => one!.tree_size > head.tree_size)).toBe(true);
  });

  test("nor is another new entry", async () => {
    const [mine, others] = [newClient(proxy.url), newClient(service.url)];
    await mine.client.log.head();
    let answered: unknown;
    proxy.lie = (path, answer) => (path === "/keys/register" ? answered : answer);
    answered = { ...(await others.client.keys.register({ pseudonym: "Eve" })), fingerprint: mine.fingerprint };
    const { entry } = await conviction(mine.client.keys.register({ pseudonym: "Ada" }));
    expect(entry!.payload).toMatchObject({ fingerprint: others.fingerprint });
  });

  test.each([
    ["payload", (entry: { payload: object }) => ({ ...entry, payload: { ...entry.payload, pseudonym: "Eve" } })],
    ["id", (entry: { id: number }) => ({ ...entry, id: entry.id + 1 })],
    ["event type", (entry: object) => ({ ...entry, event_type: "key_revocation" })],
  ])("an entry whose %s was changed", async (_, change) => {
    const { client } = await acquainted();
    proxy.lie = (path, answer) => (/^\/log\/\d+$/.test(path) ? change(answer) : answer);
    expect((await conviction(client.keys.register({ pseudonym: "Ada" }))).entry).not.toBeNull();
  });

  test("an entry that the proof does not lead from", async () => {
    const { client } = await acquainted();
    proxy.lie = (path, answer) =>
      path.startsWith("/log/proof/") ? { ...answer, audit_path: answer.audit_path.map(otherHash) } : answer;
    const { proof, shown, entry } = await conviction(client.keys.register({ pseudonym: "Ada" }));
    expect(proof).toMatchObject({ sth: shown, entry_hash: entry!.entry_hash });
  });

  const acts: [string, (client: Client) => Promise<readonly unknown[]>][] = [
    [
      "a key",
      async (client) => {
        await client.keys.register({ pseudonym: "Ada" });
        return [(await service.get("/log/sth")).body];
      },
    ],
    ["an attestation", async (client) => [(await client.attest(document())).receipt.sth]],
    [
      "attestations",
      async (client) => (await all(client.attestAll([document(), document()]))).map(({ receipt }) => receipt!.sth),
    ],
  ];
  test.each(acts)(
    "of %s whose head does not go on from the one seen; the last one that does is the one seen",
    async (_, act) => {
      const { head, store } = await acquainted();
      await grow(fork, head.tree_size + 3);
      proxy.upstream = fork.url;
      // What it signs is for the service that it talks to, and so is taken.
      const { client } = newClient(proxy.url, { store, publicOrigin: fork.url });
      expect(await conviction(act(client))).toMatchObject({ known: head });
      expect(await store.load()).toMatchObject({ head });
      proxy.upstream = service.url;
      const honest = await acquainted();
      const heads = await act(honest.client);
      expect((await honest.store.load())!.head).toEqual(heads.at(-1));
    },
  );

  test("an entry that was kept out of the tree: the head did not grow", async () => {
    const { client, head } = await acquainted();
    const proof = (await service.get(`/log/proof/0`)).body;
    proxy.lie = (path, answer) => (path.startsWith("/log/proof/") ? proof : answer);
    expect(await conviction(client.keys.register({ pseudonym: "Ada" }))).toMatchObject({ known: head, shown: head });
  });

  test("an attestation of another type or intent than was asked for, where no signature covers them", async () => {
    const { client } = await acquainted();
    const twists = [{ attestation_type: "publication" }, { intent_statement: "I endorse it." }];
    for (const twisted of twists) {
      // Its attestation covers the document unchanged, so type and statement are not signed.
      const attestations = [(await client.attest(document())).receipt.attestation];
      proxy.twist = (path, body) => (path === "/attestations" ? { ...body, ...twisted } : body);
      const subject = { document: document(), attestations };
      expect((await conviction(client.attest(subject))).entry!.payload).toMatchObject(twisted);
      // If the document names them, the service refuses other values, too.
      expect(await failure(client.attest(document()))).toMatchObject({ code: "invalid-input", status: 422 });
      proxy.twist = null;
    }
  });

  test("an attestation whose signature was exchanged, whose head was, or that is shown as one made before", async () => {
    const { client } = await acquainted();
    const subject = document();
    const isReceipt = (path: string) => path === "/attestations";
    const signature = "A".repeat(86).concat("==");
    proxy.lie = (path, answer) =>
      isReceipt(path) ? { ...answer, attestation: { ...answer.attestation, signature } } : answer;
    await conviction(client.attest(subject));
    const sth = (await fork.get("/log/sth")).body;
    proxy.lie = (path, answer) => (isReceipt(path) ? { ...answer, sth } : answer);
    expect((await conviction(client.attest(document()))).shown).toEqual(sth);
    proxy.repent();
    const { receipt } = await client.attest(subject);
    proxy.lie = (path, answer) => (isReceipt(path) ? { ...receipt, duplicate: true } : answer);
    await conviction(client.attest(document()));
  });

  test("one said to be made before, of another type or statement than is asked for", async () => {
    const { client, signer } = await acquainted();
    const plain = newManifest();
    const { body: receipt } = await service.post(
      "/attestations",
      submission(signer, plain, { intent_statement: "I confess." }),
    );
    // The manifest is signed unchanged because of its attestation, so only the log states type and statement.
    const subject = { ...plain, attestations: [receipt.attestation] };
    const { receipt: honest } = await client.attest(subject, { intent: "I read it." });
    expect(honest.duplicate).toBe(false);
    for (const options of [{ intent: "I wrote it." }, {}, { type: "peer_review", intent: "I read it." }]) {
      proxy.lie = (path, answer) => (path === "/attestations" ? { ...honest, duplicate: true } : answer);
      proxy.status = 200;
      expect((await conviction(client.attest(subject, options))).entry!.payload).toMatchObject({
        intent_statement: "I read it.",
      });
    }
  });

  test("an entry that says the same, and was made by an earlier request", async () => {
    const { client } = await acquainted();
    await client.keys.register({ pseudonym: "Ada" });
    let first: object | null = null;
    proxy.lie = (path, answer) => {
      if (path !== "/log/request-policies") return answer;
      first ??= answer;
      return first;
    };
    const predicates = { field: "attestation_type", op: "eq", value: "authorship" };
    const publish = () => client.policies.publish({ predicates, default_action_on_failure: "decline" });
    const { log_entry_id } = await publish();
    expect((await conviction(publish())).entry).toMatchObject({ id: log_entry_id });
  });

  test("a request that was changed on its way, where a session and no proof allowed it", async () => {
    const { client: holder, fingerprint } = await acquainted();
    await holder.keys.register({ pseudonym: "Ada" });
    const client = createClient({ server: proxy.url, session: await holder.login() });
    proxy.twist = (path, body) =>
      path === "/log/attestation-requests" ? { ...body, claims: { price: "1000" } } : body;
    const asked = { target_fingerprint: fingerprint, attestation_type: "authorship", claims: { price: "1" } };
    expect(await failure(holder.requests.create(asked))).toMatchObject({ code: "forbidden" });
    expect((await conviction(client.requests.create(asked))).entry!.payload).toMatchObject({
      claims: { price: "1000" },
    });
  });

  test("a decline by the target's policy says what the log has, in both places that show it", async () => {
    const [target, asking] = [newClient(proxy.url), newClient(proxy.url)];
    for (const { client } of [target, asking]) await client.keys.register({ pseudonym: "Ada" });
    const predicates = { field: "attestation_type", op: "eq", value: "authorship" } as const;
    await target.client.policies.publish({ predicates, default_action_on_failure: "decline" });
    const ask = () =>
      asking.client.requests.create({ target_fingerprint: target.fingerprint, attestation_type: "publication" });
    const { response } = await ask();
    expect(response).toMatchObject({ decision: "decline", reason: expect.any(String) });
    const lies = [
      ...[{ reason: "You are not welcome." }, { decision: "accept" }, { attestation_id: "1" }],
      ...[{ responder_fingerprint: target.fingerprint }, { responded_at: "2025-01-01T00:00:00.000000+00:00" }],
      { by_target: true },
      // That of the request before.
      { ...response },
    ];
    for (const lie of lies) {
      proxy.lie = (path, answer) => {
        if (path !== "/log/attestation-requests") return answer;
        const told = { ...answer.response, ...lie };
        return { ...answer, response: told, responses: [told] };
      };
      await conviction(ask());
    }
  });

  test("an endorsement of another key is none: the service refuses what the proof does not name", async () => {
    const { client } = await acquainted();
    await client.keys.register({ pseudonym: "Ada" });
    const [friend, eve] = [newClient(service.url), newClient(service.url)];
    await friend.client.keys.register({ pseudonym: "Bob" });
    await eve.client.keys.register({ pseudonym: "Eve" });
    proxy.twist = (path, body) =>
      path === "/endorsements/offer" ? { ...body, endorsed_fingerprint: eve.fingerprint } : body;
    const offer = { endorsed_fingerprint: friend.fingerprint, category: "x-service:human_attestation" } as const;
    expect(await failure(client.endorsements.offer(offer))).toMatchObject({ code: "forbidden", status: 403 });
  });
});

describe("entries", () => {
  const isProof = (path: string) => /^\/log\/\d+\/proof$/.test(path);

  test("one that is said to lie where another does", async () => {
    const { client } = await acquainted();
    proxy.lie = (path, answer) => (isProof(path) ? { ...answer, leaf_index: answer.leaf_index - 1 } : answer);
    expect(await conviction(client.log.entry(3))).toMatchObject({ entry: { id: 3 }, proof: { leaf_index: 1 } });
  });

  test("one that lies further on than its id allows", async () => {
    const { client } = await acquainted();
    const later = await (await fetch(`${service.url}/api/v1/log/4`)).json();
    const proof = await (await fetch(`${service.url}/api/v1/log/4/proof`)).json();
    proxy.lie = (path, answer) => (path === "/log/2" ? { ...later, id: 2 } : isProof(path) ? proof : answer);
    expect(await conviction(client.log.entry(2))).toMatchObject({ proof: { leaf_index: 3 } });
  });
});

describe("lists", () => {
  /** Reads a list of which nothing may be given before it is proven. */
  async function noneOf(list: AsyncIterable<unknown>): Promise<void> {
    for await (const item of list) expect.unreachable(`it was given: ${JSON.stringify(item)}`);
  }

  test("an entry in them whose content was changed", async () => {
    const { client } = await acquainted();
    proxy.lie = (path, answer) => {
      if (!path.startsWith("/log?")) return answer;
      const [first, ...rest] = answer.entries;
      return { ...answer, entries: [{ ...first, payload: { forged: true } }, ...rest] };
    };
    expect((await conviction(all(client.log.entries()))).entry!.payload).toEqual({ forged: true });
    await conviction(noneOf(client.log.since(0)));
  });

  test("entries that are left out, or are another log's", async () => {
    const { client } = await acquainted();
    const listed = (change: (entries: object[]) => object[]) => (path: string, answer: { entries: object[] }) =>
      path.startsWith("/log?") ? { ...answer, entries: change(answer.entries) } : answer;
    proxy.lie = listed((entries) => entries.slice(0, -1));
    await conviction(noneOf(client.log.since(0)));
    proxy.lie = listed(([first, , ...rest]) => [first!, ...rest, rest.at(-1)!]);
    await conviction(noneOf(client.log.since(0)));
    await grow(fork, await service.entryCount());
    const { entries } = (await fork.get("/log?per_page=200")).body;
    proxy.lie = listed((own) => entries.slice(0, own.length));
    await conviction(noneOf(client.log.since(0)));
  });
});

describe("answers that are none", () => {
  test.each([
    ["no JSON", "<html>"],
    ["two readings", '{"fingerprint":"a","fingerprint":"b"}'],
    ["a member missing", { algorithm: "ed25519" }],
    ["null", null],
  ])("%s", async (_, told) => {
    const client = createClient({ server: proxy.url });
    proxy.lie = () => told;
    expect(await failure(client.log.operatorKey())).toMatchObject({ code: "malformed-answer", status: 200 });
    proxy.status = 500;
    expect(await failure(client.log.operatorKey())).toMatchObject({ code: "malformed-answer", status: 500 });
    proxy.repent();
    await client.log.operatorKey();
  });

  test("an operator key that is none, another key's session, another key than was looked up", async () => {
    proxy.lie = (path, answer) => (path === "/log/operator-key" ? { ...answer, public_key: "no PEM" } : answer);
    const { client, fingerprint } = newClient(proxy.url);
    expect(await failure(client.log.head())).toMatchObject({ code: "malformed-answer" });
    proxy.repent();
    await client.keys.register({ pseudonym: "Ada" });
    const strange = newSigner();
    proxy.lie = (path, answer) => (path === "/auth/login" ? { ...answer, fingerprint: strange.fingerprint } : answer);
    expect(await failure(client.login())).toMatchObject({ code: "malformed-answer" });
    expect(client.session).toBeUndefined();
    proxy.lie = (path, answer) => (path.startsWith("/keys/") ? { ...answer, public_key: strange.publicKey } : answer);
    expect(await failure(client.keys.find(fingerprint))).toMatchObject({ code: "malformed-answer" });
  });
});
