/** A file in a browser: hashed, looked up and signed there; page and command accept each other's receipts. */
import { createHash, createPublicKey, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { newClient } from "../client/clients.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { canonical, newSigner, sha256, submission } from "../server/signers.js";
import { cairnlog } from "../service.js";
import { DESKTOP, expectReadable, Reader, TELEPHONE } from "./explorer.js";

let service: TestService;
let folder: string;
let operatorKey: string;
beforeAll(async () => {
  service = await startTestService();
  folder = temporaryFolder();
  operatorKey = join(folder, "operator.pub.pem");
  writeFileSync(operatorKey, (await service.get("/log/operator-key")).body.public_key);
});

/** A file that nobody else has. */
function newFile(name: string, content: string | Uint8Array = randomBytes(64).toString("hex")): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}
const hashOf = (path: string): string => `sha256:${sha256(readFileSync(path))}`;

async function openWith(reader: Reader, ...paths: string[]): Promise<Page> {
  const page = await reader.open(service.url, "#/file");
  await choose(page, ...paths);
  return page;
}
const choose = (page: Page, ...paths: string[]) => page.locator('input[type="file"]').setInputFiles(paths);
const card = (page: Page, name: string) => page.getByRole("region", { name, exact: true });

/** Makes a key in the page, signs the current file with it, and saves the receipt beside the file. */
async function signInPage(page: Page, path: string, { exportable = false } = {}): Promise<void> {
  if (exportable) await page.getByLabel("It can be exported").check();
  await page.getByRole("button", { name: "Make the key" }).click();
  await page.getByLabel("Your name in the log").fill("Grace");
  await page.getByLabel("Statement").fill("I stand by it.");
  await page.getByRole("button", { name: "Sign and record" }).click();
  const download = page.waitForEvent("download");
  await page.getByRole("region", { name: "Your receipt" }).getByRole("button").click();
  await (await download).saveAs(`${path}.attestation.json`);
}

describe("hashing", () => {
  test("gives the hash that everybody else gives, of any size, and nothing of the file is sent", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url, "#/file");
    const sent: (string | null)[] = [];
    page.on("request", (request) => sent.push(request.url(), request.postData()));
    for (const size of [0, 1, 64, 5_000_000]) {
      const path = newFile(`of-${size}.bin`, randomBytes(size));
      await choose(page, path);
      const shown = page.getByRole("button", { name: "Copy SHA-256 of the file" });
      await shown.and(page.getByTitle(hashOf(path))).waitFor();
    }
    await page.getByText("The log has no attestation of this file.").waitFor();
    expect(Math.max(...sent.map((text) => text?.length ?? 0))).toBeLessThan(2_000);
    await reader.leave();
  });

  test("of a large file shows how far it is and can be cancelled, and another file is hashed afterwards", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url, "#/file");
    // Sixteen gigabytes that take no space: the page repeats one chunk.
    await page.locator('input[type="file"]').evaluate((input: HTMLInputElement) => {
      const chunk = new Blob([new Uint8Array(16 << 20)]);
      const transfer = new DataTransfer();
      transfer.items.add(
        new File(
          Array.from({ length: 1024 }, () => chunk),
          "large.bin",
        ),
      );
      input.files = transfer.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });
    const progress = page.getByRole("progressbar", { name: "Hashing large.bin" });
    await expect.poll(() => progress.evaluate((bar: HTMLProgressElement) => bar.value)).toBeGreaterThan(0);
    await page.getByText("of 16 GiB").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await progress.waitFor({ state: "detached" });
    expect(await page.getByText("large.bin").count()).toBe(0);
    const path = newFile("small.bin");
    await choose(page, path);
    await page.getByTitle(hashOf(path)).waitFor();
    await reader.leave();
  });

  test("accepts a dropped file", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url, "#/file");
    const transfer = await page.evaluateHandle(() => {
      const data = new DataTransfer();
      data.items.add(new File(["dropped"], "dropped.txt"));
      return data;
    });
    await page.locator(".drop").dispatchEvent("drop", { dataTransfer: transfer });
    await page.getByTitle(`sha256:${sha256("dropped")}`).waitFor();
    await reader.leave();
  });
});

