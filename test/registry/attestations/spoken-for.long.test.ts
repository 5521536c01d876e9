/**
 * Nobody can attest in another's name. Manifest and signature are public once they are in the log, so any reader can
 * send them again. Values that the signature does not cover are accepted only from the holder of the key.
 */
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import type { Possession } from "#cairnlog/engine/registry/attestations/attestations.js";
import { signDocument } from "#cairnlog/engine/registry/attestations/documents.js";
import {
  BASE,
  closeWorlds,
  compact,
  failure,
  HASH,
  manifestOf,
  nodeSigner,
  openWorld,
  sha256,
  submission,
  type TestManifest,
  type TestSigner,
  type World,
} from "../world.js";
import type { Submission } from "./manifests.js";

afterAll(closeWorlds);

/** Order of P-256's group (SEC 2, §2.4.2). */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
const submit = (input: object, shown: Possession | null = null) =>
  world.registry.attestations.submit(input as Submission, shown);
const prior = (id: string) => ({
  id,
  type: "authorship",
  scope: { content_hash: HASH },
  signer_key_fingerprint: `sha256:${HASH}`,
  signature_algorithm: "ed25519",
  signature: "AAAA",
  timestamp: "2025-01-01T00:00:00Z",
});
/** A manifest whose document names type and statement. */
const signing = (attestation_type: unknown, intent_statement?: unknown): TestManifest => ({
  ...manifestOf(),
  document: {
    ...manifestOf().document,
    attestation_type,
    ...(intent_statement === undefined ? {} : { intent_statement }),
  },
});

/** The other forms of a P-256 signature that anybody can make: (r, n − s), and both as DER and as r ‖ s. */
function otherForms(base64: string): string[] {
  const der = Buffer.from(base64, "base64");
  const integer = (at: number) => der.subarray(at + 2, at + 2 + der[at + 1]!);
  const r = BigInt(`0x${integer(2).toString("hex")}`);
  const s = BigInt(`0x${integer(2 + 2 + der[3]!).toString("hex")}`);
  const bytes = (n: bigint) => {
    const hex = n.toString(16);
    const even = Buffer.from(hex.length % 2 ? `0${hex}` : hex, "hex");
    return even[0]! > 0x7f ? Buffer.concat([Buffer.of(0), even]) : even;
  };
  const asDer = (s2: bigint) => {
    const parts = [r, s2].map((n) => Buffer.concat([Buffer.of(2, bytes(n).length), bytes(n)]));
    const body = Buffer.concat(parts);
    return Buffer.concat([Buffer.of(0x30, body.length), body]);
  };
  const raw = (s2: bigint) => Buffer.from([r, s2].map((n) => n.toString(16).padStart(64, "0")).join(""), "hex");
  const forms = [raw(s), asDer(ORDER - s), raw(ORDER - s)].map((form) => form.toString("base64"));
  expect(new Set([base64, ...forms]).size).toBe(4);
  return forms;
}

