/** Standard input that answers "nothing yet", as the one that `npx` hands on does. */
import fs, { writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { generatePrivateKey, privateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { scratchFolder } from "../service.js";
import { cairnlog } from "./harness.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

const { readSync } = fs;

/** Has standard input hold these pieces; before each of them, and before its end, there is nothing yet. */
function arrive(...pieces: readonly string[]): void {
  const answers = [...pieces, ""].flatMap((piece) => [null, piece]);
  vi.spyOn(fs, "readSync").mockImplementation(((fd: number, into: Buffer, ...more: []) => {
    if (fd !== 0) return readSync(fd, into, ...more);
    const answer = answers.shift();
    if (answer === null) throw Object.assign(new Error("nothing yet"), { code: "EAGAIN", syscall: "read" });
    return into.write(answer!);
  }) as typeof readSync);
  syncBuiltinESMExports();
}

test("a passphrase, a claim's plaintext and a claim are waited for, to their ends", async () => {
  const [key, claim, reader, shared] = ["key.pem", "claim.json", "reader.pem", "shared"].map((name) =>
    join(scratch.path, name),
  ) as [string, string, string, string];
  arrive("correct horse", " battery\n");
  expect(await cairnlog(["keygen", "--out", key, "--passphrase-file", "-"])).toMatchObject({ code: 0, stderr: "" });
  privateKey(fs.readFileSync(key, "utf8"), "correct horse battery");

  const pem = generatePrivateKey("ecdsa-p256");
  writeFileSync(reader, pem);
  writeFileSync(`${reader}.pub`, privateKey(pem).public.pem);
  writeFileSync(shared, "a secret that both have");
  const to = ["--to", `${reader}.pub`, "--lookup-secret", shared];
  arrive('{"salary":', "1}");
  expect(await cairnlog(["claim", "encrypt", ...to, "--out", claim])).toMatchObject({ code: 0 });
  const text = fs.readFileSync(claim, "utf8");
  arrive(text.slice(0, 100), text.slice(100));
  expect(await cairnlog(["claim", "decrypt", "-", "--key", reader, "--out", `${claim}.open`])).toMatchObject({
    code: 0,
  });
  expect(JSON.parse(fs.readFileSync(`${claim}.open`, "utf8"))).toEqual({ salary: 1 });
  arrive("\u0000any", "bytes");
  expect(await cairnlog(["claim", "encrypt", ...to, "--bytes", "--out", `${claim}.bytes`])).toMatchObject({ code: 0 });
});
