/** Claims with the command alone: from a plaintext to a payload and back, and checking the commitment. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encryptPrivateKey } from "#cairnlog/engine/crypto/keys/encrypted-key.js";
import { COMMANDS } from "#cairnlog/server/cli/commands.js";
import { temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { MAIN } from "../service.js";
import { jcs, newRecipient, open, seal } from "../verify/claims/ecies.js";
import { sha256 } from "../verify/keys/keys.js";
import { cairnlog } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
const recipient = newRecipient();
const plaintext = { salary: 52000, name: "Zoë 🪨" };
const file = (name: string, content: string | Uint8Array | object) => {
  const isText = typeof content === "string" || content instanceof Uint8Array;
  writeFileSync(at(name), isText ? content : JSON.stringify(content));
  return at(name);
};

beforeAll(async () => {
  file("bob.pub.pem", recipient.publicKey);
  file("bob.pem", recipient.privateKey);
  file("eve.pem", newRecipient().privateKey);
  file("plain.json", plaintext);
  file("secret.bin", Buffer.alloc(32, 7));
  const run = await claim("encrypt", "--in", at("plain.json"), "--key-out", at("claim.key"), "--out", at("claim.json"));
  expect(run).toEqual({ code: 0, stdout: "", stderr: "" });
});

/** Encrypts to Bob under the shared secret, with the given options. */
function claim(action: string, ...args: string[]) {
  const own = action === "encrypt" ? ["--to", at("bob.pub.pem"), "--lookup-secret", at("secret.bin")] : [];
  return cairnlog(["claim", action, ...own, ...args]);
}

async function withInput(input: string | Uint8Array, ...args: string[]) {
  const child = spawn(process.execPath, [MAIN, "claim", ...args], { stdio: ["pipe", "pipe", "ignore"] });
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString("utf8");
  });
  child.stdin.end(input);
  const [code] = (await once(child, "close")) as [number];
  return { code, stdout };
}