describe("a published signature, sent again by a stranger", () => {
  const changes: [string, (manifest: TestManifest) => object][] = [
    ["another type", () => ({ attestation_type: "publication" })],
    ["a predicate", () => ({ attestation_type: "https://example.org/endorses" })],
    ["a statement", () => ({ intent_statement: "I take it all back." })],
    [
      "made-up earlier attestations",
      (manifest) => ({ manifest: { ...manifest, attestations: [prior("a"), prior("b")] } }),
    ],
  ];
  it.each(changes)("with %s is refused, and writes nothing", async (_, change) => {
    const signer = nodeSigner();
    const input = submission(signer, manifestOf());
    const first = await submit(input);
    const { size } = world.registry.log;
    const replayed = { ...input, ...change(manifestOf()) };
    for (let n = 0; n < 2; n++) {
      expect((await failure(() => submit(replayed))).code).toBe("proof-required");
      await world.reopen();
    }
    const stranger = { fingerprint: nodeSigner().fingerprint, isForThis: false };
    expect((await failure(() => submit(replayed, stranger))).code).toBe("proof-required");
    expect(world.registry.log.size).toBe(size);
    expect(await submit(input)).toEqual({ ...first, duplicate: true });
  });

  it("in any form of a P-256 signature is the same one", async () => {
    const signer = nodeSigner("ecdsa-p256");
    const input = submission(signer, manifestOf());
    const first = await submit(input);
    for (const signature of [...otherForms(input.signature), signer.sign(compact(manifestOf()))]) {
      expect(await submit({ ...input, signature })).toEqual({ ...first, duplicate: true });
      const other = { ...input, signature, attestation_type: "publication" };
      expect((await failure(() => submit(other))).code).toBe("proof-required");
    }
  });

  it.each([
    ["names neither type nor statement", manifestOf(), [manifestOf()]],
    // Sent without a list, it is all that was signed.
    ["names both", signing("publication", "Published."), []],
  ])("over a document that %s, alone, is not tied to the attestations it was sent with", async (_, signed, without) => {
    const behind = (...attestations: object[]): TestManifest => ({ ...signed, attestations });
    const signer = nodeSigner("ecdsa-p256");
    const alone = submission(signer, signed);
    const first = await submit({ ...alone, manifest: behind(prior("a")) });
    const entry = world.registry.log.entry(first.log_entry_id)!;
    expect(entry.payload).toMatchObject({
      manifest_hash: sha256(compact(behind(prior("a")))),
      signed_payload_hash: sha256(compact(signed)),
    });
    const others = [...without, behind(prior("b")), behind(prior("a"), prior("b"))];
    for (const signature of [alone.signature, signer.sign(compact(signed))])
      for (const manifest of others)
        expect((await failure(() => submit({ ...alone, signature, manifest }))).code).toBe("proof-required");
    const again = { ...alone, manifest: behind(prior("a")) };
    expect(await submit(again)).toEqual({ ...first, duplicate: true });
    await world.reopen();
    expect(await submit(again)).toEqual({ ...first, duplicate: true });
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });

  it("a hundred times at once makes one entry", async () => {
    const input = submission(nodeSigner(), manifestOf());
    const types = ["authorship", "publication", "peer_review", "editorial_review"];
    const results = await Promise.allSettled(
      Array.from({ length: 100 }, (_, i) => submit({ ...input, attestation_type: types[i % 4] })),
    );
    expect(world.registry.log.size).toBe(2);
    const made = results.filter(({ status }) => status === "fulfilled");
    expect(made).toHaveLength(25);
  });
});

describe("who holds the key", () => {
  const attest = async (signer: TestSigner) => {
    const input = submission(signer, manifestOf());
    return { input, first: await submit(input) };
  };

  it("by a session or a proof may attest the same again with another type, statement or list", async () => {
    const signer = nodeSigner();
    const { input, first } = await attest(signer);
    const { fingerprint } = signer;
    const changes = [
      { attestation_type: "publication" },
      { attestation_type: "publication", intent_statement: "Published." },
      { manifest: manifestOf("A title", [first.attestation]) },
    ];
    for (const [i, change] of changes.entries()) {
      const made = await submit({ ...input, ...change }, { fingerprint, isForThis: i === 0 });
      expect(made).toMatchObject({ duplicate: false, log_entry_id: first.log_entry_id + 1 + i });
      // Once it is recorded, the same submission is answered with its receipt, whoever sends it.
      expect(await submit({ ...input, ...change })).toEqual({ ...made, duplicate: true });
    }
  });

  it("by the password may", async () => {
    const signer = nodeSigner();
    const { input } = await attest(signer);
    await world.registry.passwords.set(signer.fingerprint, { password: "correct horse" });
    const other = { ...input, attestation_type: "publication" };
    expect((await failure(() => submit(other))).code).toBe("forbidden");
    expect((await failure(() => submit({ ...other, password: "wrong horses" }))).code).toBe("forbidden");
    expect(await submit({ ...other, password: "correct horse" })).toMatchObject({ duplicate: false });
  });

  it("shows nothing by a password where none is set, nor by a proof of another key", async () => {
    const { input } = await attest(nodeSigner());
    const other = { ...input, attestation_type: "publication", password: "correct horse" };
    expect((await failure(() => submit(other))).code).toBe("proof-required");
    const { fingerprint } = nodeSigner();
    expect((await failure(() => submit(input, { fingerprint, isForThis: true }))).code).toBe("forbidden");
    expect(await submit(input, { fingerprint, isForThis: false })).toMatchObject({ duplicate: true });
  });

  it("may sign another type and statement, which is another submission", async () => {
    const signer = nodeSigner();
    await attest(signer);
    const published = await submit(submission(signer, signing("publication", "Published.")));
    expect(published).toMatchObject({
      attestation: { type: "publication", intent_statement: "Published." },
      duplicate: false,
      signed: { attestation_type: true, intent_statement: true },
    });
  });

  it("is held to what was signed also where an older service recorded something else", async () => {
    const signer = nodeSigner();
    const manifest = signing("publication", null);
    const input = submission(signer, manifest);
    await world.append({
      event_type: `${BASE}/authorship/v1`,
      payload: oldPayload(signer, manifest, input.signature),
    });
    const receipt = await submit(input);
    expect(receipt).toMatchObject({ attestation: { type: "publication" }, duplicate: false });
    expect(await submit(input)).toEqual({ ...receipt, duplicate: true });
  });
});

