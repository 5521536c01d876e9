/** `cairnlog restore`: brings a log back from a backup, unless that would fork what was published. */
import { existsSync } from "node:fs";
import { CairnlogError } from "../../../engine/base/error.js";
import { replaceFile } from "../../../engine/base/files.js";
import { createPool } from "../../../engine/crypto/pool/pool.js";
import { readBackupManifest } from "../../../engine/log/history/backupformat.js";
import { operatorsOf, restore as restoreLog } from "../../../engine/log/history/restore.js";
import { projection } from "../../../engine/registry/events/projection.js";
import { makePrivateFolder, PRIVATE_FILE } from "../../../engine/store/lmdb/private.js";
import { OperatorKeys, parsePublicKey } from "../../../engine/verify/index.js";
import { operatorPublicKeyPath, publishedHeadPath } from "../../settings/settings.js";
import { existingLog, logFolder, operatorKeyOf } from "../files/data-directory.js";
import { flag, subcommand, text, texts } from "../line/subcommand.js";
import { required, UsageError } from "../line/usage.js";
import { trustedBy } from "../printing/proof-file.js";
import { interruptible } from "../terminal/interrupt.js";
import { printableJson } from "../terminal/printable.js";
import { startProgress } from "../terminal/progress.js";
import { readPublished } from "./published.js";

export const restore = subcommand({
  forms: ["BACKUP --to DIR", "FOLDER|URL --to DIR (--vkey VKEY | --policy FILE)"],
  about: `Checks every hash, link, root and signature in BACKUP and makes the log of the data directory DIR of it: all of it, or
nothing. To go on with it, put the operator's private key beside it; no backup holds that. A log that ends before what was
published must not go on, because it would sign other entries at sizes that have signed heads already. So say what was
published.

Of files that cairnlog publish --entries has put into a FOLDER, s3://BUCKET/PREFIX or behind a URL it makes a mirror, which
cairnlog serve --read-only serves: the same entries, heads and proofs, without timestamp proofs. Stopped, it goes on where it was.`,
  options: {
    to: text("DIR", "the data directory; it must hold no log"),
    published: texts(
      "FILE|URL",
      "a tree head or checkpoint that anybody has seen, in a file, or the address of a mirror of the service; may be repeated. DIR/published.json counts, too, where there is one",
    ),
    mirror: text(
      "DIR",
      "a data directory with a longer copy of the log (cairnlog monitor keeps one in mirror/): what the backup lacks is taken from it",
    ),
    "may-fork": flag("go on although nothing is known to be published, or although more was"),
    "operator-key": text(
      "FILE.pem",
      "a key that signed the heads (default: operator.pem or operator.pub.pem in DIR, or else the key that BACKUP names)",
    ),
    vkey: text("VKEY", "published files: the key that signs the checkpoint, from a source that you trust"),
    policy: text("FILE", "published files: the logs and witnesses that you trust (tlog-policy)"),
    json: flag("answer in JSON"),
  },
  notes: "Exit codes: 0 restored; 1 refused or failed, and nothing was written; 2 the command was not understood.",
  examples: "cairnlog restore /backups/cairn --to ./data --published https://mirror.example.org",
  async run(positionals, values) {
    const [from, ...others] = positionals;
    if (from === undefined || others.length) throw new UsageError("name one BACKUP");
    const to = required(values.to, "--to");
    const { vkey, policy, json } = values;
    if (vkey !== undefined || policy !== undefined) {
      if (values.published.length || values.mirror !== undefined || values["may-fork"])
        throw new UsageError("--published, --mirror and --may-fork are for a backup");
      const trusted = trustedBy(vkey, policy);
      const restoring = { from, to, policy: trusted, operatorKey: values["operator-key"], json };
      // As in fsck: a backup needs none of it.
      const { restoreStatic } = await import("../static/restore.js");
      return interruptible((signal) => restoreStatic(restoring, signal));
    }
    const manifest = readBackupManifest(from);
    if (!manifest) throw new CairnlogError("not-found", `There is no backup in ${from}.`);
    const operatorKey = operatorKeyOf(to, values["operator-key"])?.pem ?? manifest.operator_key;
    const kept = publishedHeadPath(to);
    const sources = [...values.published, ...(existsSync(kept) ? [kept] : [])];
    const pinned = parsePublicKey(operatorKey);
    const operators = await OperatorKeys.verify(await operatorsOf(manifest, operatorKey), pinned);
    const published = await Promise.all(sources.map((source) => readPublished(source, operators)));
    const mirror = values.mirror === undefined ? undefined : existingLog(values.mirror);

    makePrivateFolder(to);
    const pool = createPool();
    const bar = startProgress("Restoring:", manifest.tree_size);
    try {
      const restored = await interruptible((signal) =>
        restoreLog({
          from,
          path: logFolder(to),
          operatorKey,
          projection,
          pool,
          published,
          mayFork: values["may-fork"],
          mirror,
          progress: (done) => bar.update(done),
          // Later backups and readers find the key here. The private key is not in a backup.
          placing: (pem) => replaceFile(operatorPublicKeyPath(to), pem, PRIVATE_FILE),
          signal,
        }),
      );
      bar.end();
      const { entries, fromMirror, operator } = restored;
      if (values.json) console.log(printableJson({ tree_size: entries, from_mirror: fromMirror, operator }));
      else {
        const tail = fromMirror ? `, the last ${fromMirror} of them from the mirror` : "";
        console.log(`${entries} entries in ${to}${tail}; signed by ${operator}`);
        if (manifest.meta.in_journal)
          console.log("It is the log of a node: start it with SERVICE_REPLICATION, or see cairnlog replicate leave.");
      }
      return 0;
    } finally {
      bar.end();
      await pool.close();
    }
  },
});
