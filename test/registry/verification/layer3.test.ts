/** Layer 3 of verification: a verifier's trust in the signers of a manifest. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { assemble, compile, verifyComposite } from "#cairnlog/engine/registry/verification/composites.js";
import type { VerificationRequest, VerificationResult } from "#cairnlog/engine/registry/verification/verification.js";
import { attest } from "../attestations/manifests.js";
import { HUMAN, INSTITUTIONAL, newKey, offerOf } from "../endorsements/endorsementcase.js";
import {
  closeWorlds,
  DAY,
  failure,
  HASH,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  sha256,
  type TestManifest,
  type World,
} from "../world.js";

afterAll(closeWorlds);

let world: World;
/** anchor → near → signer, and anchor → signer in the other category. */
let anchor: string;
let near: string;
let signed: TestManifest;
const signer = nodeSigner();

beforeAll(async () => {
  world = await openWorld(newFolder());
  signed = await attest(world, signer, manifestOf());
  anchor = await newKey(world);
  near = await newKey(world);
  await endorse(anchor, near);
  await endorse(near, signer.fingerprint);
  world.now += DAY;
});

async function endorse(from: string, to: string, category: string = HUMAN): Promise<void> {
  const { endorsement } = await world.registry.endorsements.offer(offerOf(from, to, { category: category as never }));
  const { offer_entry_id } = endorsement;
  await world.registry.endorsements.accept({ offer_entry_id, endorsed_fingerprint: to });
}

const verify = (more: Partial<VerificationRequest>, manifest: TestManifest = signed) =>
  world.registry.verification.verify({ manifest, source_hash: HASH, ...more });

const policy = (more: object = {}) => ({
  endorser_anchors: [{ fingerprint: anchor, weight: 0.9 }],
  minimum_threshold: 0.2,
  ...more,
});

