/** The operator's view in a browser: it needs the operator key, which is not sent, and shows the service's metrics. */
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { cairnlog } from "../cli/harness.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { bearerOf, registeredSigner } from "../server/proofs.js";
import { newSigner, submission } from "../server/signers.js";
import { DESKTOP, expectReadable, Reader, TELEPHONE } from "./explorer.js";

let service: TestService;
let folder: string;
let operatorPem: string;
beforeAll(async () => {
  folder = temporaryFolder();
  service = await startTestService({ SERVICE_DATA_DIR: folder });
  operatorPem = join(folder, "operator.pem");
  const subscriber = await registeredSigner(service);
  const reply = await service.post(
    "/webhooks",
    { url: "https://hooks.example.org/log", events: ["key.revoked"] },
    await bearerOf(service, subscriber),
  );
  expect(reply.status, reply.text).toBe(200);
});

const keyField = (page: Page) => page.getByLabel("Operator key (PEM file, PKCS #8)");
const region = (page: Page, name: string) => page.getByRole("region", { name, exact: true });

async function signIn(page: Page, path = operatorPem): Promise<void> {
  const fold = page.locator("details", { has: page.getByText("With the key itself") });
  await fold.waitFor();
  if (!(await keyField(page).isVisible())) await fold.locator("summary").click();
  await keyField(page).setInputFiles(path);
  await page.getByRole("button", { name: "Sign in" }).click();
}

function keyFile(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

test("nothing is shown without the operator key: not with another, not with an encrypted one, not with none", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/operator");
  await page.getByRole("button", { name: "Open" }).waitFor();
  expect(await page.getByRole("region").count()).toBe(1);
  const { privateKey } = generateKeyPairSync("ed25519");
  const encrypted = privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" });
  for (const [path, said] of [
    [
      keyFile("another.pem", newSigner("ecdsa-p256").privateKey),
      /This is the key sha256:[0-9a-f]{64}, not the operator key/,
    ],
    [keyFile("rsa.pem", newSigner("rsa-2048").privateKey), /This is the key sha256:[0-9a-f]{64}, not the operator key/],
    [keyFile("encrypted.pem", encrypted as string), "The key is encrypted"],
    [keyFile("public.pem", newSigner().publicKey), "The file is not one PEM block PRIVATE KEY"],
    [
      keyFile("nonsense.pem", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
      "The file contains no key",
    ],
  ] as const) {
    await signIn(page, path);
    await page.getByText(said).waitFor();
  }
  await expectReadable(page);
  await reader.leave();
});

test("the key signs one challenge and is neither sent nor stored; the session has the operator's rights", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/operator");
  const sent: string[] = [];
  page.on("request", (request) => sent.push(`${request.url()} ${request.postData() ?? ""}`));
  await signIn(page);
  await region(page, "Webhooks").getByText("https://hooks.example.org/log").waitFor();
  await region(page, "Webhooks").getByText("All healthy").waitFor();
  await page.getByRole("button", { name: "Sign the head again" }).click();
  await page.getByText("The head was signed again; its signature was verified in this page.").waitFor();
  const secret = readFileSync(operatorPem, "utf8").split("\n")[1]!;
  expect(sent.join("\n")).toContain("/auth/login");
  expect(sent.join("\n")).not.toContain(secret.slice(-20));
  const kept = await page.evaluate(async () => {
    const databases = await indexedDB.databases();
    return JSON.stringify([{ ...localStorage }, { ...sessionStorage }, databases, document.cookie]);
  });
  expect(kept).not.toContain(secret.slice(-20));
  expect(kept).not.toMatch(/eyJ/);
  // The session survives visits to other views, but not a new page.
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goBack();
  await region(page, "Webhooks").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("With the key itself").waitFor();
  await reader.leave();
});

test("who signs out while the session is being renewed stays signed out", async () => {
  const reader = await Reader.arrive();
  await reader.context.route("**/api/v1/auth/login", async (route) => {
    const response = await route.fetch();
    const soon = new Date(Date.now() + 60_000).toISOString();
    await route.fulfill({ response, json: { ...(await response.json()), expires_at: soon } });
  });
  let asked = () => {};
  let answer = () => {};
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const isLeft = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await reader.context.route("**/api/v1/auth/renew", async (route) => {
    asked();
    await isLeft;
    await route.fallback();
  });
  const page = await reader.open(service.url, "#/operator");
  const renewed = page.waitForResponse("**/api/v1/auth/renew");
  await signIn(page);
  await isAsked;
  await page.getByRole("button", { name: "Sign out" }).click();
  answer();
  await (await renewed).finished();
  await expect.poll(() => page.evaluate(() => document.body.innerText)).toContain("With the key itself");
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "Operator" }).waitFor();
  expect(await page.getByRole("button", { name: "Sign out" }).count()).toBe(0);
  await reader.leave();
});

