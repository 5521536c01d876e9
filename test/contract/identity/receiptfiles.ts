/** Writes every signature of the tables into a receipt beside its file, and runs docs/check-receipt.sh on it. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { receiptOf } from "../../server/receipts.js";
import { canonical, newSigner, sha256, type TestManifest } from "../../server/signers.js";
import { messageFor, type SignatureCase, signatureCases } from "../../verify/keys/signaturecases.js";

export const FILE = "Dear Ada,\n";
const script = join(import.meta.dirname, "..", "..", "..", "docs", "check-receipt.sh");

const manifestOf = (n: number): TestManifest => ({
  document: { title: `Letter ${n}`, content_hash: `sha256:${sha256(FILE)}` },
  attestations: [],
});
const message = messageFor((n) => Buffer.from(canonical(manifestOf(n))));

/** The message of every case. */
export const manifest = JSON.parse(Buffer.from(message).toString()) as TestManifest;
export const cases = signatureCases(message);
export const operator = newSigner();

/** Writes the operator's public key, and for every case a file and its receipt. */
export function writeReceipts(folder: string): { operatorPem: string; fileOf(one: SignatureCase): string } {
  const operatorPem = join(folder, "operator.pem");
  const fileOf = (one: SignatureCase) => join(folder, `${cases.indexOf(one)}.txt`);
  writeFileSync(operatorPem, operator.publicKey);
  for (const one of cases) {
    writeFileSync(fileOf(one), FILE);
    writeFileSync(`${fileOf(one)}.attestation.json`, JSON.stringify(receiptOf({ ...one, manifest }, operator)));
  }
  return { operatorPem, fileOf };
}

/** The script's verdict on the signature in a receipt; `undefined` if it gives none. */
export async function checkReceipt(file: string, operatorPem: string): Promise<"held" | "refused" | undefined> {
  const run = promisify(execFile)("bash", [script, file, operatorPem]);
  const { stdout, stderr } = await run.catch((refused) => refused);
  const isRefused = /^does not hold: (the signature over the manifest|the key is one that a log takes)$/m;
  if (isRefused.test(stdout + stderr)) return "refused";
  return /^holds: the signature over the head$/m.test(stdout) ? "held" : undefined;
}
