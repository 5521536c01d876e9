/** The service on a log with an imported history: version 1, gaps, odd payloads, and live entries after it. */
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { verifyConsistency, verifyInclusion } from "#cairnlog/engine/verify/index.js";
import { all, newClient } from "../../client/clients.js";
import { chain, definedRoot, type MadeEntry, momentNumber, type Wanted } from "../../log/history/entries.js";
import { expectProblem, startTestService, type TestService, temporaryFolder } from "../../server/harness.js";
import { canonical, newManifest, newSigner, registration, sha256, submission } from "../../server/signers.js";
import { preUpgrade } from "../signing/claimants.js";

const alice = newSigner();
const bob = newSigner();
/** The key that the odd entries name. */
const victim = newSigner();
const manifest = newManifest("An old report");
const AUTHORSHIP = "https://x-service.example/predicates/authorship/v1";
const names = { endorser_key_fingerprint: alice.fingerprint, endorsed_key_fingerprint: bob.fingerprint };
const registered = (signer: typeof alice, pseudonym: string) => ({
  event_type: "key_registration",
  payload: {
    fingerprint: signer.fingerprint,
    public_key: signer.publicKey,
    pseudonym,
    key_algorithm: "ed25519",
    expiration_date: null,
  },
});

const attestation = {
  attestation_id: "an-old-attestation",
  attestation_type: "authorship",
  signer_key_fingerprint: alice.fingerprint,
  document_hash: manifest.document.content_hash,
  manifest_hash: sha256(canonical(manifest)),
  document_title: manifest.document.title,
  signature_algorithm: "ed25519",
  signature: alice.sign(canonical(manifest)),
  intent_statement: null,
  timestamp: momentNumber(3),
  tags: ["Old", "report"],
};

const LOOKUP_KEY = "5".repeat(64);
/** Of version 2, in the served form. */
const laterClaim = {
  ...{ ciphertext: "", commitment: "", commitment_alg: "", ephemeral_public_key: "", event_type: "encrypted_claim" },
  ...{ lookup_key: LOOKUP_KEY, nonce: "" },
};

/** Entries 1 to 7. The attestation is entry 3, the offer entry 4, the claim entry 7. */
const beginning: Wanted[] = [
  registered(alice, "Alice"),
  registered(bob, "Bob"),
  { event_type: AUTHORSHIP, payload: attestation, ots_proof: Buffer.from("proof").toString("base64") },
  {
    event_type: "endorsement_offer",
    payload: { ...names, category: "x-service:human_attestation", valid_until: null },
  },
  { event_type: "endorsement_acceptance", payload: { ...names, offer_entry_id: 4, note: null } },
  registered(victim, "Victim"),
  preUpgrade(LOOKUP_KEY),
];
const ODD: readonly unknown[] = [
  null,
  true,
  7,
  -1,
  "",
  "x",
  "sha256:",
  "\u0000",
  "a".repeat(3000),
  [],
  [[]],
  {},
  { toString: 1 },
  1e308,
];
const TYPES = [
  "key_registration",
  "key_succession",
  "key_revocation",
  "operator_key_rotation",
  AUTHORSHIP,
  "endorsement_offer",
  "endorsement_acceptance",
  "endorsement_withdrawal",
  "acceptance_revocation",
  "endorser_revocation_alert",
  "attestation_request",
  "attestation_request_response",
  "request_policy",
  "encrypted_claim",
  "",
  "__proto__",
];
const MEMBERS = [
  ...["fingerprint", "old_fingerprint", "public_key", "pseudonym", "key_algorithm", "expiration_date", "tags"],
  ...["attestation_id", "signer_key_fingerprint", "document_hash", "manifest_hash", "timestamp", "signature"],
  ...["endorser_key_fingerprint", "endorsed_key_fingerprint", "compromised_key_fingerprint", "category", "valid_until"],
  ...["institutional_metadata", "external_identifiers", "offer_entry_id", "note", "reason", "evidence", "lookup_key"],
  ...["request_id", "requester_fingerprint", "target_fingerprint", "nonce", "deadline", "claims", "predicates"],
  ...["default_action_on_failure", "effective_from", "decision", "responder_fingerprint", "status"],
  ...["old_public_key", "tree_size", "root_hash", "old_key_signature", "new_key_signature"],
];
/** Every type with every odd value in all of its members, and with one member odd and the others plausible. */
const odd: Wanted[] = TYPES.flatMap((event_type, t) =>
  ODD.map((value, v) => ({
    event_type,
    payload: Object.fromEntries(
      MEMBERS.map((member, m) => [
        member,
        (m + v + t) % 3 ? value : member.endsWith("fingerprint") ? victim.fingerprint : "2025-01-01T00:00:00Z",
      ]),
    ),
  })),
);
const IMPORTED = beginning.length + odd.length + 40;

