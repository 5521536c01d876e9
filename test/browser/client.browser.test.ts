/**
 * The client and offline verification in a browser: a page signs, submits, verifies the receipt, and detects a change.
 */
import { createPrivateKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { type BundleVerdict, parsePublicKey, verifyBundle } from "#cairnlog/engine/verify/index.js";
import type { Attested } from "#cairnlog/server/client/index.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { openBrowser } from "./site/chromium.js";
import { bundlePage, startSite } from "./site/site.js";

/** The definitions of `client-page.js`. */
declare const signing: (algorithm: string) => Promise<Signing>;
declare const beingLiedTo: () => Promise<unknown>;
declare const fromElsewhere: (server: string) => Promise<unknown>;
declare const claiming: (recipientPem: string, secretHex: string) => unknown;

interface Signing extends Attested {
  readonly verdict: BundleVerdict;
  readonly refused: BundleVerdict;
  readonly fingerprint: string;
  readonly entries: number[];
}

const dataDir = temporaryFolder();
/** Unexpected errors in the page. */
const complaints: string[] = [];
let service: TestService;
let page: Page;
beforeAll(async () => {
  service = await startTestService({ SERVICE_DATA_DIR: dataDir });
  const address = await startSite(await bundlePage("./client-page.js"), service.url);
  page = await (await openBrowser()).newPage();
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(address);
  await page.waitForFunction("globalThis.ready");
});

test.each(["ecdsa-p256", "ed25519"])(
  "a page signs with a %s key of its own and verifies the proof",
  async (algorithm) => {
    const { bundle, receipt, verdict, refused, fingerprint, entries } = await page.evaluate(
      (name) => signing(name),
      algorithm,
    );
    expect(receipt.attestation.signature_algorithm).toBe(algorithm);
    expect(receipt.fingerprint).toBe(fingerprint);
    expect(verdict.checks.filter((check) => !check.ok)).toEqual([]);
    expect(verdict.valid).toBe(true);
    expect(entries).toEqual(Array.from({ length: receipt.log_entry_id }, (_, i) => i + 1));
    // One digit of one hash.
    expect(refused.valid).toBe(false);
    expect(refused.checks.filter((check) => !check.ok).map((check) => check.name)).toEqual(["inclusion"]);
    // Everybody gets the same result as the page.
    const operatorKey = parsePublicKey(readFileSync(join(dataDir, "operator.pub.pem"), "utf8"));
    const fileHash = bundle.manifest.document.content_hash;
    expect(await verifyBundle(bundle, { fileHash, operatorKey })).toMatchObject({ valid: true });
  },
);

test("a page that is lied to has the evidence in hand", async () => {
  expect(await page.evaluate(() => beingLiedTo())).toMatchObject({
    code: "log-misbehaved",
    evidence: { proof: { leaf_index: expect.any(Number) }, entry: { id: expect.any(Number) } },
  });
});

test("a page of another origin may read, and may not write", async () => {
  const { head, refusal } = (await page.evaluate((server) => fromElsewhere(server), service.url)) as {
    head: object;
    refusal: string;
  };
  expect(head).toMatchObject({ tree_size: await service.entryCount() });
  expect(refusal).toBe("no-answer");
});

test("claims are encrypted and decrypted there", async () => {
  const recipient = newSigner("ecdsa-p256");
  const { d } = createPrivateKey(recipient.privateKey).export({ format: "jwk" });
  const secret = Buffer.from(d!, "base64url").toString("hex");
  const opened = await page.evaluate(([pem, hex]) => claiming(pem!, hex!), [recipient.publicKey, secret]);
  expect(opened).toEqual({ salary: 52000 });
});

test("nothing went wrong unseen", () => {
  expect(complaints).toEqual([]);
});
