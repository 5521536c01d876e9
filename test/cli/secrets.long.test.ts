/** Encrypted key files and passwords: read from files, or asked for on a terminal. */
import { execFile, spawn } from "node:child_process";
import { createPrivateKey } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encryptPrivateKey, isEncryptedKey } from "#cairnlog/engine/crypto/keys/encrypted-key.js";
import { privateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { startTestService, type TestService } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { MAIN, scratchFolder } from "../service.js";
import { cairnlog, pin } from "./harness.js";

const folder = scratchFolder();
const at = (name: string) => join(folder.path, name);
const openssl = async (...args: string[]) => (await promisify(execFile)("openssl", args)).stdout;
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
  await pin(service.url, at("state"));
  writeFileSync(at("passphrase"), "correct horse\n");
  writeFileSync(at("wrong"), "wrong horse\n");
});
afterAll(() => folder.remove());

const run = (...args: string[]) => cairnlog([...args, "--server", service.url, "--state", at("state")]);

/** Runs the command on a terminal of its own. `typed` is entered after each `question`. */
function onTerminal(args: readonly string[], typed: readonly [question: string, answer: string][]): Promise<string> {
  const line = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["-qec", line, "/dev/null"], { stdio: ["pipe", "pipe", "inherit"] });
  const left = [...typed];
  let seen = "";
  child.stdout.on("data", (chunk: Buffer) => {
    seen += chunk.toString();
    const [next] = left;
    if (!next || !seen.includes(next[0])) return;
    left.shift();
    child.stdin.write(`${next[1]}\r`);
  });
  return new Promise((resolve) => child.once("close", (code) => resolve(`${seen}\n[${code}]`)));
}

