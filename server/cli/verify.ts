/** `cairnlog verify`: checks a file and its .attestation.json offline, against a pinned operator key. */
import { readFileSync } from "node:fs";
import { CairnlogError } from "../../engine/error.js";
import {
  type BundleVerdict,
  type PublicKey,
  parseIJson,
  parsePublicKey,
  verifyBundle,
} from "../../engine/verify/index.js";
import { hashFile } from "./file-hash.js";
import { printableLine } from "./terminal.js";
import { readArguments, required, type Subcommand, UsageError } from "./usage.js";

const OPTIONS = {
  "operator-key": { type: "string" },
  attestation: { type: "string" },
  json: { type: "boolean", default: false },
} as const;

export const verify: Subcommand = {
  summary: "check files and their attestations offline",
  help: `cairnlog verify FILE... --operator-key OPERATOR.pem [--attestation FILE.attestation.json] [--json]

Checks each FILE against FILE.attestation.json without any connection: that the file is the one attested,
that the signature holds, that the log entry says so and has the hash it claims, that it is in the tree,
and that the tree head is signed by the operator key you pinned. Says of each whether it holds.

Options:
  --operator-key FILE.pem  the operator's public key, from a source that you trust
  --attestation FILE       the attestation of the one FILE (default: FILE.attestation.json)
  --json                   one line of JSON for each file

Exit codes: 0 everything holds; 1 something does not; 2 the command was not understood.

Example:
  cairnlog verify report.pdf --operator-key operator.pub.pem`,
  options: OPTIONS,
  async run(argv) {
    const { values, positionals: files } = readArguments(argv, OPTIONS, true);
    if (!files.length) throw new UsageError("name at least one FILE");
    if (values.attestation !== undefined && files.length > 1) throw new UsageError("--attestation goes with one FILE");
    const operatorKey = parsePublicKey(readFileSync(required(values["operator-key"], "--operator-key"), "utf8"));
    let failed = 0;
    for (const file of files) {
      const verdict = await verifyFile(file, values.attestation ?? `${file}.attestation.json`, operatorKey);
      if (!verdict.valid) failed++;
      console.log(values.json ? JSON.stringify({ file, ...verdict }) : describe(file, verdict));
    }
    return failed ? 1 : 0;
  },
};

async function verifyFile(file: string, bundlePath: string, operatorKey: PublicKey): Promise<BundleVerdict> {
  const fileHash = await hashFile(file);
  let bundle: unknown;
  try {
    bundle = parseIJson(readFileSync(bundlePath, "utf8"));
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    return { valid: false, checks: [{ name: "format", ok: false, detail: `${bundlePath}: ${error.message}` }] };
  }
  return verifyBundle(bundle, { fileHash, operatorKey });
}

function describe(file: string, { valid, checks }: BundleVerdict): string {
  // Whoever made the receipt chose some of the words.
  const lines = checks.map(({ name, ok, detail }) => `  ${ok ? "ok    " : "WRONG "} ${name}: ${printableLine(detail)}`);
  return [`${file}: ${valid ? "verified" : "NOT verified"}`, ...lines].join("\n");
}
