/** A signature from the log, sent again over HTTP: only the holder of the key may use it for other statements. */
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { bearerOf, proofOf } from "../../server/proofs.js";
import { canonical, newManifest, newSigner, submission } from "../../server/signers.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

async function attested() {
  const signer = newSigner();
  const input = submission(signer, newManifest());
  const first = await service.post("/attestations", input);
  expect(first.status, first.text).toBe(200);
  return { signer, input, first: first.body, replayed: { ...input, attestation_type: "publication" } };
}

describe("a signature that the log has makes another attestation", () => {
  test("for nobody without a proof", async () => {
    const { input, first, replayed } = await attested();
    const before = await service.entryCount();
    expectProblem(await service.post("/attestations", replayed), 403, "proof-required");
    expectProblem(await service.post("/attestations", { ...input, intent_statement: "Mine." }), 403, "proof-required");
    const stranger = newSigner();
    await service.post("/attestations", submission(stranger));
    const bearer = await bearerOf(service, stranger);
    expectProblem(await service.post("/attestations", replayed, bearer), 403, "proof-required");
    expect(await service.entryCount()).toBe(before + 2);
    expect((await service.post("/attestations", input)).body).toEqual({ ...first, duplicate: true });
  });

  test("by a session of the key", async () => {
    const { signer, replayed } = await attested();
    const reply = await service.post("/attestations", replayed, await bearerOf(service, signer));
    expect(reply.status, reply.text).toBe(200);
    expect(reply.body).toMatchObject({ attestation: { type: "publication" }, duplicate: false });
    expect((await service.post("/attestations", replayed)).body).toEqual({ ...reply.body, duplicate: true });
  });

  test("by an auth proof of the key, once", async () => {
    const { signer, replayed } = await attested();
    const auth = await proofOf(service, signer);
    const reply = await service.post("/attestations", { ...replayed, auth });
    expect(reply.body, reply.text).toMatchObject({ attestation: { type: "publication" }, duplicate: false });
    const again = { ...replayed, attestation_type: "peer_review", auth };
    expectProblem(await service.post("/attestations", again), 409, "challenge-used");
  });

  test("by no proof of another kind or of another key", async () => {
    const { signer, replayed } = await attested();
    const login = await proofOf(service, signer, { purpose: "login" });
    expectProblem(await service.post("/attestations", { ...replayed, auth: login }), 403, "forbidden");
    const { signer: other } = await attested();
    const auth = await proofOf(service, other);
    expectProblem(await service.post("/attestations", { ...replayed, auth }), 403, "forbidden");
    expectProblem(
      await service.post("/attestations", replayed, { authorization: "Bearer a.b.c" }),
      401,
      "unauthenticated",
    );
    // Credentials for a proxy are not a session.
    const basic = { authorization: 'Basic dXNlcjpwYXNz, realm="Bearer"' };
    expectProblem(await service.post("/attestations", replayed, basic), 403, "proof-required");
  });

  test("by way of POST /documents/sign, too", async () => {
    const signer = newSigner();
    const { document } = newManifest();
    const request = { ...document, public_key_pem: signer.publicKey };
    const signature = signer.sign(canonical({ document, attestations: [] }));
    const first = await service.post("/documents/sign", { ...request, signature });
    expect(first.body, first.text).toMatchObject({ duplicate: false, signed: { attestation_type: false } });
    const manifest = { document, attestations: [] };
    const replayed = { manifest, public_key_pem: signer.publicKey, signature, intent_statement: "Mine." };
    expectProblem(await service.post("/attestations", replayed), 403, "proof-required");
    const named = { ...request, signature, intent_statement: "Mine." };
    expectProblem(await service.post("/documents/sign", named), 403, "proof-required");
    const auth = await proofOf(service, signer);
    expect((await service.post("/attestations", { ...replayed, auth })).status).toBe(200);
    expect((await service.post("/documents/sign", { ...request, signature, auth })).status).toBe(409);
  });
});

test("a manifest that names type and statement is signed with them, and the receipt says so", async () => {
  const signer = newSigner();
  const manifest = newManifest();
  Object.assign(manifest.document, { attestation_type: "peer_review", intent_statement: "I read it." });
  const reply = await service.post("/attestations", submission(signer, manifest));
  expect(reply.body).toMatchObject({
    attestation: { type: "peer_review", intent_statement: "I read it." },
    signed: { attestation_type: true, intent_statement: true },
  });
  const other = await service.post("/attestations", submission(signer, manifest, { attestation_type: "authorship" }));
  expectProblem(other, 422, "invalid-input");
  expect(other.body.errors).toEqual([{ path: "/attestation_type", message: expect.any(String) }]);
  const verdict = async (attestation: object) =>
    (
      await service.post("/verify", {
        manifest: { ...manifest, attestations: [attestation] },
        source_hash: manifest.document.content_hash,
      })
    ).body.attestations[0];
  expect(await verdict(reply.body.attestation)).toMatchObject({
    layer1: { status: "valid", details: expect.stringContaining("The signer signed the type and the statement.") },
    signed: { attestation_type: true, intent_statement: true },
  });
  const relabelled = { ...reply.body.attestation, id: "another", type: "publication", intent_statement: "Mine." };
  expect(await verdict(relabelled)).toMatchObject({
    layer1: {
      status: "invalid",
      details: "Its type is not the one that was signed. Its statement is not the one that was signed.",
    },
  });
});