describe("the attestations in the log", () => {
  test("every attestation is put together again and checked, step by step", async () => {
    const path = newFile("report.txt");
    const content_hash = hashOf(path);
    const [ada, grace] = [newClient(service.url), newClient(service.url, {}, "ecdsa-p256")];
    await ada.client.attest({ title: "A report", content_hash }, { pseudonym: "Ada", intent: "Mine." });
    await grace.client.attest(
      { title: "A report", content_hash, tags: ["final"] },
      { pseudonym: "Grace", type: "peer_review" },
    );
    await grace.client.keys.revoke();
    const reader = await Reader.arrive();
    const page = await openWith(reader, path);
    const records = card(page, "Attestations in the log").locator(".record");
    await page.locator("main").getByText("Signature fits", { exact: true }).nth(1).waitFor();
    const [first, second] = await records.allInnerTexts();
    expect(first).toMatch(/Ada[\s\S]*authorship[\s\S]*Signature fits[\s\S]*Key active[\s\S]*Mine\./);
    expect(second).toMatch(/Grace[\s\S]*peer review[\s\S]*Signature fits[\s\S]*Key revoked/);
    await page.getByRole("img", { name: /^2 attestations from / }).waitFor();
    const marks = await page.locator(".time-line-mark").evaluateAll((all) => all.map(({ style }) => style.left));
    expect(marks).toEqual(["0%", "100%"]);
    for (const step of [
      "File",
      "Manifest",
      "Signature",
      "Attestation",
      "Log entry",
      "Place in the tree",
      "Signed tree head",
    ])
      expect(first).toContain(`${step}.`);
    expect(await records.locator(".check-bad").count()).toBe(0);
    const download = page.waitForEvent("download");
    await records.nth(1).getByRole("button", { name: "Save as .attestation.json" }).click();
    await (await download).saveAs(`${path}.attestation.json`);
    expect((await cairnlog(["verify", path, "--operator-key", operatorKey])).stdout).toContain("report.txt: verified");
    await reader.leave();
  });

  test("a manifest that says more than the log records leaves the signature open, and nothing else", async () => {
    const path = newFile("more.txt");
    const signer = newSigner();
    const manifest = { document: { title: "More", content_hash: hashOf(path), pages: 7 }, attestations: [] };
    const reply = await service.post("/attestations", submission(signer, manifest, { pseudonym: "Eve" }));
    expect(reply.status, reply.text).toBe(200);
    const reader = await Reader.arrive();
    const page = await openWith(reader, path);
    await page.getByText("Signature not shown").waitFor();
    expect(await page.locator(".record .check-bad strong").allInnerTexts()).toEqual(["Manifest.", "Signature."]);
    await reader.leave();
  });

  test("a signature that the log made up shows as one", async () => {
    const path = newFile("forged.txt");
    const { client } = newClient(service.url);
    await client.attest({ title: "Forged", content_hash: hashOf(path) }, { pseudonym: "Mallory" });
    const other = newSigner();
    const reader = await Reader.arrive();
    // The log shows another key under the signer's fingerprint.
    await reader.context.route("**/api/v1/keys/*", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), public_key: other.publicKey } });
    });
    const page = await openWith(reader, path);
    await page.getByText("Does not hold", { exact: true }).waitFor();
    await page.locator(".check-bad").getByText("The signer's fingerprint is not that of the public key.").waitFor();
    await reader.leave();
  });

  test("an attestation of another file that the log lists for this one shows as one", async () => {
    const [mine, other] = [newFile("mine-alone.txt"), newFile("others.txt")];
    const plain = newClient(service.url);
    await plain.client.attest({ title: "Other", content_hash: hashOf(other) }, { pseudonym: "Ada" });
    await plain.client.attest({ title: "Other", content_hash: hashOf(other), pages: 7 } as never);
    const reader = await Reader.arrive();
    await reader.context.route("**/api/v1/log/audit-trail?*", async (route) => {
      const url = route
        .request()
        .url()
        .replace(encodeURIComponent(hashOf(mine)), encodeURIComponent(hashOf(other)));
      await route.fulfill({ response: await route.fetch({ url }) });
    });
    const page = await openWith(reader, mine);
    await page.getByText("Does not hold", { exact: true }).nth(1).waitFor();
    const wrong = page.locator(".check-bad strong");
    for (const i of [0, 1])
      expect(await page.locator(".record").nth(i).locator(wrong).allInnerTexts()).toContain("File.");
    await reader.leave();
  });

  test("more than a page of them can be gone through", async () => {
    const path = newFile("often.txt");
    for (let i = 1; i <= 7; i++)
      await newClient(service.url).client.attest(
        { title: "Often", content_hash: hashOf(path) },
        { pseudonym: `Signer ${i}` },
      );
    const reader = await Reader.arrive();
    const page = await openWith(reader, path);
    await page.getByText("7 attestations", { exact: true }).waitFor();
    await page.locator("main").getByText("Signature fits", { exact: true }).nth(4).waitFor();
    await page.getByRole("button", { name: "Later" }).click();
    await page.getByRole("heading", { name: "Signer 7" }).waitFor();
    await page.locator("main").getByText("Signature fits", { exact: true }).nth(1).waitFor();
    expect(await page.locator(".record").count()).toBe(2);
    await reader.leave();
  });
});

