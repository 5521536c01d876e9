/**
 * `cairnlog attest`: hashes files and signs on this machine, submits the attestation, verifies the receipt, and writes
 * FILE.attestation.json beside each file. Neither the file nor the private key leaves this machine.
 */
import { renameSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { type AttestationBundle, type Manifest, signedWords } from "../../../engine/verify/index.js";
import { CONNECTION_HELP, CONNECTION_OPTIONS, report, withClient } from "../connection.js";
import { readSecret } from "../identity/secrets.js";
import { readObject } from "../objects.js";
import { readArguments, required, type Subcommand, UsageError } from "../usage.js";
import { hashFile } from "./file-hash.js";

const OPTIONS = {
  ...CONNECTION_OPTIONS,
  type: { type: "string", default: "authorship" },
  title: { type: "string" },
  pseudonym: { type: "string" },
  intent: { type: "string" },
  "password-file": { type: "string" },
  manifest: { type: "boolean", default: false },
} as const;

export const attest: Subcommand = {
  help: `cairnlog attest FILE... --key KEY.pem --server URL [options]

Hashes each FILE, signs a manifest of it with KEY, submits manifest and signature, checks the receipt,
and writes FILE.attestation.json beside the file. The file itself is not sent.

Options:
  --key KEY.pem            your private key; it stays here
  --type TYPE              authorship (default), editorial_review, peer_review, publication, or an https: predicate
  --manifest               each FILE is a manifest (JSON) to be signed, with the attestations that are in it; type and
                           statement are signed, too, unless the signatures of such attestations cover the document
  --title TITLE            title of the document (default: the file's name)
  --pseudonym NAME         your display name, if the log does not know the key yet
  --intent TEXT            a statement of intent, for everybody to read
  --password-file FILE     a file that holds the key's password, where it has one; - reads standard input
${CONNECTION_HELP}; one line for each file

Example:
  cairnlog attest report.pdf --key me.pem --server http://127.0.0.1:8080`,
  options: OPTIONS,
  async run(argv) {
    const { values, positionals: files } = readArguments(argv, OPTIONS, true);
    if (values.manifest && values.title !== undefined) throw new UsageError("a manifest has its own title");
    if (!files.length) throw new UsageError("name at least one FILE");
    if (values.title !== undefined && files.length > 1) throw new UsageError("--title goes with one FILE");
    required(values.key, "--key");
    const { title, type, pseudonym, intent, "password-file": passwordFile } = values;
    const password = passwordFile === undefined ? undefined : readSecret(passwordFile);
    await withClient(values, async (client) => {
      for (const file of files) {
        const subject = values.manifest
          ? (readObject(file) as Manifest)
          : { title: title ?? basename(file), content_hash: `sha256:${await hashFile(file)}` };
        const attested = await client.attest(subject, { type, pseudonym, intent, password });
        const bundlePath = writeBundle(file, attested.bundle);
        const { receipt } = attested;
        const { log_entry_id, duplicate, signed } = receipt;
        const isSigned = signed.attestation_type && signed.intent_statement;
        report(
          values,
          { file, bundle: bundlePath, log_entry_id, duplicate, signed },
          `${file}: entry ${log_entry_id}${duplicate ? " (recorded before)" : ""}, ${bundlePath}${isSigned ? "" : `. ${signedWords(signed)}`}`,
        );
      }
    });
    return 0;
  },
};

/** @returns the path of the bundle */
function writeBundle(file: string, bundle: AttestationBundle): string {
  const path = `${file}.attestation.json`;
  // Written to another name first, so that an interrupted run leaves no partial receipt under the real name.
  writeFileSync(`${path}.new`, `${JSON.stringify(bundle, null, 2)}\n`);
  renameSync(`${path}.new`, path);
  return path;
}