let service: TestService;
let dataDir: string;
let history: MadeEntry[];
/** The history and later entries, as the log lists them. */
let entries: MadeEntry[];
beforeAll(async () => {
  dataDir = temporaryFolder();
  const start = beginning.length + odd.length;
  history = chain([
    ...beginning,
    ...odd,
    // A gap, twenty steps back in time, and a version 2 end.
    ...Array.from(
      { length: 30 },
      (_, n): Wanted => ({
        id: 10_000 + start + n,
        event_type: "note",
        payload: { n, tags: ["Numbered"] },
        timestamp: n % 3 ? momentNumber(9_000 + n) : `2019-06-${10 + n / 3} 12:00:00`,
        chain_version: n % 2 ? 1 : null,
      }),
    ),
    ...Array<Wanted>(9).fill({ chain_version: 2 }),
    { chain_version: 2, payload: laterClaim },
  ]);
  const options = { path: join(dataDir, "log"), signer: openOperatorKey(join(dataDir, "operator.pem")), projection };
  await importEntries(options, history as never);
  service = await startTestService({
    SERVICE_DATA_DIR: dataDir,
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
    SERVICE_ENDORSEMENT_MIN_TRUST: "0",
  });
});

async function listed(path: string): Promise<MadeEntry[]> {
  const found: MadeEntry[] = [];
  for (let page = 1; ; page++) {
    const { body } = await service.get(`${path}${path.includes("?") ? "&" : "?"}page=${page}&per_page=200`);
    found.push(...body.entries);
    if (found.length >= body.total) return found;
  }
}

describe("right after the import", () => {
  test("it is ready: the newest entry has a head, by the operator's key", async () => {
    expect((await service.send("GET", "/readyz")).status).toBe(200);
    expect((await service.get("/log/head")).body).toEqual({
      head: {
        id: history.at(-1)!.id,
        entry_hash: history.at(-1)!.entry_hash,
        event_type: "encrypted_claim",
        timestamp: history.at(-1)!.timestamp,
      },
      entry_count: IMPORTED,
    });
    const { body: head } = await service.get("/log/sth");
    const digests = history.map(({ entry_hash }) => entry_hash);
    expect(head).toMatchObject({ tree_size: IMPORTED, root_hash: definedRoot(digests, 2), tree_version: 2 });
    expect((await service.get("/log/checkpoint")).text).toContain(`\n${IMPORTED}\n`);
    for (const size of [0, 1, IMPORTED - 1, IMPORTED + 1])
      expectProblem(await service.get(`/log/sth/${size}`), 404, "not-found");
    expect((await service.get(`/log/sth/${IMPORTED}`)).body).toEqual(head);
  });

  test("entries are served as they were, ids that it left out are 404", async () => {
    expect(await listed("/log")).toEqual(history);
    for (const { id } of [history[0]!, history[2]!, history.at(-1)!])
      expect((await service.get(`/log/${id}`)).body).toEqual(history.find((entry) => entry.id === id));
    expectProblem(await service.get(`/log/${beginning.length + odd.length + 1}`), 404, "not-found");
  });

  test("verification finds nothing wrong", async () => {
    expect((await service.post("/log/verify")).body).toEqual({
      valid: true,
      entry_count: IMPORTED,
      errors: [],
      warnings: [],
    });
    expect(service.server.registry.log.stateDifferences()).toEqual([]);
  });

  test("keys and endorsements are those that the history made", async () => {
    expect((await service.get(`/keys/${alice.fingerprint}`)).body).toMatchObject({
      pseudonym: "Alice",
      log_entry_id: 1,
      registered_at: history[0]!.timestamp,
    });
    const { endorsements } = (await service.get(`/endorsements/${bob.fingerprint}`)).body;
    expect(endorsements).toContainEqual(expect.objectContaining({ offer_entry_id: 4, status: "active" }));
    expect((await service.get("/keys")).body.keys).toContainEqual(expect.objectContaining({ pseudonym: "Bob" }));
    expect((await service.get(`/graph/${alice.fingerprint}`)).status).toBe(200);
  });

  test("the anchor that came with it is reported", async () => {
    expect((await service.get("/log/anchor-status")).body).toMatchObject({
      anchored_entry_id: 3,
      entries_since_anchor: IMPORTED - 3,
    });
  });
});

