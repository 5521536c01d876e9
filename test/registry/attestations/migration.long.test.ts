/** A log of an earlier version: when this version opens it, its attestations are filed under their signed bytes. */
import { afterAll, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { checkLog } from "#cairnlog/engine/log/check/fsck.js";
import { openHistory } from "#cairnlog/engine/log/history/history.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import type { Projection } from "#cairnlog/engine/log/state/projection.js";
import { submissionTerms } from "#cairnlog/engine/registry/events/attestations.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { FORMAT, POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { anyEvent } from "../../anyevent.js";
import {
  BASE,
  closeWorlds,
  compact,
  failure,
  HASH,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  sha256,
  submission,
} from "../world.js";
import type { Submission } from "./manifests.js";

const pool = createPool(1);
afterAll(async () => {
  await closeWorlds();
  await pool.close();
});

/** Files entries as format 2 did, as far as this test needs it. */
const earlier: Projection = {
  ...projection,
  addTerms(event, terms) {
    const isNew = (term: string) => [POSTING.submission, POSTING.signedPayload].includes(term.charCodeAt(0) as 15);
    projection.addTerms(event, { add: (term, leafIndex) => void (isNew(term) || terms.add(term, leafIndex)) });
  },
};
const signer = nodeSigner("ecdsa-p256");
const input = submission(signer, manifestOf());
const event_type = `${BASE}/authorship/v1`;
const payload = {
  attestation_id: "old",
  attestation_type: "authorship",
  document_hash: `sha256:${HASH}`,
  document_title: "A title",
  intent_statement: null,
  manifest_hash: sha256(compact(manifestOf())),
  signature: input.signature,
  signature_algorithm: "ecdsa-p256",
  signer_key_fingerprint: signer.fingerprint,
  tags: [],
  timestamp: "2025-01-01T00:00:00.000000Z",
} as const;

/** A log of format 2: the attestation, and enough other entries that its postings are in a run on disk. */
async function oldLog() {
  const path = newFolder();
  const pem = generatePrivateKey("ed25519");
  const log = await openLog({ path, signer: operatorKey(pem), projection: earlier });
  await log.append({ event_type, payload });
  for (let i = 0; i < 9; i++) await log.append(Array.from({ length: 512 }, (_, n) => anyEvent({ n })));
  await log.close();
  const store = openStore({ path });
  const meta = store.get("meta", "log")!;
  const after = store.position().sequence;
  const row = { table: "meta", key: "log", row: { ...meta, format: 2 } } as const;
  await store.commit({ after, position: null, batches: [], rows: [row], tiles: [] });
  expect(store.postings.runIds().length).toBeGreaterThan(0);
  await store.close();
  return { path, pem };
}

async function expectWhole(path: string, pem: string): Promise<void> {
  const store = openStore({ path });
  expect(store.get("meta", "log")!.format).toBe(FORMAT);
  const report = await checkLog(store, { path, operatorKey: operatorKey(pem).public.pem, projection, pool });
  expect(report).toMatchObject({ ok: true, differences: [] });
  await store.close();
}

test("is brought up to date when it is opened, and then knows what was submitted", async () => {
  const { path, pem } = await oldLog();
  const { registry } = await openWorld(path, pem);
  const submit = (more: object) => registry.attestations.submit({ ...input, ...more } as Submission);
  expect(await submit({})).toMatchObject({ attestation: { id: "old" }, duplicate: true, leaf_index: 0 });
  expect((await failure(() => submit({ attestation_type: "publication" }))).code).toBe("proof-required");
  for (const term of Object.values(submissionTerms(event_type, payload)))
    expect(registry.log.postings(term).window(0, 9)).toEqual([0]);
  expect(registry.log.stateDifferences()).toEqual([]);
  await registry.close();
  await expectWhole(path, pem);
});

test("is brought up to date also by who takes over history into it", async () => {
  const { path, pem } = await oldLog();
  await (await openHistory({ path, operatorKey: operatorKey(pem).public.pem, projection })).close();
  await expectWhole(path, pem);
});

test("is filed anew from the beginning when the first attempt was interrupted", async () => {
  const { path, pem } = await oldLog();
  let seen = 0;
  const stopping: Projection = {
    ...projection,
    addTerms(event, terms) {
      if (seen++ === 4200) throw new CairnlogError("closed", "the process was killed");
      projection.addTerms(event, terms);
    },
  };
  await expect(openLog({ path, signer: operatorKey(pem), projection: stopping })).rejects.toThrow("was killed");
  const store = openStore({ path });
  expect(store.get("meta", "log")!.format).toBe(3);
  await store.close();
  const { registry } = await openWorld(path, pem);
  expect(registry.log.stateDifferences()).toEqual([]);
  await registry.close();
  await expectWhole(path, pem);
});