describe("claim encrypt", () => {
  test("writes a payload that a second implementation opens, and a key that its owner alone may read", () => {
    const payload = JSON.parse(readFileSync(at("claim.json"), "utf8"));
    const opened = open(payload, recipient);
    expect(opened.plaintext).toEqual(plaintext);
    expect(readFileSync(at("claim.key"), "utf8")).toBe(`${opened.commitmentKey}\n`);
    for (const written of ["claim.key", "claim.json"]) expect(statSync(at(written)).mode & 0o777).toBe(0o600);
    expect(payload).not.toHaveProperty("recipient_fingerprint");
  });

  test("reads standard input, prints one line of JSON, and posts the claim with the given options", async () => {
    const to = ["--to", at("bob.pub.pem"), "--json", "--name-recipient"];
    const given = await withInput(JSON.stringify(plaintext), "encrypt", ...to, "--lookup-key", "ab".repeat(16));
    expect(given.code).toBe(0);
    expect(given.stdout.trim().split("\n")).toHaveLength(1);
    const payload = JSON.parse(given.stdout);
    expect(payload).toMatchObject({ lookup_key: "ab".repeat(16), recipient_fingerprint: recipient.fingerprint });
    expect(open(payload, recipient).plaintext).toEqual(plaintext);
  });

  test("derives one lookup key from one secret and context", async () => {
    const keyOf = async (...args: string[]) =>
      JSON.parse((await claim("encrypt", "--in", at("plain.json"), "--json", ...args)).stdout).lookup_key;
    expect(await keyOf()).toBe(await keyOf());
    expect(await keyOf("--lookup-context", "2025")).not.toBe(await keyOf());
    // Without a context it is the empty one.
    expect(await keyOf("--lookup-context", "")).toBe(await keyOf());
  });

  test("says that nobody keeps the commitment key, and never writes over one", async () => {
    expect((await claim("encrypt", "--in", at("plain.json"))).stderr).toMatch(/was not kept \(--key-out\)/);
    const again = await claim("encrypt", "--in", at("plain.json"), "--key-out", at("claim.key"));
    expect(again).toMatchObject({ code: 2, stdout: "" });
    expect(again.stderr).toMatch(/exists already/);
  });

  test.each([
    ["an array", "[1]", /must hold a JSON object/],
    ["no JSON", "{", /Malformed JSON/],
    ["no UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), /must hold a JSON object in UTF-8/],
    ["one member twice", '{"a":1,"a":2}', /cairnlog: /],
    ["too much", JSON.stringify({ text: "é".repeat(131_072) }), /262155 bytes .* at most 262128 fit/],
  ])("refuses a plaintext that is %s: exit 1 and a sentence", async (_, content, reason) => {
    const run = await claim("encrypt", "--in", file("bad.json", content));
    expect(run).toMatchObject({ code: 1, stdout: "" });
    expect(run.stderr).toMatch(reason);
    expect(run.stderr).not.toMatch(/\bat .*\.js/);
  });

  test("refuses recipients without a P-256 key, and short secrets", async () => {
    await cairnlog(["keygen", "--out", at("ed.pem")]);
    const { stderr } = await claim("encrypt", "--in", at("plain.json"), "--to", at("ed.pem"));
    expect(stderr).toMatch(/holds a private key; the public key is needed here .*Nothing was sent/);
    const short = await claim("encrypt", "--in", at("plain.json"), "--lookup-secret", file("short.bin", "hunter2"));
    expect(short).toMatchObject({ code: 1 });
    expect(short.stderr).toMatch(/at least 16 bytes/);
  });
});

describe("claim decrypt", () => {
  test("gives the plaintext and the commitment key back, from a payload or an entry", async () => {
    const run = await claim("decrypt", at("claim.json"), "--key", at("bob.pem"), "--key-out", at("derived.key"));
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(run.stdout)).toEqual(plaintext);
    expect(run.stdout).toBe(`${JSON.stringify(JSON.parse(run.stdout), null, 2)}\n`);
    expect(readFileSync(at("derived.key"), "utf8")).toBe(readFileSync(at("claim.key"), "utf8"));
    const entry = { id: 7, event_type: "encrypted_claim", payload: JSON.parse(readFileSync(at("claim.json"), "utf8")) };
    const read = await withInput(JSON.stringify(entry), "decrypt", "-", "--key", at("bob.pem"), "--json");
    expect(read).toEqual({ code: 0, stdout: `${jcs(plaintext)}\n` });
  });

  test("decrypts a claim that a second implementation encrypted", async () => {
    const { payload } = seal(plaintext, recipient.point);
    const run = await claim("decrypt", file("theirs.json", payload), "--key", at("bob.pem"));
    expect(JSON.parse(run.stdout)).toEqual(plaintext);
  });

  test("carries any bytes there and back", async () => {
    const bytes = Buffer.from([0, 1, 254, 255, 10]);
    await claim("encrypt", "--bytes", "--in", file("any.bin", bytes), "--out", at("bytes.json"));
    const run = await claim("decrypt", at("bytes.json"), "--key", at("bob.pem"), "--bytes", "--out", at("back.bin"));
    expect(run.code).toBe(0);
    expect(readFileSync(at("back.bin"))).toEqual(bytes);
    const asObject = await claim("decrypt", at("bytes.json"), "--key", at("bob.pem"));
    expect(JSON.parse(asObject.stdout)).toEqual({ data: bytes.toString("base64") });
    const none = await claim("decrypt", at("claim.json"), "--key", at("bob.pem"), "--bytes");
    const sentence = "The claim holds no bytes but an object; leave --bytes out.";
    expect(none).toEqual({ code: 1, stdout: "", stderr: `cairnlog: ${sentence}\n` });
    expect(await claim("check", at("bytes.json"), "--bytes", "--in", at("any.bin"), "--key", at("bob.pem"))).toEqual({
      code: 0,
      stdout: "The claim commits to this plaintext (hmac-sha256-ecdh-v1).\n",
      stderr: "",
    });
  });

  test("writes a commitment key over no other file, and nothing else then", async () => {
    file("kept.key", "kept");
    const run = await claim("decrypt", at("claim.json"), "--key", at("bob.pem"), "--key-out", at("kept.key"));
    expect(run).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("kept.key exists already;") });
    expect(readFileSync(at("kept.key"), "utf8")).toBe("kept");
  });

  test("refuses a key of another algorithm, and names it", async () => {
    const key = file("ed25519.pem", newSigner().privateKey);
    const sentence = "Claims are encrypted to P-256 keys; this one is ed25519.";
    expect(await claim("decrypt", at("claim.json"), "--key", key)).toEqual({
      code: 1,
      stdout: "",
      stderr: `cairnlog: ${sentence}\n`,
    });
    const { run } = await COMMANDS.claim!.load();
    const decrypt = async (path: string, values: object) => run([path], values as never, "decrypt");
    await expect(decrypt(at("claim.json"), { key })).rejects.toMatchObject({ code: "invalid-key" });
    const bytes = { key: at("bob.pem"), bytes: true };
    await expect(decrypt(at("claim.json"), bytes)).rejects.toMatchObject({ code: "invalid-input" });
    await expect(decrypt(file("array.json", "[]"), { key: at("bob.pem") })).rejects.toMatchObject({
      code: "invalid-input",
      message: `${at("array.json")} must hold a JSON object in UTF-8.`,
    });
  });

  test("exits 1 with a sentence for another key and for a changed claim", async () => {
    const payload = JSON.parse(readFileSync(at("claim.json"), "utf8"));
    const changed = file("changed.json", { ...payload, lookup_key: "f".repeat(64) });
    for (const [path, key] of [
      [at("claim.json"), "eve.pem"],
      [changed, "bob.pem"],
    ] as const) {
      const run = await claim("decrypt", path, "--key", at(key));
      expect(run).toMatchObject({ code: 1, stdout: "" });
      expect(run.stderr).toMatch(/^cairnlog: The claim was encrypted to another key, or it was changed\.\n$/);
    }
  });
});