/** An attestation as earlier versions of the service recorded it, for any coverage of its signature. */
const oldPayload = (signer: TestSigner, manifest: TestManifest, signature: string) => ({
  attestation_id: "old",
  attestation_type: "authorship",
  document_hash: `sha256:${HASH}`,
  document_title: "A title",
  intent_statement: null,
  manifest_hash: sha256(compact(manifest)),
  signature,
  signature_algorithm: signer.algorithm,
  signer_key_fingerprint: signer.fingerprint,
  tags: [],
  timestamp: "2025-01-01T00:00:00.000000Z",
});

describe("an attestation that an older service recorded", () => {
  it("is not repeated by a stranger in another way", async () => {
    const signer = nodeSigner("ecdsa-p256");
    const withPrior = manifestOf("A title", [prior("a")]);
    // The signature covers the document alone, which the entry does not say.
    const { signature, ...input } = submission(signer, manifestOf());
    const event_type = `${BASE}/authorship/v1`;
    await world.append({ event_type, payload: oldPayload(signer, withPrior, signature) });
    await world.reopen();
    expect(await submit({ ...input, manifest: withPrior, signature })).toMatchObject({
      attestation: { id: "old" },
      duplicate: true,
    });
    for (const form of [signature, ...otherForms(signature)])
      for (const change of [
        { manifest: withPrior, attestation_type: "publication" },
        { manifest: withPrior, intent_statement: "Mine." },
        { manifest: manifestOf() },
        { manifest: manifestOf("A title", [prior("b")]) },
      ])
        expect((await failure(() => submit({ ...input, signature: form, ...change }))).code).toBe("proof-required");
    expect(world.registry.log.size).toBe(1);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });
});

