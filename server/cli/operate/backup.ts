/** `cairnlog backup`: brings a backup of a data directory up to date, while the service runs. */
import { backUp } from "../../../engine/log/history/backup.js";
import { existingLog, operatorKeyOf } from "../files/data-directory.js";
import { flag, subcommand, text, textOr } from "../line/subcommand.js";
import { none, required, UsageError } from "../line/usage.js";
import { interruptible } from "../terminal/interrupt.js";
import { printableJson } from "../terminal/printable.js";
import { startProgress } from "../terminal/progress.js";

export const backup = subcommand({
  forms: ["--to BACKUP [--data DIR] [--operator-key FILE.pem]"],
  about: `Puts into the directory BACKUP what has come since the last time: entries and tree heads in a new segment, and what is
private (accounts, password hashes, webhooks and their secrets, anchors) as it is now. Keep BACKUP as secret as the data.
The operator's private key is not in it: back that up apart.`,
  options: {
    data: textOr("DIR", process.env.SERVICE_DATA_DIR || "./data", "the data directory"),
    to: text("BACKUP", "where to; created when there is none"),
    "operator-key": text("FILE.pem", "the key that signs the heads (default: operator.pem or operator.pub.pem in DIR)"),
    json: flag("answer in JSON"),
  },
  notes: "Exit codes: 0 done; 1 refused or failed, and the backup is as it was; 2 the command was not understood.",
  examples: "cairnlog backup --data ./data --to /backups/cairn",
  async run(operands, values) {
    none(operands);
    const to = required(values.to, "--to");
    const path = existingLog(values.data);
    const key = operatorKeyOf(values.data, values["operator-key"]);
    if (!key) throw new UsageError("--operator-key is missing, and there is none in the data directory");
    let bar: ReturnType<typeof startProgress> | undefined;
    const progress = (done: number, total: number) => {
      bar ??= startProgress("Backing up:", total);
      bar.update(done);
    };
    try {
      const { manifest, added } = await interruptible((signal) =>
        backUp({ path, to, operatorKey: key.pem, progress, signal }),
      );
      bar?.end();
      const { tree_size, head } = manifest;
      console.log(
        values.json ? printableJson({ tree_size, added, head }) : `${tree_size} entries in ${to}, ${added} of them new`,
      );
      return 0;
    } finally {
      bar?.end();
    }
  },
});