test("the numbers are those of the counters", async () => {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/operator");
  await signIn(page);
  const appends = region(page, "Appends");
  await appends.getByRole("img").locator("canvas").waitFor();
  const shown = async (card: string, label: string) => {
    const pair = region(page, card).locator(".chart-now > div").filter({ hasText: label });
    return pair.locator("dd").innerText();
  };
  await expect.poll(() => shown("Appends", "Entries")).toBe("0/s");
  const append = () => service.post("/attestations", submission(newSigner(), undefined, { pseudonym: "Ada" }));
  let isDone = false;
  const load = (async () => {
    while (!isDone) await append();
  })();
  // An attestation by a new key makes two entries in one batch.
  const number = async (card: string, label: string) => Number.parseFloat(await shown(card, label));
  await expect.poll(() => number("Appends", "Entries")).toBeGreaterThan(0);
  await expect.poll(() => number("Batch size", "Average")).toBe(2);
  await expect.poll(() => number("Duration of writing requests", "Half below")).toBeGreaterThan(0);
  expect(await appends.getByRole("img").getAttribute("aria-label")).toMatch(/Now: Entries .+\/s, Batches .+\/s/);
  isDone = true;
  await load;
  await reader.leave();
});

test("charts have their axes from the first point on, and the version stands beside them", async () => {
  const reader = await Reader.arrive();
  let asked = 0;
  // The first two measurements make one point.
  await reader.context.route("**/metrics", (route) =>
    ++asked > 2 ? route.fulfill({ status: 503 }) : route.continue(),
  );
  const page = await reader.open(service.url, "#/operator");
  await signIn(page);
  await page.getByText("The service refuses to send its measurements to this address (503).").waitFor();
  const axis = await region(page, "Appends")
    .locator("canvas")
    .evaluate((canvas: HTMLCanvasElement) => {
      const height = Math.round((26 * canvas.height) / canvas.clientHeight);
      const { data } = canvas.getContext("2d")!.getImageData(0, canvas.height - height, canvas.width, height);
      return data.filter((value, i) => i % 4 === 3 && value > 0).length;
    });
  expect(axis).toBeGreaterThan(50);
  expect(await region(page, "Refusals and errors").innerText()).toMatch(/Refused\s+[\d.]+\/s[\s\S]*service\s+0\/s/);
  expect(await region(page, "Disk").innerText()).toMatch(/Free\s+[\d,.]+ GiB/);
  await page.getByText(/^The service is of version \d+\.\d+\.\d+/).waitFor();
  await reader.leave();
});

test("refused measurements are reported", async () => {
  const reader = await Reader.arrive();
  await reader.context.route("**/metrics", (route) => route.fulfill({ status: 403, body: "" }));
  const page = await reader.open(service.url, "#/operator");
  await signIn(page);
  await page.getByText("The service refuses to send its measurements to this address (403).").waitFor();
  await reader.leave();
});

test("it fits every screen and every reader", async () => {
  for (const options of [
    { colorScheme: "light", viewport: DESKTOP },
    { colorScheme: "dark", viewport: TELEPHONE },
  ] as const) {
    const reader = await Reader.arrive(options);
    const page = await reader.open(service.url, "#/operator");
    await page.getByText("With the key itself").waitFor();
    await expectReadable(page);
    await signIn(page);
    await region(page, "Anchors").locator("canvas").waitFor();
    await region(page, "Webhooks").getByText("https://hooks.example.org/log").waitFor();
    await expectReadable(page);
    await reader.leave();
  }
});

test("a token that only reads opens the page without a key, and signs nothing", async () => {
  const { stdout } = await cairnlog(["operator", "token", "--read-only", "--hours", "1", "--data", folder]);
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, "#/operator");
  const token = page.getByLabel("Token that only reads");
  for (const [text, said] of [
    ["nonsense", "This is no token of"],
    [`${stdout.trim().slice(0, -4)}AAAA`, "The session token does not hold"],
  ] as const) {
    await token.fill(text);
    await page.getByRole("button", { name: "Open" }).click();
    await page.getByText(said).waitFor();
  }
  await token.fill(stdout);
  await page.getByRole("button", { name: "Open" }).click();
  // Paths of webhooks may be secrets.
  await region(page, "Webhooks").getByText("https://hooks.example.org", { exact: true }).waitFor();
  expect(await page.getByText("https://hooks.example.org/log").count()).toBe(0);
  // On a fast machine, the tests before have appended more entries than may wait for an anchor.
  const { anchor_due } = (await service.get("/log/anchor-status")).body;
  await region(page, "Head and anchor")
    .getByText(anchor_due ? "Due" : "Not due", { exact: true })
    .waitFor();
  expect(await page.getByRole("button", { name: "Sign the head again" }).count()).toBe(0);
  await expectReadable(page);
  await reader.leave();
});