describe("type and statement in the manifest's document", () => {
  it("fill in what the body leaves out", async () => {
    const signer = nodeSigner();
    const receipt = await submit(submission(signer, signing("peer_review", "I read it.")));
    expect(receipt).toMatchObject({
      attestation: { type: "peer_review", intent_statement: "I read it." },
      signed: { attestation_type: true, intent_statement: true },
    });
    const entry = world.registry.log.entry(receipt.log_entry_id)!;
    expect(entry.event_type).toBe(`${BASE}/peer-review/v1`);
    expect(entry.payload).toMatchObject({ attestation_type: "peer_review", intent_statement: "I read it." });
    const same = { attestation_type: "peer_review", intent_statement: "I read it." };
    expect(await submit(submission(signer, signing("peer_review", "I read it."), same))).toMatchObject({
      duplicate: true,
    });
    const own = signing("https://example.org/checked");
    expect((await submit(submission(signer, own))).attestation.type).toBe("https://example.org/checked");
  });

  it.each([
    [signing("peer_review"), { attestation_type: "authorship" }, "/attestation_type"],
    [signing("peer_review"), { attestation_type: `${BASE}/peer-review/v1` }, "/attestation_type"],
    [signing("authorship", "a"), { intent_statement: "b" }, "/intent_statement"],
    [signing("authorship", null), { intent_statement: "b" }, "/intent_statement"],
    [signing("authorship", "a"), { intent_statement: "" }, "/intent_statement"],
    [signing(7), {}, "/manifest/document/attestation_type"],
    [signing(null), {}, "/manifest/document/attestation_type"],
    [signing("authorship", 7), {}, "/manifest/document/intent_statement"],
    [signing("authorship", "x".repeat(4097)), {}, "/manifest/document/intent_statement"],
    [signing("nonsense"), {}, "/attestation_type"],
  ])("must be what the body says: %#", async (manifest, more, path) => {
    const refused = await failure(() => submit(submission(nodeSigner(), manifest, more)));
    expect(refused).toMatchObject({ code: "invalid-input", paths: [path] });
    expect(world.registry.log.size).toBe(0);
  });

  it("are told apart from what only the log says", async () => {
    const signed = async (manifest: TestManifest, more = {}) =>
      (await submit(submission(nodeSigner(), manifest, more))).signed;
    expect(await signed(manifestOf(), { attestation_type: "publication", intent_statement: "s" })).toEqual({
      attestation_type: false,
      intent_statement: false,
    });
    expect(await signed(signing("publication"), { intent_statement: "s" })).toEqual({
      attestation_type: true,
      intent_statement: false,
    });
    expect(await signed(signing("publication", null))).toEqual({ attestation_type: true, intent_statement: true });
    const { attestation_type: _, ...document } = signing("x", "s").document;
    expect(await signed({ ...manifestOf(), document })).toEqual({ attestation_type: false, intent_statement: true });
  });

  it("that are signed leave a statement that is not to the first submission", async () => {
    const signer = nodeSigner();
    const input = submission(signer, signing("publication"));
    await submit(input);
    expect((await failure(() => submit({ ...input, intent_statement: "Mine." }))).code).toBe("proof-required");
  });

  it("are put there by POST /documents/sign", async () => {
    const signer = nodeSigner();
    const request = { title: "A title", content_hash: HASH, public_key_pem: signer.pem, tags: ["a"] };
    const terms = { attestation_type: "publication", intent_statement: "Published." };
    const { attestations } = world.registry;
    const prepared = await signDocument(attestations, { ...request, ...terms });
    if (!("signing_payload" in prepared)) return expect.fail("it was recorded unsigned");
    expect(prepared.manifest.document).toEqual({
      title: "A title",
      content_hash: `sha256:${HASH}`,
      tags: ["a"],
      ...terms,
    });
    const signature = signer.sign(Buffer.from(prepared.signing_payload, "base64"));
    expect(await signDocument(attestations, { ...request, ...terms, signature })).toMatchObject({
      attestation: { type: "publication", intent_statement: "Published." },
      signed: { attestation_type: true, intent_statement: true },
    });
    const { payload } = [...world.registry.log.entries()].at(-1)!;
    expect(payload!.manifest_hash).toBe(prepared.manifest_hash);
    const other = { ...request, ...terms, attestation_type: "peer_review", signature };
    expect((await failure(() => signDocument(attestations, other))).code).toBe("invalid-signature");
    const plain = await signDocument(attestations, { ...request, signature: signer.sign(compact(plainOf(request))) });
    expect(plain).toMatchObject({ signed: { attestation_type: false, intent_statement: false } });
    expect(
      (await failure(() => signDocument(attestations, { ...request, intent_statement: "x".repeat(4097) }))).paths,
    ).toEqual(["/intent_statement"]);
  });
});

const plainOf = ({ title, tags }: { title: string; tags: string[] }) => ({
  document: { title, content_hash: `sha256:${HASH}`, tags },
  attestations: [],
});
