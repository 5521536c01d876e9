/** Composite documents over HTTP: assembled, compiled, signed, verified part by part. */
import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { proofOf } from "../../server/proofs.js";
import { canonical, newManifest, newSigner, submission, type TestManifest } from "../../server/signers.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** A manifest with one recorded attestation in it. */
async function attested(title: string, signer = newSigner()): Promise<TestManifest> {
  const manifest = newManifest(title);
  const reply = await service.post("/attestations", submission(signer, manifest));
  expect(reply.status, reply.text).toBe(200);
  return { ...manifest, attestations: [reply.body.attestation] };
}

const part = (manifest: TestManifest, role?: string) => ({
  title: manifest.document.title,
  content_hash: manifest.document.content_hash,
  ...(role ? { role } : {}),
  manifest,
});

describe("composite documents", () => {
  test("are assembled, compiled, signed and verified part by part", async () => {
    const [first, second] = [await attested("Chapter 1"), await attested("Chapter 2")];
    const bare = { title: "Appendix", content_hash: sha256("appendix") };
    const parts = [part(first, "chapter"), part(second), bare];
    const { body } = await service.post("/composite/assemble", { title: "The book", parts });
    const hashes = [first.document.content_hash, second.document.content_hash, `sha256:${bare.content_hash}`];
    expect(body.composite.composite_hash).toBe(`sha256:${sha256(canonical({ parts: hashes, title: "The book" }))}`);
    expect(body.composite.parts.map((one: { content_hash: string }) => one.content_hash)).toEqual(hashes);

    const compiled = (await service.post("/composite/compile", body)).body;
    expect(compiled.manifest.document.content_hash).toBe(body.composite.composite_hash);
    expect(compiled.manifest.document.parts[0].manifest.attestations).toHaveLength(1);
    const payload = Buffer.from(compiled.signing_payload, "base64");
    expect(compiled.manifest_hash).toBe(createHash("sha256").update(payload).digest("hex"));

    const signer = newSigner();
    const recorded = await service.post("/attestations", {
      manifest: compiled.manifest,
      public_key_pem: signer.publicKey,
      signature: signer.sign(payload),
    });
    expect(recorded.status, recorded.text).toBe(200);
    const manifest = { ...compiled.manifest, attestations: [recorded.body.attestation] };
    const verify = (value: unknown) =>
      service.post("/verify", { manifest: value, source_hash: body.composite.composite_hash });
    const whole = (await verify(manifest)).body;
    expect(whole).toMatchObject({ overall_status: "valid", layer1: { status: "valid" } });
    expect(whole.parts.map((one: { overall_status: string }) => one.overall_status)).toEqual([
      "valid",
      "valid",
      "not_evaluated",
    ]);
    expect(whole.parts[0].result.attestations[0].logged).toMatchObject({ entry_id: expect.any(Number) });

    // A forged signature in one part makes that part, and the whole, invalid.
    const forged = structuredClone(manifest);
    const signature = Buffer.from(forged.document.parts[1].manifest.attestations[0].signature, "base64");
    signature[5]! ^= 1;
    forged.document.parts[1].manifest.attestations[0].signature = signature.toString("base64");
    const partly = (await verify(forged)).body;
    expect(partly.parts.map((one: { overall_status: string }) => one.overall_status)).toEqual([
      "valid",
      "invalid",
      "not_evaluated",
    ]);
    expect(partly.overall_status).toBe("invalid");

    // Parts in another order are another document.
    const swapped = structuredClone(manifest);
    swapped.document.parts.reverse();
    expect((await verify(swapped)).body).toMatchObject({ layer1: { status: "invalid" }, overall_status: "invalid" });
  });

  test("a part whose key was revoked later is a warning, and so is the whole", async () => {
    const signer = newSigner();
    const parts = [part(await attested("Chapter 1", signer)), part(await attested("Chapter 2"))];
    const { composite } = (await service.post("/composite/assemble", { title: "The book", parts })).body;
    const { manifest: bare } = (await service.post("/composite/compile", { composite })).body;
    const { attestation } = (await service.post("/attestations", submission(newSigner(), bare))).body;
    const revoked = { payload: { fingerprint: signer.fingerprint }, auth: await proofOf(service, signer) };
    expect((await service.post("/keys/revoke", revoked)).status).toBe(200);
    const manifest = { ...bare, attestations: [attestation] };
    const { body } = await service.post("/verify", { manifest, source_hash: composite.composite_hash });
    expect(body.parts.map((one: { overall_status: string }) => one.overall_status)).toEqual(["warning", "valid"]);
    expect(body).toMatchObject({ layer1: { status: "valid" }, layer2: { status: "valid" }, overall_status: "warning" });
  });

  test("composites can be nested 4 deep", async () => {
    /** A document in so many composites. */
    const nested = async (levels: number): Promise<TestManifest> => {
      if (!levels) return newManifest();
      const parts = [part(await nested(levels - 1))];
      const { composite } = (await service.post("/composite/assemble", { title: "A box", parts })).body;
      return (await service.post("/composite/compile", { composite })).body.manifest;
    };
    const verify = async (levels: number) => {
      const manifest = await nested(levels);
      return service.post("/verify", { manifest, source_hash: manifest.document.content_hash });
    };
    expect((await verify(4)).body.parts[0].result.parts[0].result.parts[0].result.parts).toHaveLength(1);
    const reply = await verify(5);
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors[0].path).toBe("/manifest/document/parts");
  });

  test.each([
    ["no parts", { title: "x", parts: [] }, "/parts"],
    [
      "a part twice",
      { title: "x", parts: [1, 2].map(() => ({ title: "p", content_hash: sha256("p") })) },
      "/parts/1/content_hash",
    ],
    ["a hash that is none", { title: "x", parts: [{ title: "p", content_hash: "p" }] }, "/parts/0/content_hash"],
    ["no title", { title: "", parts: [{ title: "p", content_hash: sha256("p") }] }, "/title"],
    [
      "a long role",
      { title: "x", parts: [{ title: "p", content_hash: sha256("p"), role: "r".repeat(101) }] },
      "/parts/0/role",
    ],
  ])("refuses %s", async (_, body, path) => {
    const reply = await service.post("/composite/assemble", body);
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors[0].path).toBe(path);
  });

  test("accepts 1000 parts but not 1001, and only manifests of the part itself", async () => {
    const parts = Array.from({ length: 1001 }, (_, n) => ({ title: "p", content_hash: sha256(`${n}`) }));
    expect((await service.post("/composite/assemble", { title: "x", parts: parts.slice(1) })).status).toBe(200);
    expectProblem(await service.post("/composite/assemble", { title: "x", parts }), 422, "invalid-input");
    const foreign = { title: "p", content_hash: sha256("other"), manifest: newManifest() };
    expectProblem(await service.post("/composite/assemble", { title: "x", parts: [foreign] }), 422, "invalid-input");
  });

  test("compile refuses a hash that is not the composite's", async () => {
    const { body } = await service.post("/composite/assemble", {
      title: "x",
      parts: [{ title: "p", content_hash: sha256("p") }],
    });
    const renamed = { composite: { ...body.composite, title: "y" } };
    expectProblem(await service.post("/composite/compile", renamed), 422, "invalid-input");
  });
});