describe("layer 3", () => {
  it("is left out when nobody's trust is asked about", async () => {
    const result = await verify({});
    expect(result).not.toHaveProperty("layer3");
    expect(result.attestations[0]).not.toHaveProperty("layer3");
    expect(result.overall_status).toBe("valid");
    expect(await verify({ verifier_fingerprint: null, trust_config: null })).toEqual(result);
  });

  it("reports score, threshold and path", async () => {
    const { layer3, attestations, overall_status } = await verify({ trust_config: policy() });
    expect(layer3).toEqual({ status: "valid", details: expect.stringMatching(/^.+\.$/) });
    expect(overall_status).toBe("valid");
    const hop = { category: HUMAN, offer_entry_id: expect.any(Number), factor: 0.5 };
    expect(attestations[0]!.layer3).toEqual({
      status: "valid",
      details: "The score 0.225 reaches the verifier's threshold of 0.2.",
      score: 0.9 * 0.5 * 0.5,
      threshold: 0.2,
      paths: [
        {
          anchor,
          kind: "endorsed",
          weight: 0.9,
          score: 0.9 * 0.5 * 0.5,
          hops: [
            { from: anchor, to: near, ...hop },
            { from: near, to: signer.fingerprint, ...hop },
          ],
        },
      ],
    });
  });

  it("below the threshold is a warning, which is the overall status", async () => {
    const result = await verify({ trust_config: policy({ minimum_threshold: 0.23 }) });
    expect(result.attestations[0]!.layer3).toMatchObject({ status: "warning", threshold: 0.23 });
    expect(result).toMatchObject({ layer3: { status: "warning" }, overall_status: "warning" });
  });

  it("does not change a refusal of layers 1 and 2", async () => {
    const forged = { ...signed, document: { ...signed.document, title: "Another" } };
    const trusting = { direct_signer_anchors: [{ fingerprint: signer.fingerprint, weight: 1 }], minimum_threshold: 1 };
    const result = await verify({ trust_config: trusting }, forged);
    expect(result).toMatchObject({ layer3: { status: "valid" }, overall_status: "invalid" });
  });

  it.each<[string, () => object, number]>([
    [
      "a direct anchor's weight goes before paths",
      () => ({ direct_signer_anchors: [{ fingerprint: signer.fingerprint, weight: 0.1 }] }),
      0.1,
    ],
    ["decay", () => ({ decay_per_hop: 1 }), 0.9],
    ["depth", () => ({ max_depth: 1 }), 0],
    ["category weights", () => ({ category_weights: { [HUMAN]: 0.5 } }), 0.9 / 16],
    ["weights of other categories", () => ({ category_weights: { [INSTITUTIONAL]: 0 } }), 0.225],
    [
      "several anchors",
      () => ({ endorser_anchors: [anchor, near].map((fingerprint) => ({ fingerprint, weight: 0.8 })) }),
      1 - 0.8 * 0.6,
    ],
    [
      "an anchor that signs itself",
      () => ({ endorser_anchors: [{ fingerprint: signer.fingerprint, weight: 0.7 }] }),
      0.7,
    ],
    ["no anchor at all", () => ({ endorser_anchors: [] }), 0],
  ])("scores by %s", async (_, more, score) => {
    const { attestations } = await verify({ trust_config: policy(more()) });
    expect(attestations[0]!.layer3!.score).toBeCloseTo(score, 12);
  });

  it("follows only endorsements that are active, of keys that are", async () => {
    const own = await newKey(world);
    const trust_config = policy({ endorser_anchors: [{ fingerprint: own, weight: 1 }] });
    await endorse(own, signer.fingerprint);
    const score = async () => (await verify({ trust_config })).attestations[0]!.layer3!.score;
    expect(await score()).toBe(0);
    world.now += DAY;
    expect(await score()).toBe(0.5);
    await world.append({ event_type: "key_revocation", payload: { fingerprint: own } });
    expect(await score()).toBe(0);
  });

  it("discounts the endorsements of a key over capacity", async () => {
    const busy = await newKey(world);
    await endorse(busy, signer.fingerprint);
    for (let i = 0; i < 11; i++) await endorse(busy, await newKey(world));
    world.now += DAY;
    const trust_config = policy({ endorser_anchors: [{ fingerprint: busy, weight: 1 }] });
    const { attestations } = await verify({ trust_config });
    expect(attestations[0]!.layer3!.score).toBeCloseTo((9 / 12) * 0.5, 12);
  });

  it("judges each attestation of a manifest by its own signer", async () => {
    const manifest = await attest(world, nodeSigner(), signed);
    const { layer3, attestations } = await verify({ trust_config: policy() }, manifest);
    expect(attestations.map((one) => one.layer3!.status)).toEqual(["valid", "warning"]);
    expect(layer3!.details).toContain("1 of 2");
  });

  it("is not evaluated for a manifest that nobody signed", async () => {
    const { layer3, attestations } = await verify({ trust_config: policy() }, manifestOf());
    expect(layer3).toEqual({ status: "not_evaluated", details: expect.stringMatching(/^.+\.$/) });
    expect(attestations).toEqual([]);
  });

  it("goes by the active configuration of the verifier that is named", async () => {
    const verifier = await newKey(world);
    const asked = () => verify({ verifier_fingerprint: verifier });
    expect(await asked()).toMatchObject({ layer3: { status: "not_evaluated" }, overall_status: "valid" });
    expect((await asked()).attestations[0]!.layer3).toMatchObject({ score: null, threshold: null, paths: [] });
    await world.registry.trustConfigs.create({ fingerprint: verifier, ...policy() });
    expect((await asked()).attestations).toEqual((await verify({ trust_config: policy() })).attestations);
    await world.registry.trustConfigs.create({ fingerprint: verifier, ...policy({ minimum_threshold: 1 }) });
    expect(await asked()).toMatchObject({ layer3: { status: "warning" } });
    await world.registry.trustConfigs.revoke(verifier);
    expect(await asked()).toMatchObject({ layer3: { status: "not_evaluated" } });
  });

  it("refuses a verifier that is not a key, an invalid configuration, and both at once", async () => {
    const verifier_fingerprint = `sha256:${"0".repeat(64)}`;
    expect(await failure(() => verify({ verifier_fingerprint }))).toMatchObject({ code: "not-found" });
    const wrong = { trust_config: { minimum_threshold: 2, endorser_anchors: [{ fingerprint: "x", weight: 0 }] } };
    expect(await failure(() => verify(wrong))).toMatchObject({
      code: "invalid-input",
      paths: ["/trust_config/endorser_anchors/0/fingerprint", "/trust_config/minimum_threshold"],
    });
    const both = { verifier_fingerprint: anchor, trust_config: policy() };
    expect(await failure(() => verify(both))).toMatchObject({ paths: ["/trust_config"] });
  });
});

it("follows so many endorsements for a request, however many parts its composite has", async () => {
  const titles = ["one", "two", "three"];
  const parts = [];
  for (const title of titles) {
    const document = { title, content_hash: `sha256:${sha256(title)}` };
    parts.push({ ...document, manifest: await attest(world, signer, { document, attestations: [] }) });
  }
  const { composite } = assemble({ title: "All", parts });
  const { manifest } = compile({ composite });
  const request = { manifest, source_hash: composite.composite_hash, trust_config: policy() };
  const layer3 = async (...budget: { visits: number }[]) =>
    (await verifyComposite(world.registry.verification, request, ...budget)).parts!.map(
      ({ result }) => (result as VerificationResult).layer3!.status,
    );
  expect(await layer3()).toEqual(["valid", "valid", "valid"]);
  // Two endorsements lead to the signer of each part.
  expect(await layer3({ visits: 6 })).toEqual(["valid", "valid", "valid"]);
  expect(await layer3({ visits: 4 })).toEqual(["valid", "valid", "not_evaluated"]);
  expect(await layer3({ visits: 1 })).toEqual(["not_evaluated", "not_evaluated", "not_evaluated"]);
});