describe("signing", () => {
  test("with a key that cannot leave the browser; the command accepts the receipt", async () => {
    const path = newFile("mine.txt");
    const reader = await Reader.arrive();
    const asked: string[] = [];
    await reader.context.exposeFunction("askedToKeep", () => asked.push("keep"));
    await reader.context.addInitScript(() => {
      navigator.storage.persist = async () => {
        await (globalThis as unknown as { askedToKeep(): Promise<void> }).askedToKeep();
        return true;
      };
    });
    const page = await openWith(reader, path);
    expect(asked).toEqual([]);
    await signInPage(page, path);
    // Otherwise the browser may remove the key when it needs the room.
    expect(asked).toEqual(["keep"]);
    const { code, stdout } = await cairnlog(["verify", path, "--operator-key", operatorKey]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("mine.txt: verified") });
    await card(page, "Attestations in the log").getByRole("heading", { name: "Grace" }).waitFor();
    expect(await page.getByRole("button", { name: "Export the private key" }).count()).toBe(0);
    await expectReadable(page);
    // The key is offered again for the next file, under its name in the log.
    await page.close();
    const next = newFile("mine-too.txt");
    const later = await openWith(reader, next);
    await later.getByText("The log knows this key as Grace.").waitFor();
    await later.getByRole("button", { name: "Sign and record" }).click();
    await later.getByRole("region", { name: "Your receipt" }).waitFor();
    await later.getByRole("button", { name: "Sign and record" }).click();
    await later.getByText("You have signed this before").waitFor();
    await reader.leave();
  });

  test("a key that the browser does not give, or does not delete, is not taken for one that it did", async () => {
    const path = newFile("kept-key.txt");
    const reader = await Reader.arrive();
    const page = await openWith(reader, path);
    page.on("dialog", (dialog) => void dialog.accept());
    await page.getByLabel("It can be exported").check();
    await page.getByRole("button", { name: "Make the key" }).click();
    await page.getByRole("button", { name: "Delete" }).waitFor();
    await page.evaluate(() => {
      const refuse = (): never => {
        throw new DOMException("It is locked.", "UnknownError");
      };
      IDBObjectStore.prototype.delete = refuse;
      crypto.subtle.exportKey = refuse;
    });
    for (const [name, what] of [
      ["Export the private key", "export"],
      ["Delete", "delete"],
    ] as const) {
      await page.getByRole("button", { name }).click();
      await page.getByText(`The browser did not ${what} the key: It is locked.`).waitFor();
    }
    await reader.leave();
  });

  test("with an exported key: the command signs with it, and the page accepts the command's receipt", async () => {
    const path = newFile("shared.txt");
    const reader = await Reader.arrive();
    const page = await openWith(reader, path);
    await signInPage(page, path, { exportable: true });
    page.on("dialog", (dialog) => dialog.accept());
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export the private key" }).click();
    const key = join(folder, "exported.pem");
    await (await download).saveAs(key);
    const { signer_key_fingerprint } = JSON.parse(readFileSync(`${path}.attestation.json`, "utf8")).attestation;
    const spki = createPublicKey(readFileSync(key)).export({ type: "spki", format: "der" });
    expect(`sha256:${createHash("sha256").update(spki).digest("hex")}`).toBe(signer_key_fingerprint);
    const other = newFile("by-command.txt");
    const signed = await cairnlog([
      "attest",
      other,
      "--key",
      key,
      "--server",
      service.url,
      "--operator-key",
      operatorKey,
    ]);
    expect(signed, signed.stderr).toMatchObject({ code: 0 });
    await choose(page, other, `${other}.attestation.json`);
    const receipt = card(page, "by-command.txt.attestation.json");
    await receipt.getByText("Holds", { exact: true }).waitFor();
    expect(await receipt.locator(".check-good").count()).toBe(8);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("There is no key in this browser yet.").waitFor();
    await reader.leave();
  });

  test("with a P-256 key if the browser has no Ed25519; the command accepts that receipt, too", async () => {
    const path = newFile("by-p256.txt");
    const reader = await Reader.arrive();
    await reader.context.addInitScript(() => {
      const { generateKey } = SubtleCrypto.prototype;
      SubtleCrypto.prototype.generateKey = function (
        this: SubtleCrypto,
        algorithm: { name: string },
        ...rest: unknown[]
      ) {
        if (algorithm.name === "Ed25519") return Promise.reject(new DOMException("not here", "NotSupportedError"));
        return generateKey.call(this, algorithm as never, ...(rest as [never, never]));
      } as never;
    });
    const page = await openWith(reader, path);
    await signInPage(page, path);
    await page.getByText("ecdsa-p256", { exact: true }).waitFor();
    expect((await cairnlog(["verify", path, "--operator-key", operatorKey])).code).toBe(0);
    await reader.leave();
  });

  test("is not offered where the browser has no keys to give; everything else is checked all the same", async () => {
    const path = newFile("insecure.txt");
    const { client } = newClient(service.url);
    await client.attest({ title: "Insecure", content_hash: hashOf(path) }, { pseudonym: "Ada" });
    const reader = await Reader.arrive();
    await reader.context.addInitScript(() => Object.defineProperty(crypto, "subtle", { value: undefined }));
    const page = await openWith(reader, path);
    await page.getByText("This browser cannot sign here.").waitFor();
    await page.locator("main").getByText("Signature fits", { exact: true }).waitFor();
    await reader.leave();
  });

  test("a refusal by the service is shown, and can be tried again", async () => {
    const limited = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_GENERAL: "10000" });
    const path = newFile("refused.txt");
    const reader = await Reader.arrive();
    const page = await reader.open(limited.url, "#/file");
    await choose(page, path);
    await page.getByRole("button", { name: "Make the key" }).click();
    await page.getByLabel("Your name in the log").fill("a\u0007b");
    await page.getByRole("button", { name: "Sign and record" }).click();
    await page.getByText("That did not work").waitFor();
    await page.getByLabel("Your name in the log").fill("Grace");
    await page.getByRole("button", { name: "Sign and record" }).click();
    await page.getByRole("region", { name: "Your receipt" }).waitFor();
    await reader.leave();
  });
});

