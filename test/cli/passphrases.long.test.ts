/** Passwords and passphrases: the text of a file, or what is typed on a terminal. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { encryptPrivateKey } from "#cairnlog/engine/crypto/keys/encrypted-key.js";
import { newPassphrase, privateKeyIn, readSecret } from "#cairnlog/server/cli/files/secrets.js";
import { UsageError } from "#cairnlog/server/cli/line/usage.js";
import { readWebhookSecret } from "#cairnlog/server/cli/log/webhook-listen.js";
import { temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { cairnlog } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
const file = (name: string, content: string) => {
  writeFileSync(at(name), content);
  return at(name);
};

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

describe("the secret in a file", () => {
  test.each([
    ["one", "one"],
    ["one\n", "one"],
    ["one\r\n", "one"],
    ["one\n\n", "one\n"],
    ["one\ntwo\n", "one\ntwo"],
    ["\none\n", "\none"],
    [" one \n", " one "],
    ["one\r", "one\r"],
  ])("of %j is %j", (content, secret) => {
    expect(readSecret(file("secret", content))).toBe(secret);
  });

  test.each(["", "\n", "\r\n"])("is not %j", (content) => {
    const empty = file("empty", content);
    expect(() => readSecret(empty)).toThrow(new UsageError(`${empty} is empty`));
  });
});

describe("the secret of a subscription", () => {
  test.each([
    ["sixteen letters!\n", "sixteen letters!"],
    [" sixteen letters! \r\n", "sixteen letters!"],
    ["whsec_AAAA\n", "whsec_AAAA"],
  ])("in a file of %j is %j", (content, secret) => {
    expect(readWebhookSecret({ "secret-file": file("secret", content) })).toBe(secret);
  });

  test("is given once", () => {
    const either = new UsageError("give either --secret or --secret-file");
    expect(readWebhookSecret({ secret: "whsec_AAAA" })).toBe("whsec_AAAA");
    expect(() => readWebhookSecret({})).toThrow(either);
    expect(() => readWebhookSecret({ secret: "x", "secret-file": file("secret", "x") })).toThrow(either);
  });

  test.each(["whsec_", "whsec_***", ""])("is not %j", (secret) => {
    expect(() => readWebhookSecret({ secret })).toThrow(
      new UsageError("a secret that begins with whsec_ goes on in base64"),
    );
  });
});

describe("an encrypted key", () => {
  const signer = newSigner();
  const key = file("key.pem", encryptPrivateKey(signer.privateKey, "hunter2"));
  const right = file("right", "hunter2\n");
  const wrong = file("wrong", "hunter3\n");

  test("is opened by the passphrase in a file, or in the one that CAIRNLOG_PASSPHRASE_FILE names", async () => {
    vi.stubEnv("CAIRNLOG_PASSPHRASE_FILE", wrong);
    expect((await privateKeyIn(key, right)).public.fingerprint).toBe(signer.fingerprint);
    vi.stubEnv("CAIRNLOG_PASSPHRASE_FILE", right);
    expect((await privateKeyIn(key)).public.fingerprint).toBe(signer.fingerprint);
  });

  test("is opened by no other", async () => {
    await expect(privateKeyIn(key, wrong)).rejects.toMatchObject({
      code: "invalid-key",
      message: `The passphrase does not open ${key}.`,
      cause: { code: "invalid-key" },
    });
  });
});

describe("a new passphrase", () => {
  test("is taken from a file without asking", async () => {
    const passphrase = file("passphrase", "open sesame\n");
    expect(await newPassphrase("me.pem", passphrase)).toBe("open sesame");
    vi.stubEnv("CAIRNLOG_PASSPHRASE_FILE", passphrase);
    expect(await newPassphrase("me.pem")).toBe("open sesame");
    // The option comes before the variable.
    expect(await newPassphrase("me.pem", file("other", "other"))).toBe("other");
    const made = await cairnlog(["keygen", "--out", at("made.pem"), "--passphrase"]);
    expect(made).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(at("made.pem"), "utf8")).toContain("BEGIN ENCRYPTED PRIVATE KEY");
    const opened = await privateKeyIn(at("made.pem"));
    expect(made.stdout).toContain(opened.public.fingerprint);
  });

  test("is not asked for where there is no terminal", async () => {
    vi.spyOn(process, "stdin", "get").mockReturnValue(new PassThrough() as never);
    const sentence = "there is no terminal to ask on: give --passphrase-file";
    await expect(newPassphrase("me.pem")).rejects.toThrow(new UsageError(sentence));
  });
});

describe("on a terminal", () => {
  let keyboard: PassThrough;
  let shown: string;
  beforeEach(() => {
    keyboard = Object.assign(new PassThrough(), { isTTY: true });
    shown = "";
    vi.spyOn(process, "stdin", "get").mockReturnValue(keyboard as never);
    vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      shown += text;
      return true;
    });
  });

  /** Types each of these texts when the next question is there. */
  async function type(...texts: readonly string[]): Promise<void> {
    for (const [asked, text] of texts.entries()) {
      while (shown.split(": ").length <= asked + 1) await new Promise((resolve) => setImmediate(resolve));
      keyboard.write(text);
    }
  }

  test("a passphrase is asked for twice, and not shown", async () => {
    const [passphrase] = await Promise.all([newPassphrase("me.pem"), type("open sesame\r", "open sesame\r")]);
    expect(passphrase).toBe("open sesame");
    expect(shown).toBe("Passphrase for me.pem: \nThe same again: \n");
    // Nothing waits for the keyboard any more, which would keep the process running.
    expect(keyboard.isPaused()).toBe(true);
  });

  test("a key's passphrase is asked for once", async () => {
    const signer = newSigner();
    const key = file("asked.pem", encryptPrivateKey(signer.privateKey, "open sesame"));
    const [opened] = await Promise.all([privateKeyIn(key), type("open sesame\r")]);
    expect(opened.public.fingerprint).toBe(signer.fingerprint);
    expect(shown).toBe(`Passphrase of ${key}: \n`);
  });

  test.each([
    [["open sesame\r", "open says me\r"], "the two passphrases differ; nothing was written"],
    [["\r", "\r"], "the passphrase is empty; nothing was written"],
    [["\x03"], "interrupted"],
    [["open\x03"], "interrupted"],
    [["\x04"], "no passphrase was given"],
    [["open sesame\r", "\x03"], "interrupted"],
  ])("%j is refused: %s", async (typed, sentence) => {
    const asked = newPassphrase("me.pem");
    const refusal = expect(asked).rejects.toThrow(new UsageError(sentence));
    await type(...typed);
    await refusal;
    expect(shown).toMatch(/: \n$/);
    expect(keyboard.isPaused()).toBe(true);
  });
});
