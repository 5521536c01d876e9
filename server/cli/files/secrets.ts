/**
 * Passwords, passphrases and private keys. They are read from files, or from the terminal without echo. They are never
 * arguments, because other users of the machine can see these.
 */
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { CairnlogError } from "../../../engine/base/error.js";
import { isEncryptedKey } from "../../../engine/crypto/keys/encrypted-key.js";
import { type PrivateKey, privateKey, signSync } from "../../../engine/crypto/keys/signatures.js";
import type { Signer } from "../../client/index.js";
import { UsageError } from "../line/usage.js";
import { readText } from "./files.js";

/**
 * The content of a file, without the line feed at its end; `-` is standard input.
 * @throws UsageError for an empty file
 */
export function readSecret(file: string): string {
  const secret = readText(file).replace(/\r?\n$/, "");
  if (secret === "") throw new UsageError(`${file === "-" ? "standard input" : file} is empty`);
  return secret;
}

/** The private key in a PEM file, decrypted if it has a passphrase. @throws CairnlogError `invalid-key`; UsageError */
export async function privateKeyIn(file: string, passphraseFile?: string): Promise<PrivateKey> {
  const pem = readText(file);
  if (!isEncryptedKey(pem)) return privateKey(pem);
  const passphrase = await findPassphrase(`Passphrase of ${file}: `, `${file} is encrypted`, passphraseFile);
  try {
    return privateKey(pem, passphrase);
  } catch (cause) {
    throw new CairnlogError("invalid-key", `The passphrase does not open ${file}.`, { cause });
  }
}

/** A signer with the private key in a PEM file. @throws CairnlogError `invalid-key`; UsageError */
export async function fileSigner(file: string, passphraseFile?: string): Promise<Signer> {
  const key = await privateKeyIn(file, passphraseFile);
  const { pem, algorithm } = key.public;
  return { publicKeyPem: pem, algorithm, sign: async (bytes) => signSync(key, bytes) };
}

/** A passphrase for a new key, which is asked for twice. @throws UsageError */
export async function newPassphrase(file: string, passphraseFile?: string): Promise<string> {
  const isAsked = passphraseFile === undefined && process.env.CAIRNLOG_PASSPHRASE_FILE === undefined;
  const passphrase = await findPassphrase(`Passphrase for ${file}: `, "there is no terminal to ask on", passphraseFile);
  if (isAsked && (await askHidden("The same again: ")) !== passphrase)
    throw new UsageError("the two passphrases differ; nothing was written");
  if (passphrase === "") throw new UsageError("the passphrase is empty; nothing was written");
  return passphrase;
}

async function findPassphrase(question: string, otherwise: string, passphraseFile?: string): Promise<string> {
  const file = passphraseFile ?? process.env.CAIRNLOG_PASSPHRASE_FILE;
  if (file !== undefined) return readSecret(file);
  if (!process.stdin.isTTY) throw new UsageError(`${otherwise}: give --passphrase-file`);
  return askHidden(question);
}

/** Asks on the terminal, without echo. */
async function askHidden(question: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  // The question is written after the echo was switched off, so that no part of the answer is shown.
  process.stderr.write(question);
  try {
    return await new Promise((resolve, reject) => {
      terminal.once("line", resolve);
      terminal.once("SIGINT", () => reject(new UsageError("interrupted")));
      terminal.once("close", () => reject(new UsageError("no passphrase was given")));
    });
  } finally {
    terminal.close();
    process.stderr.write("\n");
  }
}
