/** Attestations and their verification over HTTP. */
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { canonical, newManifest, newSigner, registration, sha256, submission } from "../../server/signers.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

describe("POST /attestations", () => {
  test("records the attestation of a new key: the key first, then the attestation", async () => {
    const signer = newSigner();
    const manifest = newManifest();
    const before = await service.entryCount();
    const reply = await service.post(
      "/attestations",
      submission(signer, manifest, { pseudonym: "Ada", intent_statement: "I wrote it." }),
    );
    expect(reply.status, reply.text).toBe(200);
    expect(reply.body).toMatchObject({
      attestation: {
        type: "authorship",
        scope: { content_hash: manifest.document.content_hash },
        signer_key_fingerprint: signer.fingerprint,
        signature_algorithm: "ed25519",
        intent_statement: "I wrote it.",
      },
      fingerprint: signer.fingerprint,
      pseudonym: "Ada",
      log_entry_id: before + 2,
      leaf_index: before + 1,
      manifest_hash: sha256(canonical(manifest)),
      duplicate: false,
    });
    expect(reply.body.sth.tree_size).toBe(before + 2);
    expect((await service.get(`/log/${before + 1}`)).body.event_type).toBe("key_registration");
    const entry = (await service.get(`/log/${before + 2}`)).body;
    expect(entry.event_type).toBe("https://x-service.example/predicates/authorship/v1");
    expect(entry.entry_hash).toBe(reply.body.entry_hash);
    expect(entry.payload).toMatchObject({ manifest_hash: sha256(canonical(manifest)), document_title: "A report" });
  });

  test("a known key needs no second registration", async () => {
    const signer = newSigner("ecdsa-p256");
    await service.post("/keys/register", registration(signer, "Known"));
    const before = await service.entryCount();
    const { body } = await service.post("/attestations", submission(signer, newManifest(), { pseudonym: "Other" }));
    expect(body).toMatchObject({ pseudonym: "Known", log_entry_id: before + 1, leaf_index: before });
  });

  test("the same submission again gives the first receipt", async () => {
    const body = submission(newSigner(), newManifest(), { attestation_type: "peer_review" });
    const first = await service.post("/attestations", body);
    const before = await service.entryCount();
    const second = await service.post("/attestations", body);
    expect(second.status).toBe(200);
    expect(second.body).toEqual({ ...first.body, duplicate: true });
    expect(await service.entryCount()).toBe(before);
  });

  test("a manifest is the same one however it is spelled, alone and among others", async () => {
    const signer = newSigner();
    const manifest = newManifest();
    const body = submission(signer, manifest);
    const others = JSON.stringify({ ...body, manifest: null });
    const { title, ...document } = manifest.document;
    const reversed = { document: { ...document, title }, attestations: manifest.attestations };
    const spellings = [canonical(manifest), JSON.stringify(manifest, null, 2), JSON.stringify(reversed)];
    expect(new Set(spellings).size).toBe(spellings.length);
    const texts = spellings.map((text) => others.replace('"manifest":null', () => `"manifest":${text}`));
    const first = await service.post("/attestations", texts[0]);
    expect(first.body).toMatchObject({ manifest_hash: sha256(canonical(manifest)), duplicate: false });
    const known = { ...first.body, duplicate: true };
    for (const text of texts) expect((await service.post("/attestations", text)).body).toEqual(known);
    const { body: answer } = await service.post("/attestations/batch", `{"submissions":[${texts.join()}]}`);
    expect(answer.results).toEqual(texts.map(() => ({ status: 200, receipt: known })));
  });

  test("a predicate of the operator's is 403", async () => {
    const attestation_type = "https://x-service.example/predicates/vault-publication/v1";
    const reply = await service.post("/attestations", submission(newSigner(), newManifest(), { attestation_type }));
    expectProblem(reply, 403, "forbidden");
  });

  test("a signature over anything else is 422", async () => {
    const signer = newSigner();
    const reply = await service.post(
      "/attestations",
      submission(signer, newManifest(), { signature: signer.sign("x") }),
    );
    expectProblem(reply, 422, "invalid-signature");
  });
});

describe("POST /verify", () => {
  test("a recorded attestation verifies in layers 1 and 2", async () => {
    const manifest = newManifest();
    const { body } = await service.post("/attestations", submission(newSigner(), manifest));
    const attested = { ...manifest, attestations: [body.attestation] };
    const hash = manifest.document.content_hash;
    for (const source_hash of [hash, hash.slice("sha256:".length)]) {
      const reply = await service.post("/verify", { manifest: attested, source_hash });
      expect(reply.status, reply.text).toBe(200);
      expect(reply.body).toMatchObject({
        layer1: { status: "valid" },
        layer2: { status: "valid" },
        overall_status: "valid",
        attestations: [
          { id: body.attestation.id, logged: { entry_id: body.log_entry_id, leaf_index: body.leaf_index } },
        ],
      });
      expect(reply.body).not.toHaveProperty("layer3");
    }
    const other = await service.post("/verify", { manifest: attested, source_hash: sha256("another source") });
    expect(other.body).toMatchObject({ layer1: { status: "invalid" }, overall_status: "invalid" });
  });

  test("a changed manifest is an answer, not an error", async () => {
    const manifest = newManifest();
    const { body } = await service.post("/attestations", submission(newSigner(), manifest));
    const changed = { document: { ...manifest.document, title: "Another" }, attestations: [body.attestation] };
    const reply = await service.post("/verify", { manifest: changed, source_hash: manifest.document.content_hash });
    expect(reply.status).toBe(200);
    expect(reply.body.layer1.status).toBe("invalid");
  });

  test("a manifest without attestations is invalid; one that is none is 422", async () => {
    const manifest = newManifest();
    const empty = await service.post("/verify", { manifest, source_hash: manifest.document.content_hash });
    expect(empty.body.overall_status).toBe("invalid");
    expectProblem(await service.post("/verify", { manifest, source_hash: "abc" }), 422, "invalid-input");
    expectProblem(await service.post("/verify", { manifest: {}, source_hash: sha256("") }), 422, "invalid-input");
    expectProblem(await service.post("/verify", { source_hash: sha256("") }), 422, "invalid-input");
  });
});
