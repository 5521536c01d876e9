/** `cairnlog composite`: documents of several files, which are hashed on this machine. */
import { basename } from "node:path";
import type { Composite } from "../../client/index.js";
import { type Action, type Done, runAction } from "../connection/actions.js";
import { READING_OPTIONS } from "../connection/connection.js";
import { hashForOthers } from "../files/file-hash.js";
import { readObject } from "../files/objects.js";
import { writeNew } from "../files/whole-file.js";
import { subcommandWithActions, text } from "../line/subcommand.js";
import { only, required, UsageError } from "../line/usage.js";

const OPTIONS = {
  title: text("TITLE", "title of the whole"),
  out: text("FILE", "write the result there, to a new file, instead of printing it"),
  ...READING_OPTIONS,
} as const;

const ACTIONS = {
  assemble: (files, { title: text, out }) => {
    if (!files.length) throw new UsageError("name at least one FILE");
    const title = required(text, "--title");
    return async (client) => {
      const parts = [];
      for (const file of files)
        parts.push({ title: basename(file), content_hash: `sha256:${await hashForOthers(file)}` });
      return written(await client.documents.assemble({ title, parts }), out);
    };
  },
  compile: (names, { out }) => {
    const composite = readObject(only(names, "COMPOSITE.json")) as unknown as Composite;
    return async (client) => written(await client.documents.compile(composite), out);
  },
} satisfies Record<string, Action<typeof OPTIONS>>;

function written(answer: object, file: string | undefined): Done {
  const text = JSON.stringify(answer, null, 2);
  if (file === undefined) return { answer, text };
  writeNew(file, `${text}\n`);
  return { answer, text: file };
}

export const composite = subcommandWithActions({
  about: "Makes one document of several files. The files themselves are not sent.",
  options: OPTIONS,
  actions: {
    assemble: {
      form: "FILE... --title TITLE [--out COMPOSITE.json]",
      about: "Hashes each FILE, and makes a composite of them in this order.",
      takes: ["title"],
    },
    compile: {
      form: "COMPOSITE.json [--out MANIFEST.json]",
      about: 'Makes the manifest of a composite, which "cairnlog attest --manifest" signs.',
    },
  },
  examples: "cairnlog composite assemble one.pdf two.pdf --title Both --out both.json",
  run: (operands, values, action) => runAction(ACTIONS[action], operands, values),
});