describe("claim check", () => {
  const check = (...args: string[]) => claim("check", at("claim.json"), ...args);

  test("recomputes the commitment from the kept key, or with the recipient's", async () => {
    for (const key of [
      ["--commitment-key", at("claim.key")],
      ["--key", at("bob.pem")],
    ]) {
      const run = await check("--in", at("plain.json"), ...key);
      expect(run).toMatchObject({ code: 0, stderr: "" });
      expect(run.stdout).toMatch(/commits to this plaintext/);
      const other = await check("--in", file("other.json", { ...plaintext, salary: 1 }), ...key, "--json");
      expect(other.code).toBe(1);
      expect(JSON.parse(other.stdout)).toEqual({ valid: false, commitment_alg: "hmac-sha256-ecdh-v1" });
    }
    const derived = await check("--in", at("plain.json"), "--key", at("eve.pem"));
    expect(derived).toMatchObject({ code: 1 });
    const piped = await withInput(jcs(plaintext), "check", at("claim.json"), "--commitment-key", at("claim.key"));
    expect(piped.code).toBe(0);
  });

  test("opens the recipient's key with its passphrase", async () => {
    const key = file("locked.pem", encryptPrivateKey(recipient.privateKey, "hunter2"));
    const opened = ["--key", key, "--passphrase-file", file("passphrase", "hunter2")];
    expect(await check("--in", at("plain.json"), ...opened)).toMatchObject({ code: 0, stderr: "" });
    expect(await claim("decrypt", at("claim.json"), ...opened, "--json")).toMatchObject({ code: 0, stderr: "" });
  });

  test("needs no key for a pre-upgrade entry", async () => {
    const payload = { ciphertext: "AAAA", commitment: sha256(jcs(plaintext)) };
    const old = file("old.json", { id: 3, payload });
    const run = await claim("check", old, "--in", at("plain.json"), "--json");
    expect(run.code).toBe(0);
    expect(JSON.parse(run.stdout)).toEqual({ valid: true, commitment_alg: "sha256" });
    expect(await claim("check", old, "--in", at("other.json"))).toEqual({
      code: 1,
      stdout: "The claim does NOT commit to this plaintext, or the key is another claim's.\n",
      stderr: "",
    });
    // A key is no harm.
    expect(await claim("check", old, "--in", at("plain.json"), "--key", at("bob.pem"))).toEqual({
      code: 0,
      stdout: "The claim commits to this plaintext (sha256).\n",
      stderr: "",
    });
    const piped = await withInput(JSON.stringify({ payload }), "check", "-", "--in", at("plain.json"));
    expect(piped).toEqual({ code: 0, stdout: "The claim commits to this plaintext (sha256).\n" });
  });

  test("exits 1 for a commitment that it cannot judge or a key that is none", async () => {
    const strange = file("strange.json", { commitment: "00".repeat(32), commitment_alg: "md5" });
    expect(await claim("check", strange, "--in", at("plain.json"))).toMatchObject({ code: 1 });
    const run = await check("--in", at("plain.json"), "--commitment-key", file("bad.key", "abc"));
    expect(run).toMatchObject({ code: 1 });
    expect(run.stderr).toMatch(/64 hexadecimal characters/);
  });
});

