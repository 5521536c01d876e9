/** `cairnlog keygen`: makes a signing key on this machine. */
import { existsSync } from "node:fs";
import { writeKeyFile } from "../../engine/crypto/operator-key.js";
import { generatePrivateKey, privateKey } from "../../engine/crypto/private-key.js";
import type { KeyAlgorithm } from "../../engine/verify/index.js";
import { readArguments, required, type Subcommand, UsageError } from "./usage.js";

const ALGORITHMS: readonly string[] = ["ed25519", "ecdsa-p256", "rsa-2048"] satisfies KeyAlgorithm[];

export const keygen: Subcommand = {
  summary: "make a signing key",
  help: `cairnlog keygen --out KEY.pem [--algorithm ed25519|ecdsa-p256|rsa-2048] [--json]

Writes a new private key (PKCS#8 PEM, readable by you alone) and prints its fingerprint.
The key never leaves this machine. An existing file is never overwritten.

Example:
  cairnlog keygen --out me.pem`,
  async run(argv) {
    const { values } = readArguments(argv, {
      out: { type: "string" },
      algorithm: { type: "string", default: "ed25519" },
      json: { type: "boolean", default: false },
    });
    const out = required(values.out, "--out");
    const { algorithm } = values;
    if (!ALGORITHMS.includes(algorithm)) throw new UsageError(`--algorithm must be one of ${ALGORITHMS.join(", ")}`);
    if (existsSync(out)) throw new UsageError(`${out} exists already; a key is never overwritten`);
    const pem = generatePrivateKey(algorithm as KeyAlgorithm);
    writeKeyFile(out, pem);
    const { fingerprint } = privateKey(pem).public;
    console.log(values.json ? JSON.stringify({ file: out, algorithm, fingerprint }) : `${fingerprint}\n${out}`);
    return 0;
  },
};
