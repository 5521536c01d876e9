import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { VerificationRequest } from "#cairnlog/engine/registry/verification/verification.js";
import type { Attestation } from "#cairnlog/engine/verify/events/manifest.js";
import { jsonValues } from "../../texts.js";
import { attest, attestationOf, changed, register, statuses, unlogged, verify } from "../attestations/manifests.js";
import {
  ALGORITHMS,
  closeWorlds,
  compact,
  failure,
  HASH,
  manifestOf,
  nodeSigner,
  opensslSigner,
  openWorld,
  sha256,
  submission,
  type TestManifest,
  type World,
} from "../world.js";

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

describe("layer 1", () => {
  it.each(ALGORITHMS.flatMap((algorithm) => [nodeSigner(algorithm), opensslSigner(algorithm)]))(
    "holds for what was submitted ($algorithm)",
    async (signer) => {
      const manifest = await attest(world, signer, manifestOf("Über 🪨"), { intent_statement: "I did." });
      for (const hash of [HASH, `sha256:${HASH}`, HASH.toUpperCase()]) {
        const result = await verify(world, manifest, hash);
        expect(statuses(result)).toEqual(["valid", "valid", "valid"]);
        expect(result.attestations).toEqual([
          {
            id: attestationOf(manifest).id,
            signer_key_fingerprint: signer.fingerprint,
            layer1: { status: "valid", details: expect.stringContaining("covers the document.") },
            layer2: { status: "valid", details: expect.any(String) },
            covers: "document",
            signed: { attestation_type: false, intent_statement: false },
            logged: { entry_id: world.registry.log.size, leaf_index: world.registry.log.size - 1 },
          },
        ]);
      }
    },
  );

  it("reports the coverage of each signature in a chain", async () => {
    const signers = [nodeSigner(), nodeSigner("ecdsa-p256"), nodeSigner("rsa-2048")];
    let manifest = manifestOf();
    for (const signer of signers) manifest = await attest(world, signer, manifest);
    const independent = nodeSigner();
    const receipt = await world.registry.attestations.submit({
      ...submission(independent, manifest),
      signature: independent.sign(compact({ ...manifest, attestations: [] })),
    });
    const result = await verify(world, { ...manifest, attestations: [...manifest.attestations, receipt.attestation] });
    expect(result.overall_status).toBe("valid");
    expect(result.attestations.map(({ covers }) => covers)).toEqual([
      "document",
      "document-and-prior",
      "document-and-prior",
      "document",
    ]);
  });

  it("fails for another source", async () => {
    const result = await verify(world, await attest(world, nodeSigner(), manifestOf()), sha256("another text"));
    expect(statuses(result)).toEqual(["invalid", "valid", "invalid"]);
    expect(result.layer1.details).toContain("not the attested document");
  });

  it("fails without attestations", async () => {
    expect(statuses(await verify(world, manifestOf()))).toEqual(["invalid", "not_evaluated", "invalid"]);
  });

  it("fails when anything that is signed changes", async () => {
    const [a, b] = [nodeSigner(), nodeSigner("ecdsa-p256")];
    const manifest = await attest(world, b, await attest(world, a, manifestOf()));
    expect((await verify(world, manifest)).overall_status).toBe("valid");
    const tampered: [TestManifest, string[]][] = [
      [{ ...manifest, document: { ...manifest.document, title: "Another" } }, ["invalid", "invalid"]],
      [{ ...manifest, extra: 1 }, ["invalid", "invalid"]],
      [{ ...manifest, attestations: [...manifest.attestations].reverse() }, ["invalid", "invalid"]],
      [{ ...manifest, attestations: manifest.attestations.slice(1) }, ["invalid"]],
      [changed(manifest, { note: 1 } as Partial<Attestation>, 0), ["valid", "invalid"]],
      [changed(manifest, { scope: { content_hash: sha256("x") } }, 1), ["valid", "invalid"]],
      [changed(manifest, { signature_algorithm: "rsa-2048" }, 1), ["valid", "invalid"]],
      [changed(manifest, { signer_key_fingerprint: a.fingerprint }, 1), ["valid", "invalid"]],
      [changed(manifest, { signature: "" }, 1), ["valid", "invalid"]],
      [changed(manifest, { signature: "not base64" }, 1), ["valid", "invalid"]],
      [changed(manifest, { signature: "A".repeat(500_000) }, 1), ["valid", "invalid"]],
      [changed(manifest, { signature: nodeSigner().sign("x") }, 1), ["valid", "invalid"]],
    ];
    for (const [one, expected] of tampered) {
      const result = await verify(world, one);
      const found = result.attestations.map(({ layer1 }) => layer1.status);
      // In reverse order, the attestation that covers only the document stays valid.
      if (one.attestations[0] === manifest.attestations[1]) expect(found).toContain("invalid");
      else expect(found).toEqual(expected);
      expect(result.layer1.status).toBe("invalid");
      expect(result.overall_status).toBe("invalid");
    }
  });

  it("covers nothing where no signature verifies", async () => {
    const manifest = changed(await attest(world, nodeSigner(), manifestOf()), { signature: nodeSigner().sign("x") });
    expect((await verify(world, manifest)).attestations[0]).toMatchObject({ covers: null, logged: null });
  });

  it.each<[string, (first: Attestation, other: Attestation) => Partial<Attestation>]>([
    ["type", () => ({ type: "publication" })],
    ["signer", (_, other) => ({ signer_key_fingerprint: other.signer_key_fingerprint, signature: other.signature })],
    ["intent statement", () => ({ intent_statement: "I did not." })],
    ["id", (_, other) => ({ id: other.id })],
  ])("finds an attestation relabelled by its %s", async (_, relabel) => {
    const first = await attest(world, nodeSigner(), manifestOf());
    const other = await attest(world, nodeSigner(), manifestOf());
    const result = await verify(world, changed(first, relabel(attestationOf(first), attestationOf(other))));
    expect(statuses(result)).toEqual(["invalid", "valid", "invalid"]);
    expect(result.attestations[0]!.layer1.details).toContain("relabelled");
    expect(result.attestations[0]!.logged).toBeNull();
  });

  it("finds an attestation relabelled by its document or signature, though the new signature verifies", async () => {
    const signer = nodeSigner("ecdsa-p256");
    const { id } = attestationOf(await attest(world, signer, manifestOf()));
    const again = await verify(world, unlogged(world, signer, manifestOf(), { id }));
    expect(again.attestations[0]!.layer1).toMatchObject({
      status: "invalid",
      details: expect.stringContaining("another signature"),
    });
    expect(again.attestations[0]!.covers).toBe("document");
    const hash = sha256("another text");
    const document = { title: "A title", content_hash: hash };
    const elsewhere = unlogged(world, signer, { document, attestations: [] }, { id, scope: { content_hash: hash } });
    const result = await verify(world, elsewhere, hash);
    expect(result.attestations[0]!.layer1.details).toContain("document");
    expect(result.overall_status).toBe("invalid");
  });

  it("finds an attestation among several entries with its id", async () => {
    const signer = nodeSigner();
    const payload = { attestation_id: "shared", signer_key_fingerprint: "x", manifest_hash: "y", timestamp: 7 };
    await register(world, signer);
    const manifest = unlogged(world, signer, manifestOf(), { id: "shared" });
    const event = { event_type: "https://example.org/x", payload };
    await world.append(event);
    expect((await verify(world, manifest)).layer1.status).toBe("invalid");
    const { signature, type } = attestationOf(manifest);
    const own = { signer_key_fingerprint: signer.fingerprint, signature, attestation_type: type, document_hash: HASH };
    await world.append({ ...event, payload: { ...payload, ...own } });
    const result = await verify(world, manifest);
    expect(result.overall_status).toBe("valid");
    expect(result.attestations[0]!.logged!.entry_id).toBe(world.registry.log.size);
  });
});