describe("with live entries behind", () => {
  const carol = newSigner();
  beforeAll(async () => {
    expect((await service.post("/keys/register", registration(carol))).body).toMatchObject({
      log_entry_id: history.at(-1)!.id + 1,
      leaf_index: IMPORTED,
    });
    for (let n = 0; n < 5; n++) expect((await service.post("/attestations", submission(carol))).status).toBe(200);
    entries = await listed("/log");
    expect(entries).toHaveLength(IMPORTED + 6);
  });

  test.each([1, 2] as const)("proofs hold on both sides of the boundary, under lens %i", async (treeVersion) => {
    const digests = entries.map(({ entry_hash }) => entry_hash);
    for (const treeSize of [1, 2, 3, 100, IMPORTED - 1, IMPORTED, IMPORTED + 1, IMPORTED + 6]) {
      const rootHash = definedRoot(digests.slice(0, treeSize), treeVersion);
      const isOld = treeSize < IMPORTED;
      for (const leafIndex of new Set([0, Math.floor(treeSize / 2), treeSize - 1])) {
        const query = `tree_size=${treeSize}&tree_version=${treeVersion}`;
        const { body: proof } = await service.get(`/log/proof/${leafIndex}?${query}`);
        expect(proof).toMatchObject({ leaf_index: leafIndex, tree_size: treeSize, root_hash: rootHash });
        expect(proof.sth === null).toBe(isOld);
        const claim = { leaf: digests[leafIndex]!, leafIndex, treeSize, rootHash, treeVersion };
        expect(verifyInclusion({ ...claim, auditPath: proof.audit_path })).toBe(true);
        expect((await service.get(`/log/${entries[leafIndex]!.id}/proof?${query}`)).body).toEqual(proof);
      }
      const toSize = IMPORTED + 6;
      const query = `from=${treeSize}&to=${toSize}&tree_version=${treeVersion}`;
      const { body } = await service.get(`/log/consistency?${query}`);
      expect(body).toMatchObject({ from_root: rootHash, to_root: definedRoot(digests, treeVersion) });
      expect(body.from_sth === null).toBe(isOld);
      const { peaks, extension, from_root: fromRoot, to_root: toRoot } = body;
      expect(verifyConsistency({ fromSize: treeSize, toSize, peaks, extension, fromRoot, toRoot, treeVersion })).toBe(
        true,
      );
    }
    expectProblem(await service.get(`/log/${beginning.length + odd.length + 1}/proof`), 404, "not-found");
  });

  test("searches, fingerprints, tags and types find old entries and new ones", async () => {
    const ids = async (path: string) => (await listed(path)).map(({ id }) => id);
    const named = (fingerprint: string) =>
      entries
        .filter(({ payload }) =>
          [
            "fingerprint",
            "old_fingerprint",
            "signer_key_fingerprint",
            "endorsed_key_fingerprint",
            "endorser_key_fingerprint",
          ].some((field) => payload[field] === fingerprint),
        )
        .map(({ id }) => id);
    expect(await ids(`/log/by-fingerprint/${alice.fingerprint}`)).toEqual(named(alice.fingerprint));
    expect(await ids(`/log/by-fingerprint/${carol.fingerprint}`)).toEqual(named(carol.fingerprint));
    expect(await ids("/log?tags=numbered")).toHaveLength(30);
    expect(await ids("/log?tags=OLD,Report")).toEqual([3]);
    expect(await ids(`/log?search=${history[20]!.entry_hash.slice(0, 20)}`)).toEqual([history[20]!.id]);
    expect(await ids(`/log?search=${manifest.document.content_hash}`)).toEqual([3]);
    expect(await ids("/log?event_type=note")).toHaveLength(30);
  });

  test("dates are right also where time went back", async () => {
    const ids = async (query: string) => (await listed(`/log/audit-trail?${query}`)).map(({ id }) => id);
    const in2019 = entries.filter(({ timestamp }) => timestamp.startsWith("2019"));
    expect(in2019).toHaveLength(10);
    expect(await ids("start_date=2019-01-01&end_date=2019-12-31")).toEqual(in2019.map(({ id }) => id));
    expect(await ids("start_date=2019-06-12&end_date=2019-06-13")).toEqual(in2019.slice(2, 4).map(({ id }) => id));
    const since = entries[IMPORTED]!.timestamp;
    expect(await ids(`start_date=${since}`)).toEqual(entries.slice(IMPORTED).map(({ id }) => id));
    const others = entries.filter(({ timestamp }) => !timestamp.startsWith("2019") && timestamp < since);
    expect(await ids("start_date=2020-01-01&end_date=2021-01-01")).toEqual(others.map(({ id }) => id));
    expect(await ids(`end_date=2019-12-31&document_hash=${attestation.document_hash}`)).toEqual([]);
  });

  test("the audit export tells it whole, and goes on after an id", async () => {
    const { body } = await service.get("/audit/export?page_size=1000");
    expect(body.entries).toEqual(entries);
    const gap = history[beginning.length + odd.length]!.id - 500;
    const rest = (await service.get(`/audit/export?page_size=1000&after_id=${gap}`)).body;
    expect(rest).toMatchObject({ entries: entries.slice(beginning.length + odd.length), total: 46 });
    const { text } = await service.get("/audit/export?format=csv&page_size=1000");
    expect(text.split("\r\n")[1]).toMatch(/^1,/);
  });

  test("a client verifies claims of either version, which come without their version", async () => {
    const { client } = newClient(service.url);
    expect(await all(client.claims.list(LOOKUP_KEY))).toMatchObject([{ id: 7 }, { id: history.at(-1)!.id }]);
  });

  test("a repeated imported attestation gets its first receipt, without a head", async () => {
    const before = await service.entryCount();
    const { body } = await service.post("/attestations", submission(alice, manifest));
    expect(body).toMatchObject({
      duplicate: true,
      log_entry_id: 3,
      leaf_index: 2,
      entry_hash: history[2]!.entry_hash,
      sth: null,
      attestation: { id: "an-old-attestation" },
    });
    expect(await service.entryCount()).toBe(before);
    const signed = { ...manifest, attestations: [body.attestation] };
    const verdict = await service.post("/verify", { manifest: signed, source_hash: manifest.document.content_hash });
    expect(verdict.body).toMatchObject({
      overall_status: "valid",
      attestations: [{ logged: { entry_id: 3, leaf_index: 2 } }],
    });
  });

  test("a client verifies entries by their ids, old and new, and learns their places", async () => {
    const { client } = newClient(service.url);
    for (const leafIndex of [0, 1, beginning.length + odd.length, IMPORTED - 1, IMPORTED, IMPORTED + 5]) {
      const { id } = entries[leafIndex]!;
      const proven = await client.log.entry(id);
      expect(proven).toMatchObject({ entry: { id }, proof: { leaf_index: leafIndex } });
    }
    // The third entry came with an invalid proof.
    for (const reading of [client.log.entry(entries[2]!.id), all(client.log.since(0))])
      await expect(reading).rejects.toThrow(/OpenTimestamps/);
    expect(await all(client.log.since(entries[2]!.id))).toEqual(entries.slice(3));
  });

  test("endorsements go on with ids and places that differ", async () => {
    const { client, fingerprint } = newClient(service.url);
    await client.keys.register({ pseudonym: "Dora" });
    const other = newClient(service.url);
    await other.client.keys.register({ pseudonym: "Emil" });
    const offer = await client.endorsements.offer({
      endorsed_fingerprint: other.fingerprint,
      category: "x-service:human_attestation",
    });
    expect(offer.entry.id - offer.proof.leaf_index).toBe(history.at(-1)!.id - IMPORTED + 1);
    const { endorsement } = await other.client.endorsements.accept(offer.entry.id);
    expect(endorsement).toMatchObject({ endorser_fingerprint: fingerprint, offer_entry_id: offer.entry.id });
  });

  test("after a restart everything is as it was", async () => {
    await service.close();
    service = await startTestService({ SERVICE_DATA_DIR: dataDir });
    expect((await listed("/log")).slice(0, entries.length)).toEqual(entries);
    expect((await service.post("/log/verify")).body).toMatchObject({ valid: true, errors: [] });
    expect(service.server.registry.log.stateDifferences()).toEqual([]);
  });
});
