/** What `cairnlog attest` says before it makes names and hashes public, which cannot be taken back. */

import { createInterface } from "node:readline";
import { duration } from "../../outgoing/patience.js";
import { printableJson, printableLine } from "../terminal/printable.js";

/** Names in a sentence, and in the question. */
const NAMED = 5;
const LISTED = 100;
/** So many files are asked about even if each was named, since a shell names them for `*`. */
const MANY = 100;

/** Sentences about the files and directories that were found and are not attested. */
export function leftOutWords(leftOut: readonly string[], keys: readonly string[]): string[] {
  const sentences: string[] = [];
  if (leftOut.length) sentences.push(`Left out: ${counted(leftOut)}. With --all they are attested, too.`);
  if (keys.length) sentences.push(`Left out for the private keys in them: ${counted(keys)}.`);
  return sentences.map(printableLine);
}

function counted(paths: readonly string[]): string {
  const shown = paths.slice(0, NAMED).join(", ");
  return paths.length > NAMED ? `${shown} and ${paths.length - NAMED} more` : shown;
}

/** Prints the files, a line each: what `--dry-run` is for. */
export function listPublic(files: readonly string[], { json, "private-title": isPrivate }: ListOptions): void {
  for (const file of files) console.log(json ? printableJson({ file }) : printableLine(file));
  console.error(`Nothing was sent. ${publicWords(files.length, isPrivate)}`);
}

interface ListOptions {
  readonly json: boolean;
  /** Whether the names stay here. */
  readonly "private-title": boolean;
}

function publicWords(files: number, isPrivate: boolean): string {
  const [one, many] = isPrivate ? ["hash", "hashes"] : ["name and the hash", "names and hashes"];
  return `The ${files === 1 ? `${one} of this file` : `${many} of these ${files} files`} would become public for ever.`;
}

/**
 * Whether the files may become public. Only a terminal is asked, and only about files that nobody can have looked at one by one.
 */
export async function isAgreedTo(
  files: readonly string[],
  hasDirectory: boolean,
  isPrivate: boolean,
): Promise<boolean> {
  const isAsked = files.length > 0 && (hasDirectory || files.length >= MANY);
  if (!isAsked || !process.stdin.isTTY || !process.stderr.isTTY) return true;
  const more = files.length - LISTED;
  const listed = files.slice(0, LISTED).map((file) => `  ${printableLine(file)}`);
  if (more > 0) listed.push(`  and ${more} more, which --dry-run lists`);
  console.error(listed.join("\n"));
  return isConfirmed(`${publicWords(files.length, isPrivate)} Attest ${files.length === 1 ? "it" : "them"}?`);
}

/** Asks a question on the terminal. @returns whether the answer is yes; everything else, and no answer, is no */
async function isConfirmed(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  try {
    const answer = await new Promise<string>((resolve) => {
      terminal.question(`${question} [y/N] `, resolve);
      terminal.once("close", () => resolve(""));
    });
    return /^\s*y(?:es)?\s*$/i.test(answer);
  } finally {
    terminal.close();
  }
}

/** What the service's limit means for so many files, if it is below their number; null otherwise. */
export function limitWords(
  files: number,
  limit: { readonly requests: number; readonly seconds: number } | undefined,
  isWaiting: boolean,
): string | null {
  if (!limit || files <= limit.requests) return null;
  const { requests, seconds } = limit;
  const later = duration((Math.ceil(files / requests) - 1) * seconds);
  const rate = `The service takes ${requests} attestations in ${duration(seconds)} from one address`;
  if (isWaiting) return `${rate}: the ${files} files take about ${later}. An interrupted command can be repeated.`;
  return `${rate}: at most ${requests} of the ${files} files are attested now. With --wait the command goes on with the others, for about ${later}; or repeat it later.`;
}
