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
import { freePorts } from "../cluster/servers/cluster.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner, registration } from "../server/signers.js";
import { metric, until } from "../server/sockets.js";
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

const registrations = () => [newSigner(), newSigner(), newSigner()].map((signer) => registration(signer));

const dataDir = temporaryFolder();
/** Unexpected errors in the page. */
const complaints: string[] = [];
let service: TestService;
let address: string;
let page: Page;
beforeAll(async () => {
  const [port] = await freePorts(1);
  service = await startTestService({ SERVICE_DATA_DIR: dataDir, SERVICE_PUBLIC_URL: `http://127.0.0.1:${port}` });
  address = await startSite(await bundlePage("./client-page.js"), service.url, port);
  page = await (await openBrowser()).newPage();
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(address);
  await page.waitForFunction("globalThis.ready");
});

test("a page signs and verifies in a browser without WebAssembly, and under a policy that forbids it", async () => {
  const policy = "script-src 'self'; worker-src 'none'";
  for (const hasWasm of [false, true]) {
    const bare = await (await openBrowser({ hasWasm })).newPage();
    await bare.route(address, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, headers: { ...response.headers(), "content-security-policy": policy } });
    });
    await bare.goto(address);
    await bare.waitForFunction(() => "ready" in globalThis);
    expect(await bare.evaluate(() => typeof WebAssembly)).toBe(hasWasm ? "object" : "undefined");
    const { verdict, refused } = await bare.evaluate(() => signing("ecdsa-p256"));
    expect([verdict.valid, refused.valid]).toEqual([true, false]);
    await bare.close();
  }
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

const writingFrom = async ({ url }: TestService) =>
  (await page.evaluate((server) => fromElsewhere(server), url)) as { head: object; refusal: unknown };

test("a page of another origin may read, and may not write", async () => {
  const other = await startTestService();
  await other.post("/keys/register", registration(newSigner()));
  const { head, refusal } = await writingFrom(other);
  expect(head).toMatchObject({ tree_size: 1 });
  expect(refusal).toBe("no-answer");
  // What a browser sends without asking first: forms, and requests whose answer the page does not want to see.
  const bodies = registrations().map((body) => JSON.stringify(body));
  await page.evaluate(
    async ([server, ...texts]) => {
      const to = `${server}/api/v1/keys/register`;
      for (const [i, body] of texts.entries()) {
        const types = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"];
        await fetch(to, {
          method: "POST",
          mode: "no-cors",
          body,
          headers: { "content-type": types[i % types.length]! },
        });
      }
      navigator.sendBeacon(to, new Blob([texts[0]!], { type: "text/plain" }));
      const form = document.createElement("form");
      const frame = document.body.appendChild(document.createElement("iframe"));
      frame.name = "answer";
      Object.assign(form, { action: to, method: "post", enctype: "text/plain", target: "answer" });
      const field = form.appendChild(document.createElement("input"));
      const [name = "", value = ""] = texts[0]!.split(/(?<=^\{")/);
      Object.assign(field, { name: `${name}a":"`, value: `","${value}` });
      document.body.append(form);
      form.submit();
    },
    [other.url, ...bodies],
  );
  // All five have come, and none of them was done.
  await until(async () => (await metric(other.url, 'cairnlog_refusals_total{code="foreign-origin"}')) === 5);
  expect(await other.entryCount()).toBe(1);
});

test("a page of an origin that the operator allows may write, and sees the answer", async () => {
  const other = await startTestService({ SERVICE_ALLOWED_ORIGINS: new URL(page.url()).origin });
  await other.post("/keys/register", registration(newSigner()));
  expect(await writingFrom(other)).toMatchObject({ head: { tree_size: 1 }, refusal: { log_entry_id: 2 } });
  expect(await other.entryCount()).toBe(2);
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