describe("an encrypted private key", () => {
  test.each(["ed25519", "ecdsa-p256", "rsa-2048"] as const)(
    "of %s is one that OpenSSL reads, too",
    async (algorithm) => {
      const signer = newSigner(algorithm);
      const pem = encryptPrivateKey(signer.privateKey, "correct horse");
      expect(isEncryptedKey(pem)).toBe(true);
      expect(isEncryptedKey(signer.privateKey)).toBe(false);
      expect(privateKey(pem, "correct horse").public.fingerprint).toBe(signer.fingerprint);
      expect(() => privateKey(pem, "wrong horse")).toThrow(expect.objectContaining({ code: "invalid-key" }));
      expect(encryptPrivateKey(signer.privateKey, "correct horse")).not.toBe(pem);
      writeFileSync(at(`${algorithm}.pem`), pem);
      expect(await openssl("pkey", "-in", at(`${algorithm}.pem`), "-passin", "pass:correct horse", "-pubout")).toBe(
        signer.publicKey,
      );
    },
  );

  test.each([
    ["ecdsa-p256", "sec1"],
    ["rsa-2048", "pkcs1"],
  ] as const)("of %s may be of the older form that names its cipher in a header (%s)", async (algorithm, type) => {
    const { privateKey: pem } = newSigner(algorithm);
    const encryption = { cipher: "aes-128-cbc", passphrase: "correct horse" };
    writeFileSync(at(`${type}.pem`), createPrivateKey(pem).export({ type, format: "pem", ...encryption }));
    const register = (...args: string[]) => run("register", "--key", at(`${type}.pem`), "--pseudonym", "Ada", ...args);
    expect((await register("--passphrase-file", at("wrong"))).stderr).toContain("The passphrase does not open");
    expect(await register("--passphrase-file", at("passphrase"))).toMatchObject({ code: 0, stderr: "" });
  });

  test("is one that costs scrypt to try", async () => {
    writeFileSync(at("outline.pem"), encryptPrivateKey(newSigner().privateKey, "correct horse"));
    const outline = await openssl("asn1parse", "-in", at("outline.pem"));
    expect(outline).toMatch(/PBES2[\s\S]*1\.3\.6\.1\.4\.1\.11591\.4\.11|scrypt/i);
    expect(outline).toMatch(/:4000[\s\S]*:08[\s\S]*:05[\s\S]*aes-256-cbc/);
  });

  test("is made by keygen on request, and accepted by every command with a passphrase from a file", async () => {
    const key = at("me.pem");
    const made = await cairnlog(["keygen", "--out", key, "--passphrase-file", at("passphrase")]);
    expect(made).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(key, "utf8")).toContain("BEGIN ENCRYPTED PRIVATE KEY");
    expect(statSync(key).mode & 0o777).toBe(0o600);
    const registered = await run("register", "--key", key, "--pseudonym", "Ada", "--passphrase-file", at("passphrase"));
    expect(registered).toMatchObject({ code: 0, stderr: "" });
    const env = { CAIRNLOG_PASSPHRASE_FILE: at("passphrase") };
    writeFileSync(at("report.txt"), "A report");
    const args = ["--server", service.url, "--state", at("state"), "--key", key];
    expect(await cairnlog(["attest", at("report.txt"), ...args], env)).toMatchObject({ code: 0, stderr: "" });
    const next = at("next.pem");
    await cairnlog(["keygen", "--out", next, "--passphrase-file", at("wrong")]);
    const succeeded = await run(
      ...["succeed", "--key", key, "--passphrase-file", at("passphrase")],
      ...["--new-key", next, "--new-passphrase-file", at("wrong")],
    );
    expect(succeeded).toMatchObject({ code: 0, stderr: "" });
  });

  test("takes its passphrase from standard input", async () => {
    const key = at("piped.pem");
    const child = spawn(process.execPath, [MAIN, "keygen", "--out", key, "--passphrase-file", "-"], {
      stdio: ["pipe", "ignore", "inherit"],
    });
    child.stdin.end("correct horse\r\n");
    const code = await new Promise((resolve) => child.once("close", resolve));
    expect(code).toBe(0);
    expect(privateKey(readFileSync(key, "utf8"), "correct horse").public.algorithm).toBe("ed25519");
  });

  test("opens for no other passphrase, and does not ask without a terminal", async () => {
    const key = at("shut.pem");
    await cairnlog(["keygen", "--out", key, "--passphrase-file", at("passphrase")]);
    expect(await run("login", "--key", key, "--passphrase-file", at("wrong"))).toEqual({
      code: 1,
      stdout: "",
      stderr: `cairnlog: The passphrase does not open ${key}.\n`,
    });
    const unasked = await run("login", "--key", key);
    expect(unasked).toMatchObject({ code: 2, stdout: "" });
    expect(unasked.stderr).toContain(`${key} is encrypted: give --passphrase-file`);
    expect(await cairnlog(["keygen", "--out", at("none.pem"), "--passphrase"])).toMatchObject({ code: 2, stdout: "" });
    writeFileSync(at("empty"), "\n");
    const empty = await cairnlog(["keygen", "--out", at("none.pem"), "--passphrase-file", at("empty")]);
    expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining("is empty") });
    expect(() => statSync(at("none.pem"))).toThrow();
  });

  test("is made and opened with a passphrase that is typed and not shown", async () => {
    const key = at("typed.pem");
    const made = await onTerminal(
      ["keygen", "--out", key, "--passphrase"],
      [
        ["Passphrase for", "open sesame"],
        ["The same again", "open sesame"],
      ],
    );
    expect(made).toContain("[0]");
    const register = ["register", "--key", key, "--pseudonym", "Eve", "--server", service.url, "--state", at("state")];
    const opened = await onTerminal(register, [["Passphrase of", "open sesame"]]);
    expect(opened).toMatch(/\(Eve\): entry \d+[\s\S]*\[0\]/);
    expect(made + opened).not.toContain("sesame");
    const differing = await onTerminal(
      ["keygen", "--out", at("other.pem"), "--passphrase"],
      [
        ["Passphrase for", "open sesame"],
        ["The same again", "open says me"],
      ],
    );
    expect(differing).toMatch(/the two passphrases differ; nothing was written[\s\S]*\[2\]/);
    for (const [typed, sentence] of [
      ["\x03", "interrupted"],
      ["\x04", "no passphrase was given"],
    ] as const) {
      const left = await onTerminal(["keygen", "--out", at("other.pem"), "--passphrase"], [["Passphrase for", typed]]);
      expect(left).toContain(`cairnlog: ${sentence}`);
      expect(left).toContain("[2]");
    }
    expect(() => statSync(at("other.pem"))).toThrow();
  });
});

test("a password is set and changed, and attest and login give it", async () => {
  const key = at("with-password.pem");
  await cairnlog(["keygen", "--out", key]);
  await run("register", "--key", key, "--pseudonym", "Grace");
  const set = await run("password", "set", "--key", key, "--password-file", at("passphrase"));
  expect(set).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sha256:\w+ has a new password\n$/) });
  const change = ["password", "set", "--key", key, "--password-file", at("wrong"), "--json"];
  expect(await run(...change)).toMatchObject({ code: 1, stdout: "" });
  const changed = await run(...change, "--current-password-file", at("passphrase"));
  expect(JSON.parse(changed.stdout)).toMatchObject({ password_set: true });
  writeFileSync(at("letter.txt"), "A letter");
  const attest = ["attest", at("letter.txt"), "--key", key];
  expect(await run(...attest)).toMatchObject({ code: 1, stderr: expect.stringMatching(/password/) });
  expect(await run(...attest, "--password-file", at("wrong"))).toMatchObject({ code: 0, stderr: "" });
  expect(await run("login", "--key", key, "--password-file", at("wrong"))).toMatchObject({ code: 0 });
});
