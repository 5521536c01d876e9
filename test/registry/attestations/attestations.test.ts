import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AttestationReceipt } from "#cairnlog/engine/registry/attestations/commands.js";
import { verifyBundle } from "#cairnlog/engine/verify/bundle/bundle.js";
import { parsePublicKey } from "#cairnlog/engine/verify/keys/publickey.js";
import {
  ALGORITHMS,
  at,
  BASE,
  closeWorlds,
  compact,
  DAY,
  failure,
  HASH,
  manifestOf,
  nodeSigner,
  opensslSigner,
  openWorld,
  sha256,
  submission,
  type TestSigner,
  type World,
} from "../world.js";
import type { Submission } from "./manifests.js";

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
const submit = (input: unknown) => world.registry.attestations.submit(input as Submission);
const eventOf = ({ log_entry_id }: AttestationReceipt) => world.registry.log.entry(log_entry_id)!;

describe("a submission", () => {
  const signers: [string, TestSigner][] = [
    ...ALGORITHMS.map((algorithm): [string, TestSigner] => [`node:crypto ${algorithm}`, nodeSigner(algorithm)]),
    ["node:crypto P-256 in P1363 form", nodeSigner("ecdsa-p256", "ieee-p1363")],
    ...ALGORITHMS.map((algorithm): [string, TestSigner] => [`openssl ${algorithm}`, opensslSigner(algorithm)]),
  ];

  it.each(signers)("is recorded with its key (%s)", async (_, signer) => {
    const { log, keys } = world.registry;
    const { size } = log;
    const manifest = { ...manifestOf("Über Steine 🪨"), extra: { b: 1, a: [true, null] } };
    const input = submission(signer, manifest, { pseudonym: "Ada", intent_statement: "I wrote it.\nAll of it." });
    const receipt = await submit(input);
    const place = { log_entry_id: size + 2, leaf_index: size + 1, entry_hash: log.head()!.entry_hash };
    const manifestHash = sha256(compact(manifest));
    const timestamp = at(world.now);
    const attestation = {
      id: receipt.attestation.id,
      type: "authorship",
      scope: { content_hash: `sha256:${HASH}` },
      signer_key_fingerprint: signer.fingerprint,
      signature_algorithm: signer.algorithm,
      signature: input.signature,
      timestamp,
      intent_statement: "I wrote it.\nAll of it.",
    };
    expect(receipt).toEqual({
      attestation,
      fingerprint: signer.fingerprint,
      pseudonym: "Ada",
      ...place,
      manifest_hash: manifestHash,
      sth: log.treeHead(size + 2),
      duplicate: false,
      signed: { attestation_type: false, intent_statement: false },
    });
    expect(receipt.attestation.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(eventOf(receipt)).toMatchObject({ event_type: `${BASE}/authorship/v1`, timestamp });
    expect(eventOf(receipt).payload).toEqual({
      attestation_id: attestation.id,
      attestation_type: "authorship",
      signer_key_fingerprint: signer.fingerprint,
      document_hash: `sha256:${HASH}`,
      manifest_hash: manifestHash,
      document_title: "Über Steine 🪨",
      signature_algorithm: signer.algorithm,
      signature: input.signature,
      intent_statement: "I wrote it.\nAll of it.",
      timestamp,
      tags: [],
    });
    expect(log.entry(size + 1)).toMatchObject({ event_type: "key_registration", timestamp });
    expect(keys.find(signer.fingerprint)).toMatchObject({ pseudonym: "Ada", log_entry_id: size + 1 });
  });

  it.each([
    ["plain", {}],
    ["with everything", { attestation_type: "peer_review", intent_statement: "Checked." }],
    ["with a predicate of its own", { attestation_type: "https://example.org/seen" }],
  ])("makes a bundle that the offline verifier accepts (%s)", async (_, more) => {
    const signer = nodeSigner();
    const manifest = {
      document: { title: "T", content_hash: HASH.toUpperCase(), tags: ["Ä", "🪨".repeat(32), ""] },
      attestations: [],
    };
    const receipt = await submit(submission(signer, manifest, more));
    const proof = world.registry.log.inclusionProof(receipt.leaf_index);
    const bundle = {
      format: "cairnlog-attestation/v1",
      manifest,
      attestation: receipt.attestation,
      public_key: signer.pem,
      entry: eventOf(receipt),
      proof,
      tree_head: proof.sth,
    };
    const operator = parsePublicKey(world.operator.pem);
    const verdict = await verifyBundle(bundle, { fileHash: HASH, operatorKey: operator, predicateBase: BASE });
    expect(verdict.checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(verdict.valid).toBe(true);
  });

  it("names a new key after its fingerprint, and keeps the name of a known one", async () => {
    const signer = nodeSigner();
    const first = await submit(submission(signer, manifestOf()));
    expect(first.pseudonym).toBe(signer.fingerprint.slice(7, 19));
    expect(first.attestation).not.toHaveProperty("intent_statement");
    expect(eventOf(first).payload!.intent_statement).toBeNull();
    const { size } = world.registry.log;
    const second = await submit(submission(signer, manifestOf("Other"), { pseudonym: "New" }));
    expect(second.pseudonym).toBe(first.pseudonym);
    expect(world.registry.log.size).toBe(size + 1);
    expect(world.registry.log.entry(first.log_entry_id - 1)!.payload!.expiration_date).toBeNull();
  });

  it("files the tags of the document, when they are an array of strings", async () => {
    const tagged = async (tags: unknown) => {
      const manifest = { document: { ...manifestOf().document, tags }, attestations: [] };
      return eventOf(await submit(submission(nodeSigner(), manifest))).payload!.tags;
    };
    const most = Array.from({ length: 32 }, (_, i) => String(i).padEnd(64, "ä"));
    expect(await tagged(most)).toEqual(most);
    expect(await tagged([])).toEqual([]);
    for (const tags of [null, "a", 7, { 0: "a" }, ["a", 7], Array(33).fill(null), ["a", ["b"]]])
      expect(await tagged(tags)).toEqual([]);
  });
});

describe("the signed bytes", () => {
  const prior = async () => (await submit(submission(nodeSigner(), manifestOf()))).attestation;

  it("may be the manifest with the attestations before, or with none", async () => {
    const manifest = manifestOf("A title", [await prior(), await prior()]);
    const bare = compact({ ...manifest, attestations: [] });
    for (const payload of [compact(manifest), bare]) {
      const signer = nodeSigner();
      const receipt = await submit({ ...submission(signer, manifest), signature: signer.sign(payload) });
      expect(receipt.manifest_hash).toBe(sha256(compact(manifest)));
    }
  });

  it("may be nothing else", async () => {
    const manifest = manifestOf("A title", [await prior(), await prior()]);
    const signer = nodeSigner();
    const wrong = [
      compact({ ...manifest, attestations: manifest.attestations.slice(0, 1) }),
      compact({ ...manifest, attestations: manifest.attestations.slice(1) }),
      JSON.stringify(manifest, null, 1),
      compact(manifest.document),
      sha256(compact(manifest)),
      "",
    ].map((payload) => signer.sign(payload));
    const { size } = world.registry.log;
    for (const signature of [...wrong, nodeSigner().sign(compact(manifest)), "", "AAAA"])
      expect((await failure(() => submit({ ...submission(signer, manifest), signature }))).code).toBe(
        "invalid-signature",
      );
    expect(world.registry.log.size).toBe(size);
    expect(world.registry.keys.lookup(signer.fingerprint)).toBeUndefined();
  });

  it("must be sent as strict base64", async () => {
    const signer = nodeSigner();
    const input = submission(signer, manifestOf());
    const { signature } = input;
    const spellings = [
      signature.replace(/=+$/, ""),
      ` ${signature}`,
      `${signature}\n`,
      signature.replace(/^./, "-"),
      `${signature.slice(0, -3)}${signature.at(-3) === "A" ? "B" : String.fromCharCode(signature.charCodeAt(signature.length - 3) + 1)}==`,
      Buffer.from(signature, "base64").toString("hex").concat("0"),
      "A".repeat(4_000_000),
      null,
      undefined,
      7,
      [signature],
    ];
    for (const spelling of spellings) {
      const error = await failure(() => submit({ ...input, signature: spelling }));
      expect(error).toMatchObject({ code: "invalid-input", paths: ["/signature"] });
    }
    expect((await submit(input)).duplicate).toBe(false);
  });
});

describe("permission to submit", () => {
  it("anyone but the operator is refused reserved predicates, before anything is written", async () => {
    const vault = { attestation_type: `${BASE}/vault-publication/v1` };
    const { size } = world.registry.log;
    const { fingerprint, ...anyone } = nodeSigner();
    const input = submission({ fingerprint, ...anyone }, manifestOf(), vault);
    expect((await failure(() => submit(input))).code).toBe("forbidden");
    expect(world.registry.log.size).toBe(size);
    const receipt = await submit(submission(world.operator, manifestOf(), vault));
    expect(eventOf(receipt).event_type).toBe(vault.attestation_type);
    expect(receipt.attestation.type).toBe(vault.attestation_type);
    const stolen = { ...submission(nodeSigner(), manifestOf("Not his"), vault), public_key_pem: world.operator.pem };
    expect((await failure(() => submit(stolen))).code).toBe("invalid-signature");
  });

  it("keys that have expired or ended sign nothing new", async () => {
    const own = await openWorld();
    const { attestations, keys } = own.registry;
    const [expiring, revoked, old, next] = [nodeSigner(), nodeSigner(), nodeSigner(), nodeSigner()];
    const register = (signer: TestSigner, more = {}) =>
      keys.register({ public_key: signer.pem, pseudonym: "x", key_algorithm: "ed25519", ...more });
    await register(expiring, { expiration_date: at(own.now + DAY) });
    await register(revoked);
    await register(old);
    const before = submission(revoked, manifestOf());
    const receipt = await attestations.submit(before);
    await own.append(
      { event_type: "key_revocation", payload: { fingerprint: revoked.fingerprint } },
      {
        event_type: "key_succession",
        payload: {
          old_fingerprint: old.fingerprint,
          fingerprint: next.fingerprint,
          public_key: next.pem,
          pseudonym: "x",
          key_algorithm: "ed25519",
          expiration_date: null,
        },
      },
    );
    own.now += DAY - 1;
    expect((await attestations.submit(submission(expiring, manifestOf("in time")))).duplicate).toBe(false);
    own.now += 1;
    const { size } = own.registry.log;
    for (const signer of [expiring, revoked, old]) {
      const error = await failure(() => attestations.submit(submission(signer, manifestOf("too late"))));
      expect(error.code).toBe("key-not-active");
    }
    expect(own.registry.log.size).toBe(size);
    expect(await attestations.submit(before)).toEqual({ ...receipt, duplicate: true });
    expect((await attestations.submit(submission(next, manifestOf("too late")))).duplicate).toBe(false);
    expect(own.registry.log.stateDifferences()).toEqual([]);
  });
});
