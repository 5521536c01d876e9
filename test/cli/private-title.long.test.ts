/** `cairnlog attest --private-title`: the log has a salted hash, and whoever has the receipt the words. */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startTestService } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { scratchFolder } from "../service.js";
import { cairnlog } from "./harness.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());

/** RFC 8785 of an object with two texts. */
const hashOf = ({ title, salt }: { title: string; salt: string }) =>
  `sha256:${createHash("sha256")
    .update(`{"salt":${JSON.stringify(salt)},"title":${JSON.stringify(title)}}`)
    .digest("hex")}`;

test("the words and the salt are in the receipts alone, each file with its own, and are checked and shown", async () => {
  const service = await startTestService();
  const key = join(scratch.path, "key.pem");
  writeFileSync(key, newSigner().privateKey, { mode: 0o600 });
  const operatorKey = join(scratch.path, "operator.pub.pem");
  writeFileSync(operatorKey, (await service.get("/log/operator-key")).body.public_key);
  const folder = join(scratch.path, "papers");
  mkdirSync(folder);
  const names = ["Zwetschgenkuchen.txt", "Quittengelee.txt"];
  for (const name of names) writeFileSync(join(folder, name), "the same in both");
  const more = ["--key", key, "--server", service.url, "--state", join(scratch.path, "state")];
  const attest = (...args: string[]) => cairnlog(["attest", ...args, "--private-title", ...more]);
  const listed = await attest(folder, "--dry-run");
  expect(listed).toMatchObject({ code: 0, stderr: expect.stringContaining("The hashes of these 2 files would") });
  const done = await attest(folder);
  expect(done, done.stderr).toMatchObject({ code: 0 });
  const size = await service.entryCount();

  const read = (name: string) => JSON.parse(readFileSync(join(folder, `${name}.attestation.json`), "utf8"));
  const receipts = names.map(read);
  for (const [i, { private_title, manifest, entry }] of receipts.entries()) {
    expect(private_title).toEqual({ title: names[i], salt: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/) });
    expect(manifest.document.title).toBe(hashOf(private_title));
    expect(entry.payload.document_title).toBe(hashOf(private_title));
  }
  expect(receipts[0].private_title.salt).not.toBe(receipts[1].private_title.salt);
  const shown = (await service.get("/log?per_page=100")).text;
  for (const secret of ["kuchen", "gelee", ...receipts.map(({ private_title }) => private_title.salt)])
    expect(shown).not.toContain(secret);

  // The salt is used again, so a second run attests nothing.
  expect(await attest(folder)).toMatchObject({ code: 0 });
  expect(await service.entryCount()).toBe(size);

  const file = join(folder, names[0]!);
  const verify = (...args: string[]) => cairnlog(["verify", file, "--operator-key", operatorKey, ...args]);
  expect(await verify()).toMatchObject({ code: 0, stdout: expect.stringContaining(`${names[0]} (private:`) });
  expect(JSON.parse((await verify("--json")).stdout)).toMatchObject({ valid: true, private_title: names[0] });
  for (const lie of [{ title: "Another" }, { salt: "AAAA" }, { title: "" }]) {
    const changed = { ...receipts[0], private_title: { ...receipts[0].private_title, ...lie } };
    writeFileSync(`${file}.attestation.json`, JSON.stringify(changed));
    const refused = await verify();
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining("The private title is another one") });
    expect(refused.stdout).not.toContain("(private:");
  }
  // Without the words it holds, and says nothing of them.
  const { private_title: _, ...bare } = receipts[0];
  writeFileSync(`${file}.attestation.json`, JSON.stringify(bare));
  expect(await verify()).toMatchObject({ code: 0 });

  const named = join(scratch.path, "one.txt");
  writeFileSync(named, "one");
  expect(await attest(named, "--title", "Sauerampfer")).toMatchObject({ code: 0 });
  const one = JSON.parse(readFileSync(`${named}.attestation.json`, "utf8"));
  expect(one.private_title.title).toBe("Sauerampfer");
  expect(one.entry.payload.document_title).toBe(hashOf(one.private_title));
  expect(await attest(named, "--manifest")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--private-title"),
  });
});
