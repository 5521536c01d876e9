/**
 * `@sigstore/verify`, the verifier of npm's own provenance, on bundles (v0.3) that name a live log as their transparency log.
 * It takes the checkpoint and the inclusion proof. It cannot take the leaf, which for Sigstore must be an entry of Rekor:
 * `docs/interop.md` says so, and this shows which check it is.
 */
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { envelopeSubject, parsePublicKey, parseVkey } from "#cairnlog/engine/verify/index.js";
import type { Client } from "#cairnlog/server/client/index.js";
import { newClient } from "../client/clients.js";
import { temporaryFolder } from "../server/harness.js";
import { envelopeOf, STATEMENT } from "../verify/dsse/envelopes.js";
import { newNoteSigner } from "../verify/note/notes.js";
import { runNode } from "./programs.js";
import { type LiveLog, liveLog } from "./services.js";

const SIZE = 300;
const HINT = "release-key";
const signer = generateKeyPairSync("ed25519");
const envelope = envelopeOf(STATEMENT, signer.privateKey);
/** The entry of `envelope`. */
const ENVELOPE_ID = SIZE + 2;

interface Verdict {
  readonly inclusion: string;
  readonly body: string;
  readonly signature: string;
  readonly all: string;
}

let log: LiveLog;
let client: Client;
beforeAll(async () => {
  log = await liveLog(SIZE);
  ({ client } = newClient(log.service.url));
  const pem = signer.publicKey.export({ type: "spki", format: "pem" }) as string;
  const { document, type } = await envelopeSubject(envelope, parsePublicKey(pem));
  const { receipt } = await client.attest(document, { type });
  // The attester's key was registered by the entry before.
  expect(receipt.log_entry_id).toBe(ENVELOPE_ID);
  await log.service.checkpointed(ENVELOPE_ID);
});

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
const keyIdOf = (vkey: string) => base64(Buffer.from(parseVkey(vkey).id, "hex"));

/** What Sigstore trusts: one log, by the key of its notes. */
const trustedRoot = (vkey: string) => ({
  mediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
  tlogs: [
    {
      baseUrl: `https://${parseVkey(vkey).name}`,
      hashAlgorithm: "SHA2_256",
      publicKey: { rawBytes: base64(parseVkey(vkey).key!.der), keyDetails: "PKIX_ED25519" },
      logId: { keyId: keyIdOf(vkey) },
    },
  ],
  certificateAuthorities: [],
  ctlogs: [],
  timestampAuthorities: [],
});

/** A bundle with a signed envelope, whose place in the log is that of the entry. */
async function bundleOf(id: number) {
  const { entry } = await client.log.entry(id);
  const { leafIndex, proof, note, checkpoint } = await client.tlog.inclusion(id - 1, entry.entry_hash, log.vkey);
  return {
    mediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
    verificationMaterial: {
      publicKey: { hint: HINT },
      tlogEntries: [
        {
          logIndex: String(leafIndex),
          logId: { keyId: keyIdOf(log.vkey) },
          kindVersion: { kind: "dsse", version: "0.0.1" },
          integratedTime: "0",
          inclusionProof: {
            logIndex: String(leafIndex),
            rootHash: base64(Buffer.from(checkpoint.rootHash, "hex")),
            treeSize: String(checkpoint.treeSize),
            hashes: proof.map(base64),
            checkpoint: { envelope: note },
          },
          canonicalizedBody: base64(Buffer.from(entry.entry_hash)),
        },
      ],
    },
    dsseEnvelope: envelope,
  };
}

async function verdicts(bundles: readonly unknown[], vkey = log.vkey): Promise<Verdict[]> {
  const file = join(temporaryFolder(), "input.json");
  const keys = { [HINT]: base64(signer.publicKey.export({ type: "spki", format: "der" })) };
  writeFileSync(file, JSON.stringify({ trustedRoot: trustedRoot(vkey), keys, bundles }));
  const { code, stdout, stderr } = await runNode("sigstore.mjs", file);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

describe("the transparency log of a bundle", () => {
  test("is this one: checkpoint and inclusion hold for every entry that is tried", async () => {
    const bundles = await Promise.all([1, 2, 100, 255, 256, 257, ENVELOPE_ID].map(bundleOf));
    const found = await verdicts(bundles);
    expect(found.map(({ inclusion, signature }) => [inclusion, signature])).toEqual(
      bundles.map(() => ["holds", "holds"]),
    );
  });

  test("is refused with another place, another leaf, a changed proof or checkpoint, or another key", async () => {
    const bundle = await bundleOf(77);
    const [entry] = bundle.verificationMaterial.tlogEntries;
    const proof = entry!.inclusionProof;
    const changed = (change: object) => ({
      ...bundle,
      verificationMaterial: { ...bundle.verificationMaterial, tlogEntries: [{ ...entry, ...change }] },
    });
    const withProof = (change: object) => changed({ inclusionProof: { ...proof, ...change } });
    const { entry: other } = await client.log.entry(78);
    const bundles = [
      withProof({ logIndex: "77" }),
      changed({ canonicalizedBody: base64(Buffer.from(other.entry_hash)) }),
      withProof({ hashes: proof.hashes.slice(1) }),
      withProof({ hashes: [...proof.hashes.slice(1), proof.hashes[0]] }),
      withProof({
        checkpoint: { envelope: proof.checkpoint.envelope.replace(`\n${ENVELOPE_ID}\n`, `\n${ENVELOPE_ID + 1}\n`) },
      }),
    ];
    for (const { inclusion } of await verdicts(bundles)) expect(inclusion).toMatch(/^TLOG_INCLUSION_PROOF_ERROR: /);
    const { vkey } = newNoteSigner("log.example/tlog");
    expect((await verdicts([bundle], vkey))[0]!.inclusion).toBe(
      "TLOG_INCLUSION_PROOF_ERROR: invalid checkpoint signature",
    );
  });

  // The envelope is on the log. But an `entry_hash` is no JSON, let alone a record of Rekor with its hash and signature.
  test("is of no use to the whole verifier, which wants a leaf that is an entry of Rekor", async () => {
    const [verdict] = await verdicts([await bundleOf(ENVELOPE_ID)]);
    expect(verdict).toEqual({
      inclusion: "holds",
      signature: "holds",
      body: expect.stringMatching(/^(SyntaxError|TLOG_BODY_ERROR): /),
      all: verdict!.body,
    });
  });
});
