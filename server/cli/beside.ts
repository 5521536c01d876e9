/**
 * The files that the command keeps beside a document: receipts, FILE.attestation.json, proofs, FILE.tlog-proof, and answers that
 * were not verified, FILE.attestation.unverified.json. Each
 * attestation has its own: further ones are FILE.attestation.2.json, FILE.attestation.3.json …, and a file is written again only
 * with what is about the same entry. The number follows the kind, because FILE.2 may be another document.
 */
import { closeSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";

/** The kinds of files, with what their names have after that of the document: before the number, and after it. */
const KINDS = {
  receipt: [".attestation", ".json"],
  unverified: [".attestation.unverified", ".json"],
  proof: [".tlog-proof", ""],
} as const;
type Kind = keyof typeof KINDS;

/** What stands before the number, and the number. */
const OWN_NAME =
  /^(.*(?:\.attestation(?:\.unverified)?(?=(?:\.\d+)?\.json$)|\.tlog-proof(?=(?:\.\d+)?$)))(?:\.([2-9]|[1-9]\d+))?(?:\.json)?$/s;

/** Whether a file of this name is a document: nothing that the command made, or was making when it was interrupted. */
export const isDocument = (name: string): boolean => !OWN_NAME.test(name.replace(/\.new$/, ""));

function pathOf(document: string, kind: Kind, number: number): string {
  const [before, after] = KINDS[kind];
  return `${document}${before}${number === 1 ? "" : `.${number}`}${after}`;
}

/** The files beside documents, for one run of a command: each directory is listed once. */
export class Beside {
  /** Directory → what stands before the number in a name → numbers, ascending. */
  readonly #folders = new Map<string, Map<string, number[]>>();

  /** The receipts of a document, in the order of their numbers. */
  receipts(document: string): readonly string[] {
    return this.#numbers(document, "receipt").map((number) => pathOf(document, "receipt", number));
  }

  /**
   * Writes a file of the document: the one that is about the same entry, or else a new one with the next number.
   * @param isSame whether the text of a file is about the same entry
   * @returns the path
   * @throws the file system's error
   */
  keep(document: string, kind: Kind, text: string, isSame: (text: string) => boolean): string {
    const numbers = this.#numbers(document, kind);
    const same = numbers.find((number) => isSame(readFileSync(pathOf(document, kind, number), "utf8")));
    const path = same === undefined ? reserve(document, kind, numbers) : pathOf(document, kind, same);
    try {
      // Written to another name first, so that an interrupted run leaves no partial receipt under the real name.
      writeFileSync(`${path}.new`, text);
      renameSync(`${path}.new`, path);
    } catch (error) {
      if (same === undefined) rmSync(path);
      throw error;
    }
    return path;
  }

  #numbers(document: string, kind: Kind): number[] {
    const folder = dirname(document);
    const listed = this.#folders.get(folder) ?? list(folder);
    this.#folders.set(folder, listed);
    const name = basename(document) + KINDS[kind][0];
    const numbers = listed.get(name) ?? [];
    listed.set(name, numbers);
    return numbers;
  }
}

/** Makes an empty file with the next number, so that no other run takes that, and adds the number. */
function reserve(document: string, kind: Kind, numbers: number[]): string {
  for (let number = (numbers.at(-1) ?? 0) + 1; ; number++) {
    const path = pathOf(document, kind, number);
    try {
      closeSync(openSync(path, "wx"));
      numbers.push(number);
      return path;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

function list(folder: string): Map<string, number[]> {
  const listed = new Map<string, number[]>();
  for (const name of namesIn(folder)) {
    const [, before, number = "1"] = OWN_NAME.exec(name) ?? [];
    if (before !== undefined) listed.set(before, [...(listed.get(before) ?? []), Number(number)]);
  }
  for (const numbers of listed.values()) numbers.sort((a, b) => a - b);
  return listed;
}

/** The names in a directory; none if it cannot be listed. Whoever opens a file in it then learns why. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