describe("an .attestation.json", () => {
  let path: string;
  let bundle: { tree_head: { signature: string }; manifest: { document: { title: string } } };
  beforeAll(async () => {
    path = newFile("kept.txt");
    const { client } = newClient(service.url);
    ({ bundle } = await client.attest({ title: "Kept", content_hash: hashOf(path) }, { pseudonym: "Ada" }));
    writeFileSync(`${path}.attestation.json`, JSON.stringify(bundle));
  });

  test("may come before its file, and is judged by it", async () => {
    const reader = await Reader.arrive();
    const page = await openWith(reader, `${path}.attestation.json`);
    await page.getByText("Now drop or choose the file that was signed.").waitFor();
    await choose(page, path);
    await card(page, "kept.txt.attestation.json").getByText("Holds", { exact: true }).waitFor();
    await choose(page, newFile("another.txt"), `${path}.attestation.json`);
    await page.locator(".check-bad").getByText("The file is not the one that was attested").waitFor();
    await reader.leave();
  });

  test("is known by its name, also by that which a browser gives to a second copy", async () => {
    const names = [
      "attestation.json",
      "attestation.1.json",
      "attestation (1).json",
      "attestation(1).json",
      "attestation-1.json",
    ];
    const reader = await Reader.arrive();
    for (const name of names) {
      // The order in which files are chosen says nothing.
      const page = await openWith(reader, newFile(`copy.${name}`, JSON.stringify(bundle)), path);
      await page.getByText("Hashing the file").waitFor({ state: "detached" });
      await card(page, `copy.${name}`).or(page.getByText("nobody has signed this file")).first().waitFor();
      expect(await page.getByText("nobody has signed this file").count(), name).toBe(0);
      await card(page, `copy.${name}`).getByText("Holds", { exact: true }).waitFor();
      await page.close();
    }
    await reader.leave();
  });

  test("that was changed is not verified, with the reason; other files are refused", async () => {
    const changed = newFile(
      "changed.attestation.json",
      JSON.stringify({
        ...bundle,
        manifest: { ...bundle.manifest, document: { ...bundle.manifest.document, title: "Kept!" } },
      }),
    );
    const reader = await Reader.arrive();
    const page = await openWith(reader, path, changed);
    await card(page, "changed.attestation.json").getByText("Does not hold", { exact: true }).waitFor();
    await page
      .locator(".check-bad")
      .getByText("The signature does not verify over the manifest with this public key.")
      .waitFor();
    await choose(page, newFile("none.attestation.json", '{"a":1,"a":2}'));
    await card(page, "none.attestation.json").getByText("Does not hold", { exact: true }).waitFor();
    await reader.leave();
  });

  test("whose entry is withheld is withheld, as the operator's entry in it says, and neither holds nor fails", async () => {
    const taken = newFile("taken.txt");
    const { client } = newClient(service.url);
    const { bundle, receipt } = await client.attest({ title: "Zwetschgenkuchen", content_hash: hashOf(taken) });
    const said = { reason: "An order of a court.", basis: null };
    const { log_entry_id } = await withhold(service.server.registry, receipt.log_entry_id, said);
    const [{ entry, proof, head: tree_head }, by] = [
      await client.log.entry(receipt.log_entry_id),
      await client.log.entry(log_entry_id),
    ];
    const { leaf_index, audit_path } = by.proof;
    const withholding = { entry: by.entry, leaf_index, audit_path };
    const kept = newFile(
      "taken.txt.attestation.json",
      JSON.stringify({ ...bundle, entry, proof, tree_head, withholding }),
    );
    const reader = await Reader.arrive();
    const page = await openWith(reader, taken, kept);
    const shown = card(page, "taken.txt.attestation.json");
    await shown.getByText("Withheld", { exact: true }).first().waitFor();
    const sentence = `The operator withholds this, as entry ${log_entry_id} says: An order of a court.`;
    await page.locator(".verdict-open").getByText(sentence).waitFor();
    expect(await shown.locator(".check-bad").count()).toBe(0);
    await choose(page, newFile("other.txt"), kept);
    await shown.getByText("Does not hold", { exact: true }).waitFor();
    await reader.leave();
  });
});

test("it fits every screen and every reader", async () => {
  const path = newFile("a-file-whose-name-is-rather-long-and-has-no-space-anywhere-in-it.tar.gz");
  const { client } = newClient(service.url);
  const { bundle } = await client.attest(
    { title: "A title without any space:".concat("x".repeat(80)), content_hash: hashOf(path) },
    { pseudonym: "y".repeat(120) },
  );
  const receipt = newFile("receipt.attestation.json", canonical(bundle));
  for (const options of [
    { colorScheme: "light", viewport: DESKTOP },
    { colorScheme: "dark", viewport: TELEPHONE },
  ] as const) {
    const reader = await Reader.arrive(options);
    const page = await reader.open(service.url, "#/file");
    await page.getByRole("heading", { name: "Check or sign a file" }).waitFor();
    await expectReadable(page);
    await choose(page, path, receipt);
    await card(page, "Attestations in the log").getByText("Signature fits", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Make the key" }).click();
    await page.getByRole("button", { name: "Sign and record" }).waitFor();
    await expectReadable(page);
    await reader.leave();
  }
});
