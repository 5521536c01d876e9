import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { submissionTerms } from "#cairnlog/engine/registry/events/attestations.js";
import {
  BASE,
  closeWorlds,
  compact,
  failure,
  fingerprintOf,
  HASH,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  sha256,
  submission,
  type World,
} from "../world.js";
import type { Submission } from "./manifests.js";

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
/** Submits as the holder of the key, who may attest the same manifest again with another type. */
const submit = (input: Pick<Submission, "public_key_pem" | "attestation_type">) =>
  world.registry.attestations.submit(input as Submission, {
    fingerprint: fingerprintOf(input.public_key_pem),
    isForThis: false,
  });

describe("the same submission again", () => {
  it("gets the first receipt, also after a restart, and changes nothing", async () => {
    const signer = nodeSigner("ecdsa-p256");
    const first = await submit(submission(signer, manifestOf(), { intent_statement: "first" }));
    const { size } = world.registry.log;
    const again = submission(signer, manifestOf(), { intent_statement: "first", pseudonym: "other" });
    expect(again.signature).not.toBe(first.attestation.signature);
    expect(await submit(again)).toEqual({ ...first, duplicate: true });
    expect(await submit({ ...again, attestation_type: `${BASE}/authorship/v1` })).toEqual({
      ...first,
      duplicate: true,
    });
    await world.reopen();
    expect(await submit(again)).toEqual({ ...first, duplicate: true });
    expect(world.registry.log.size).toBe(size);
  });

  it("is another when signer, manifest or type differ", async () => {
    const signer = nodeSigner();
    const first = await submit(submission(signer, manifestOf()));
    const others = [
      submission(nodeSigner(), manifestOf()),
      submission(signer, manifestOf("A title.")),
      submission(signer, { ...manifestOf(), x: 1 }),
      submission(signer, manifestOf("A title", [first.attestation])),
      submission(signer, manifestOf(), { attestation_type: "publication" }),
      submission(signer, manifestOf(), { attestation_type: "https://example.org/x" }),
    ];
    for (const input of others) expect((await submit(input)).duplicate).toBe(false);
    for (const input of others) expect((await submit(input)).duplicate).toBe(true);
  });

  it("must still be signed", async () => {
    const input = submission(nodeSigner(), manifestOf());
    await submit(input);
    const forged = { ...input, signature: nodeSigner().sign(compact(manifestOf())) };
    expect((await failure(() => submit(forged))).code).toBe("invalid-signature");
  });

  it("makes one entry when it comes a hundred times at once", async () => {
    const own = await openWorld();
    const signer = nodeSigner();
    const input = submission(signer, manifestOf());
    const receipts = await Promise.all(Array.from({ length: 100 }, () => own.registry.attestations.submit(input)));
    expect(own.registry.log.size).toBe(2);
    const { duplicate: _, ...first } = receipts.find(({ duplicate }) => !duplicate)!;
    expect(receipts.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    for (const { duplicate: _duplicate, ...receipt } of receipts) expect(receipt).toEqual(first);
    expect(own.registry.log.stateDifferences()).toEqual([]);
  });

  it("registers a key once when its first attestations come together", async () => {
    const own = await openWorld();
    const signer = nodeSigner();
    const inputs = Array.from({ length: 40 }, (_, i) =>
      submission(signer, manifestOf(`Title ${i % 20}`), { pseudonym: `n${i}` }),
    );
    const receipts = await Promise.all(inputs.map((input) => own.registry.attestations.submit(input)));
    expect(own.registry.log.size).toBe(21);
    expect(new Set(receipts.map(({ pseudonym }) => pseudonym)).size).toBe(1);
    expect(own.registry.log.entry(1)!.event_type).toBe("key_registration");
    expect(receipts.filter(({ duplicate }) => duplicate)).toHaveLength(20);
    expect(own.registry.log.stateDifferences()).toEqual([]);
  });

  it("does not match an event of history with another content", async () => {
    const own = await openWorld();
    const signer = nodeSigner();
    const manifest_hash = sha256(compact(manifestOf()));
    await own.append({
      event_type: `${BASE}/authorship/v1`,
      payload: { attestation_id: "old", signer_key_fingerprint: signer.fingerprint, manifest_hash },
    });
    expect((await own.registry.attestations.submit(submission(signer, manifestOf()))).duplicate).toBe(false);
    expect((await own.registry.attestations.submit(submission(signer, manifestOf()))).duplicate).toBe(true);
  });

  it("is answered from history that spells the manifest's hash with a prefix", async () => {
    const own = await openWorld();
    const signer = nodeSigner();
    const input = submission(signer, manifestOf());
    const payload = {
      attestation_id: "old",
      attestation_type: "authorship",
      signer_key_fingerprint: signer.fingerprint,
      document_hash: `sha256:${HASH}`,
      manifest_hash: `sha256:${sha256(compact(manifestOf()))}`,
      signature_algorithm: "ed25519",
      signature: input.signature,
      timestamp: "2024-01-01T00:00:00Z",
    };
    await own.append({ event_type: `${BASE}/authorship/v1`, payload });
    expect(await own.registry.attestations.submit(input)).toMatchObject({
      attestation: { id: "old", timestamp: "2024-01-01T00:00:00Z" },
      log_entry_id: 1,
      leaf_index: 0,
      manifest_hash: sha256(compact(manifestOf())),
      duplicate: true,
    });
    expect(own.registry.log.size).toBe(1);
  });

  it("is recorded when another entry is filed under its term", async () => {
    const path = newFolder();
    const pem = generatePrivateKey("ed25519");
    const signer = nodeSigner();
    const input = submission(signer, manifestOf());
    const { submission: term } = submissionTerms(`${BASE}/authorship/v1`, {
      signer_key_fingerprint: signer.fingerprint,
      manifest_hash: sha256(compact(manifestOf())),
      signature_algorithm: "ed25519",
      signature: input.signature,
      intent_statement: null,
    });
    // Nobody can make a collision of half a SHA-256, so one is planted, with enough entries for a run on disk.
    const log = await openLog({
      path,
      signer: operatorKey(pem),
      projection: {
        apply() {},
        addTerms(event, terms) {
          if (event.leafIndex === 0) terms.add(term, 0);
        },
      },
    });
    const events = Array.from({ length: 512 }, (_, i) => ({ event_type: "x", payload: { i } }));
    for (let i = 0; i < 9; i++) await log.append(events);
    await log.close();
    const own = await openWorld(path, pem);
    expect(own.registry.log.postings(term).at(0)).toBe(0);
    const receipt = await own.registry.attestations.submit(input);
    expect(receipt).toMatchObject({ duplicate: false, leaf_index: 4609 });
  });
});