describe("a command that is not understood", () => {
  const home = process.cwd();
  beforeAll(() => process.chdir(folder));
  afterAll(() => process.chdir(home));

  test.each([
    [[]],
    [["reveal"]],
    [["constructor"]],
    [["encrypt"]],
    [["encrypt", "--to", "x"]],
    [["encrypt", "--to", "x", "--lookup-key", "a", "--lookup-secret", "b"]],
    [["decrypt", "claim.json"]],
    [["decrypt", "--key", "bob.pem"]],
    [["decrypt", "claim.json", "claim.json", "--key", "bob.pem"]],
    [["check", "claim.json", "--in", "plain.json"]],
    [["check", "-", "--in", "-", "--key", "x"]],
    [["check", "a", "--key", "x", "--commitment-key", "y"]],
    [["check", "--no-such-option"]],
  ])("%j: exit 2 and where to look", async (args) => {
    const run = await cairnlog(["claim", ...args]);
    expect(run).toMatchObject({ code: 2, stdout: "" });
    expect(run.stderr).toMatch(/Try: cairnlog claim (?:\w+ )?--help/);
  });

  test.each([
    [["reveal"], "say what to do: encrypt, decrypt, check"],
    [["encrypt"], "--to is missing"],
    [["encrypt", "--to", "x"], "give either --lookup-key or --lookup-secret"],
    [["decrypt", "claim.json"], "--key is missing"],
    [["decrypt", "--key", "bob.pem"], "name one CLAIM.json"],
    [["check", "claim.json", "--in", "plain.json"], "this claim's commitment is keyed: give --commitment-key or --key"],
    [["check", "-", "--in", "-", "--key", "x"], "standard input cannot be both the claim and the plaintext"],
    [["check", "a", "--key", "x", "--commitment-key", "y"], "give either --commitment-key or --key"],
  ])("%j: %s", async (args, sentence) => {
    expect((await cairnlog(["claim", ...args])).stderr.startsWith(`cairnlog: ${sentence}`)).toBe(true);
  });

  test("--help has the examples, and the overview the command", async () => {
    const { code, stdout } = await cairnlog(["claim", "encrypt", "--help"]);
    expect(code).toBe(0);
    for (const part of ["Example:", "Exit codes:", "--key-out", "--lookup-secret"]) expect(stdout).toContain(part);
    expect((await cairnlog(["--help"])).stdout).toMatch(/^ {2}claim +encrypt, decrypt, check, post and find claims$/m);
  });
});
