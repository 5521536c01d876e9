/**
 * Receipts whose entry is shown without its payload: a verifier says that it is withheld, and by which entry, if that is proven.
 * Everything else is checked as of any other receipt.
 */
import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import {
  type AttestationBundle,
  parsePublicKey,
  verifyBundle,
  verifyEnvelopeBundle,
} from "#cairnlog/engine/verify/index.js";
import { createClient } from "#cairnlog/server/client/index.js";
import { startTestService, type TestService } from "../server/harness.js";
import { canonical, newManifest, newSigner, submission } from "../server/signers.js";
import { newClient, operatorSigner } from "./clients.js";

let service: TestService;
let operatorKey: ReturnType<typeof parsePublicKey>;
const reason = "A court has ordered it.";

/** A receipt as its holder has kept it, and as it is without the payload. */
interface Receipt {
  readonly kept: AttestationBundle;
  readonly withheld: AttestationBundle;
  readonly by: number;
}
let plain: Receipt;
let other: Receipt;
/** Its signature covers the document alone, and was sent with an earlier attestation. */
let alone: Receipt;

const json = async (path: string) => (await service.get(path)).body;

/** What the service shows of an entry and its place in the tree of the newest head. */
async function shown(id: number) {
  const { ots_proof: _, ...entry } = await json(`/log/${id}`);
  const { body: proof } = await service.get(`/log/${id}/proof`);
  return { entry, proof, tree_head: proof.sth };
}

async function withhold(parts: Pick<AttestationBundle, "manifest" | "attestation" | "public_key">, id: number) {
  const format = "cairnlog-attestation/v1" as const;
  const kept: AttestationBundle = { format, ...parts, ...(await shown(id)) };
  const operator = createClient({ server: service.url, signer: operatorSigner(service.server.dataDir) });
  const { log_entry_id: by } = await operator.withholding.withhold(id, { reason });
  const { entry, proof } = await shown(by);
  const { leaf_index, audit_path } = proof;
  return {
    kept,
    withheld: { format, ...parts, ...(await shown(id)), withholding: { entry, leaf_index, audit_path } },
    by,
  };
}

beforeAll(async () => {
  service = await startTestService();
  const attest = async (title: string) => {
    const { client } = newClient(service.url);
    const document = { title, content_hash: newManifest().document.content_hash, tags: ["one", "two"] };
    const { bundle, receipt } = await client.attest(document, title === "First" ? {} : { intent: "I wrote it." });
    const { manifest, attestation, public_key } = bundle;
    return withhold({ manifest, attestation, public_key }, receipt.log_entry_id);
  };
  plain = await attest("First");
  other = await attest("Second");
  const signer = newSigner();
  const manifest = { ...newManifest("Third"), attestations: [plain.kept.attestation] };
  const signature = signer.sign(canonical({ ...manifest, attestations: [] }));
  const { body } = await service.post("/attestations", { ...submission(signer, manifest), signature });
  const parts = { manifest, attestation: body.attestation, public_key: signer.publicKey };
  // Between it and the entry that withholds it.
  await newClient(service.url).client.keys.register({ pseudonym: "somebody" });
  alone = await withhold(parts as never, body.log_entry_id);
  operatorKey = parsePublicKey((await json("/log/operator-key")).public_key);
});

const verified = (bundle: AttestationBundle, fileHash = bundle.manifest.document.content_hash) =>
  verifyBundle(bundle, { fileHash, operatorKey });

describe("a receipt whose entry is withheld", () => {
  test.each([
    ["signed with a statement", () => other],
    ["without one", () => plain],
    ["signed over the document alone", () => alone],
  ])("is withheld, and the entry that says so is named: %s", async (_, receipt) => {
    const { kept, withheld, by } = receipt();
    expect(withheld.entry).toMatchObject({ payload: null, withheld_by: by });
    const verdict = await verified(withheld);
    expect(verdict.checks.filter(({ ok }) => !ok)).toEqual([
      { name: "withheld", ok: false, detail: `The operator withholds this, as entry ${by} says: ${reason}` },
    ]);
    expect(verdict).toMatchObject({ valid: false, verdict: "withheld", withheld_by: by });
    // Whoever has kept the payload proves it as before, with the old head and with the new one.
    expect(await verified(kept)).toMatchObject({ valid: true, verdict: "valid", withheld_by: null });
    const { withholding: _no, ...rest } = withheld;
    expect(await verified({ ...rest, entry: kept.entry })).toMatchObject({ valid: true, verdict: "valid" });
    expect(withheld.entry.entry_hash).toBe(kept.entry.entry_hash);
  });

  test("is invalid if anything else is wrong, or it is not proven that the operator withholds it", async () => {
    const { kept, withheld, by } = plain;
    const { withholding, entry, proof, manifest } = withheld as Required<AttestationBundle>;
    const { withholding: _, ...without } = withheld;
    const by2 = other.withheld.withholding!;
    const near = alone.withheld.entry.id + 1;
    const early = { ...alone.withheld.withholding!.entry, id: near };
    const changed = [...withholding.audit_path];
    changed[0] = createHash("sha256").update("x").digest("hex");
    const lies: Record<string, AttestationBundle> = {
      "no entry withholds it": without,
      "an entry withholds another": { ...withheld, withholding: by2 },
      "named is another": { ...withheld, entry: { ...entry, withheld_by: by + 1 } },
      "named is none": { ...withheld, entry: { ...entry, withheld_by: undefined as never } },
      "the withholding entry is not in the tree": { ...withheld, withholding: { ...withholding, audit_path: changed } },
      "the withholding entry is elsewhere": {
        ...withheld,
        withholding: { ...withholding, leaf_index: withholding.leaf_index - 1 },
      },
      "the withholding entry has an id that is too low for its place": {
        ...alone.withheld,
        entry: { ...alone.withheld.entry, withheld_by: near },
        withholding: { ...alone.withheld.withholding!, entry: early },
      },
      "its content is another": {
        ...withheld,
        withholding: {
          ...withholding,
          entry: { ...withholding.entry, payload: { ...withholding.entry.payload, reason: "None." } },
        },
      },
      "its type is another": {
        ...withheld,
        withholding: { ...withholding, entry: { ...withholding.entry, event_type: "policy" } },
      },
      "the payload is there": { ...withheld, entry: { ...kept.entry, withheld_by: by } },
      "the payload is there, and withheld": { ...withheld, entry: kept.entry },
      "the entry cannot be withheld": { ...withheld, entry: { ...entry, event_type: "key_revocation" } },
      "the manifest is another": { ...withheld, manifest: { ...manifest, note: 1 } as never },
      "the attestation is another": { ...withheld, attestation: { ...withheld.attestation, type: "peer_review" } },
      "the proof is another": { ...withheld, proof: { ...proof, leaf_index: proof.leaf_index + 1 } },
    };
    for (const [what, lie] of Object.entries(lies))
      expect(await verified(lie), what).toMatchObject({ valid: false, verdict: "invalid", withheld_by: null });
    const elsewhere = await verified(withheld, "ab".repeat(32));
    expect(elsewhere).toMatchObject({ verdict: "invalid", withheld_by: null });
  });

  test("is no valid envelope either", async () => {
    expect(await verifyEnvelopeBundle(plain.withheld, {}, { operatorKey })).toMatchObject({ verdict: "invalid" });
  });
});