describe("the result", () => {
  it("has a graph of documents, attestations and keys", async () => {
    const [a, b] = [nodeSigner(), nodeSigner()];
    const manifest = await attest(world, b, await attest(world, a, manifestOf(), { pseudonym: "Ada" }), {
      attestation_type: "publication",
    });
    const [first, second] = [attestationOf(manifest).id, attestationOf(manifest, 1).id];
    const document = `sha256:${HASH}`;
    const { nodes, edges } = (await verify(world, manifest)).attestation_graph;
    const byId = (x: { id: string }, y: { id: string }) => (x.id < y.id ? -1 : 1);
    expect([...nodes].sort(byId)).toEqual(
      [
        { id: document, kind: "document", title: "A title" },
        { id: first, kind: "attestation", type: "authorship", status: "valid" },
        { id: second, kind: "attestation", type: "publication", status: "valid" },
        { id: a.fingerprint, kind: "key", pseudonym: "Ada", status: "active", named: false },
        { id: b.fingerprint, kind: "key", pseudonym: b.fingerprint.slice(7, 19), status: "active", named: false },
      ].sort(byId),
    );
    expect(edges).toEqual([
      { from: a.fingerprint, to: first, kind: "signed" },
      { from: first, to: document, kind: "attests" },
      { from: b.fingerprint, to: second, kind: "signed" },
      { from: second, to: document, kind: "attests" },
      { from: second, to: first, kind: "covers_up_to" },
    ]);
    const unknown = await verify(world, unlogged(world, nodeSigner(), manifestOf()));
    expect(unknown.attestation_graph.nodes).toContainEqual(
      expect.objectContaining({ kind: "key", status: "unknown", pseudonym: null }),
    );
  });

  it("has every attestation of a manifest with as many as there may be", async () => {
    const signers = Array.from({ length: 256 }, (_, i) => nodeSigner(i % 16 ? "ed25519" : "ecdsa-p256"));
    await Promise.all(signers.map((signer) => register(world, signer)));
    let manifest = manifestOf();
    for (const [i, signer] of signers.entries()) manifest = unlogged(world, signer, manifest, { id: `a${i}` });
    const result = await verify(world, manifest);
    expect(result.overall_status).toBe("valid");
    expect(result.attestations.map(({ id }) => id)).toEqual(signers.map((_, i) => `a${i}`));
    const forged = await verify(world, changed(manifest, { signature: signers[200]!.sign("x") }, 200));
    expect(forged.attestations.flatMap(({ layer1 }, i) => (layer1.status === "valid" ? [] : [i]))).toEqual(
      // The later signatures covered it.
      Array.from({ length: 56 }, (_, i) => 200 + i),
    );
    const bulky = { ...manifest, extra: "x".repeat(262_144) };
    expect((await failure(() => verify(world, bulky))).code).toBe("payload-too-large");
  });

  it.each(["", "abc", null, undefined, 7, `sha1:${HASH}`, `${HASH}0`, [HASH]])(
    "refuses the source hash %j",
    async (hash) => {
      const request = { manifest: manifestOf(), source_hash: hash } as VerificationRequest;
      const error = await failure(() => world.registry.verification.verify(request));
      expect(error).toMatchObject({ code: "invalid-input", paths: ["/source_hash"] });
    },
  );

  it("is an answer or a coded error for any JSON", async () => {
    const manifest = await attest(world, nodeSigner(), manifestOf());
    const whole = attestationOf(manifest);
    const member = fc.constantFrom(...Object.keys(whole), "intent_statement");
    const value = fc.oneof(jsonValues(), fc.constant({ toString: 1, length: "x" }));
    await fc.assert(
      fc.asyncProperty(member, value, async (name, json) => {
        for (const one of [json, { ...manifest, attestations: [json] }, changed(manifest, { [name]: json })])
          try {
            const result = await verify(world, one);
            expect(["valid", "invalid", "warning"]).toContain(result.overall_status);
          } catch (error) {
            expect(error).toMatchObject({ name: "CairnlogError" });
          }
      }),
      { numRuns: 150 },
    );
    for (const json of [null, [], "x", 7]) {
      const request = json as unknown as VerificationRequest;
      expect((await failure(() => world.registry.verification.verify(request))).code).toBe("invalid-input");
    }
  });

  it("comes without a word written to the log", async () => {
    const manifest = await attest(world, nodeSigner(), manifestOf());
    const { size } = world.registry.log;
    await verify(world, manifest);
    expect(world.registry.log.size).toBe(size);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });
});
