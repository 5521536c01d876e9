/** `POST /documents/sign` in its two steps, with signatures made by node:crypto. */
import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { newSigner } from "../../server/signers.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

const hash = createHash("sha256").update("source").digest("hex");
const request = (signer: ReturnType<typeof newSigner>, more: Record<string, unknown> = {}) => ({
  title: "Übersicht",
  content_hash: hash.toUpperCase(),
  public_key_pem: signer.publicKey,
  tags: ["draft"],
  ...more,
});

describe("POST /documents/sign", () => {
  test.each(["ed25519", "ecdsa-p256", "rsa-2048"] as const)(
    "gives the bytes to sign, then records the signature (%s)",
    async (algorithm) => {
      const signer = newSigner(algorithm);
      const before = await service.entryCount();
      const first = await service.post("/documents/sign", request(signer));
      expect(first.status, first.text).toBe(200);
      const payload = Buffer.from(first.body.signing_payload, "base64");
      expect(payload.toString()).toBe(
        `{"attestations":[],"document":{"content_hash":"sha256:${hash}","tags":["draft"],"title":"Übersicht"}}`,
      );
      expect(first.body.manifest).toEqual(JSON.parse(payload.toString()));
      expect(first.body.manifest_hash).toBe(createHash("sha256").update(payload).digest("hex"));
      expect(await service.entryCount()).toBe(before);

      const signature = signer.sign(payload);
      const second = await service.post(
        "/documents/sign",
        request(signer, { signature, pseudonym: "Ada", attestation_type: "publication" }),
      );
      expect(second.body).toMatchObject({
        pseudonym: "Ada",
        duplicate: false,
        attestation: { type: "publication", signature },
      });
      const entry = await service.get(`/log/${second.body.log_entry_id}`);
      expect(entry.body.payload).toMatchObject({
        tags: ["draft"],
        document_title: "Übersicht",
        document_hash: `sha256:${hash}`,
      });

      // Submitting the same manifest and type by the other route gives the same attestation.
      const again = await service.post("/attestations", {
        manifest: first.body.manifest,
        public_key_pem: signer.publicKey,
        signature,
        attestation_type: "publication",
      });
      expect(again.body).toMatchObject({ duplicate: true, log_entry_id: second.body.log_entry_id });
    },
  );

  test.each([
    ["an empty title", { title: "" }, "/title"],
    ["a title of 501 characters", { title: "é".repeat(501) }, "/title"],
    ["a hash that is none", { content_hash: "abc" }, "/content_hash"],
    ["a tag of 65 characters", { tags: ["x".repeat(65)] }, "/tags/0"],
    ["33 tags", { tags: Array(33).fill("x") }, "/tags"],
  ])("refuses %s, naming the member, in both steps", async (_, more, path) => {
    for (const step of [{}, { signature: "AAAA" }]) {
      const reply = await service.post("/documents/sign", request(newSigner(), { ...more, ...step }));
      expectProblem(reply, 422, "invalid-input");
      expect(reply.body.errors.map((error: { path: string }) => error.path)).toEqual([path]);
    }
  });

  test("refuses a reserved predicate, a private key and a wrong signature", async () => {
    const signer = newSigner();
    const reserved = { attestation_type: "https://x-service.example/predicates/vault-publication/v1" };
    expectProblem(await service.post("/documents/sign", request(signer, reserved)), 403, "forbidden");
    expectProblem(
      await service.post("/documents/sign", request(signer, { public_key_pem: signer.privateKey })),
      422,
      "private-key",
    );
    const signature = signer.sign("something else");
    expectProblem(await service.post("/documents/sign", request(signer, { signature })), 422, "invalid-signature");
    expectProblem(await service.post("/documents/sign", request(signer, { title: 7 })), 422, "invalid-input");
  });
});
