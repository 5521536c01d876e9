/** `cairnlog keygen`: makes a signing key on this machine. */

import { existsSync } from "node:fs";
import { encryptPrivateKey } from "../../../engine/crypto/keys/encrypted-key.js";
import { generatePrivateKey, privateKey } from "../../../engine/crypto/keys/signatures.js";
import { writeKeyFile } from "../../../engine/crypto/signer/operator-key.js";
import type { KeyAlgorithm } from "../../../engine/verify/index.js";
import { isKeyAlgorithm, KEY_ALGORITHMS } from "../../../engine/verify/keys/contract.js";
import { newPassphrase } from "../files/secrets.js";
import { flag, subcommand, text, textOr } from "../line/subcommand.js";
import { none, required, UsageError } from "../line/usage.js";
import { printableJson } from "../terminal/printable.js";

export const keygen = subcommand({
  forms: ["--out KEY.pem [--algorithm ed25519|ecdsa-p256|rsa-2048] [--passphrase]"],
  about: `Writes a new private key (PKCS#8 PEM, readable by you alone) and prints its fingerprint.
The key never leaves this machine. An existing file is never overwritten.`,
  options: {
    out: text("KEY.pem", "where the key goes"),
    algorithm: textOr("ALGORITHM", "ed25519", "ed25519, ecdsa-p256 or rsa-2048"),
    passphrase: flag("encrypt the key (scrypt and AES-256, as OpenSSL reads it), under a passphrase that is asked for"),
    "passphrase-file": text("FILE", "the same under the passphrase that FILE holds; - reads standard input"),
    json: flag("one line of JSON"),
  },
  examples: `cairnlog keygen --out me.pem
cairnlog keygen --out me.pem --passphrase`,
  async run(operands, values) {
    none(operands);
    const out = required(values.out, "--out");
    const { algorithm } = values;
    if (!isKeyAlgorithm(algorithm)) throw new UsageError(`--algorithm must be one of ${KEY_ALGORITHMS.join(", ")}`);
    if (existsSync(out)) throw new UsageError(`${out} exists already; a key is never overwritten`);
    const pem = generatePrivateKey(algorithm as KeyAlgorithm);
    const isEncrypted = values.passphrase || values["passphrase-file"] !== undefined;
    writeKeyFile(out, isEncrypted ? encryptPrivateKey(pem, await newPassphrase(out, values["passphrase-file"])) : pem);
    const { fingerprint } = privateKey(pem).public;
    console.log(values.json ? printableJson({ file: out, algorithm, fingerprint }) : `${fingerprint}\n${out}`);
    return 0;
  },
});
