/** `cairnlog composite`: documents of several files, which are hashed on this machine. */
import { writeFileSync } from "node:fs";
import { basename } from "node:path";
import type { Composite } from "../../client/index.js";
import { type Action, type Done, runAction } from "../actions.js";
import { READING_HELP, READING_OPTIONS } from "../connection.js";
import { readObject } from "../objects.js";
import { only, required, type Subcommand, UsageError } from "../usage.js";
import { hashFile } from "./file-hash.js";

const OPTIONS = { ...READING_OPTIONS, title: { type: "string" }, out: { type: "string" } } as const;

const ACTIONS: Readonly<Record<string, Action<typeof OPTIONS>>> = {
  assemble: (files, { title: text, out }) => {
    if (!files.length) throw new UsageError("name at least one FILE");
    const title = required(text, "--title");
    return async (client) => {
      const parts = [];
      for (const file of files) parts.push({ title: basename(file), content_hash: `sha256:${await hashFile(file)}` });
      return written(await client.documents.assemble({ title, parts }), out);
    };
  },
  compile: (names, { out }) => {
    const composite = readObject(only(names, "COMPOSITE.json")) as unknown as Composite;
    return async (client) => written(await client.documents.compile(composite), out);
  },
};

function written(answer: object, file: string | undefined): Done {
  const text = JSON.stringify(answer, null, 2);
  if (file === undefined) return { answer, text };
  writeFileSync(file, `${text}\n`, { flag: "wx" });
  return { answer, text: file };
}

export const composite: Subcommand = {
  help: `cairnlog composite assemble FILE... --title TITLE --server URL [--out COMPOSITE.json] [options]
cairnlog composite compile COMPOSITE.json --server URL [--out MANIFEST.json] [options]

assemble hashes each FILE and makes a composite of them, in that order; compile makes its manifest, which
cairnlog attest --manifest MANIFEST.json signs. The files themselves are not sent.

Options:
  --title TITLE            assemble: title of the whole
  --out FILE               write the result there, to a new file, instead of printing it
${READING_HELP}

Example:
  cairnlog composite assemble one.pdf two.pdf --title Both --out both.json --server http://127.0.0.1:8080`,
  options: OPTIONS,
  actions: Object.keys(ACTIONS),
  run: (argv) => runAction(ACTIONS, OPTIONS, argv),
};
