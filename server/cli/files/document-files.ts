/**
 * The files that the command keeps beside a document: receipts, FILE.attestation.json, proofs, FILE.tlog-proof, and answers that
 * were not verified, FILE.attestation.unverified.json. Each
 * attestation has its own: further ones are FILE.attestation.2.json, FILE.attestation.3.json …, and a file is written again only
 * with what is about the same entry. The number follows the kind, because FILE.2 may be another document.
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { namesIn, onDisk } from "./disk-names.js";

/** The kinds of files, with what their names have after that of the document: before the number, and after it. */
const KINDS = {
  receipt: [".attestation", ".json"],
  unverified: [".attestation.unverified", ".json"],
  proof: [".tlog-proof", ""],
} as const;
type Kind = keyof typeof KINDS;

/** The document, what stands before the number, and the number. */
const OWN_NAME =
  /^(?<before>(?<document>.*)(?:\.attestation(?:\.unverified)?(?=(?:\.\d+)?\.json$)|\.tlog-proof(?=(?:\.\d+)?$)))(?:\.(?<number>[2-9]|[1-9]\d{1,8}))?(?:\.json)?$/s;

/** The document that the command made a file for, or was making it when it was interrupted; undefined if it is none of its files. */
export const documentOf = (name: string): string | undefined =>
  OWN_NAME.exec(name.replace(/\.new$/, ""))?.groups?.document;

/** Whether a file of this name is a document: nothing that the command made. */
export const isDocument = (name: string): boolean => documentOf(name) === undefined;

function pathOf(document: string, kind: Kind, number: number): string {
  const [before, after] = KINDS[kind];
  return `${document}${before}${number === 1 ? "" : `.${number}`}${after}`;
}

/** The files beside documents, for one run of a command: each directory is listed once. */
export class DocumentFiles {
  /** Directory → what stands before the number in a name → numbers, ascending. */
  readonly #folders = new Map<string, Map<string, number[]>>();
  readonly #baseOf: (document: string) => string;
  /** Empty files that this run has made and not filled yet. */
  readonly #open = new Set<EmptyFile>();

  /** @param baseOf where the files of a document are: the path that they have before their endings. Absent: that of the document */
  constructor(baseOf: (document: string) => string = (document) => document) {
    this.#baseOf = baseOf;
  }

  /** The receipts of a document, in the order of their numbers. */
  receipts(document: string): readonly string[] {
    const base = this.#baseOf(document);
    return this.#numbers(base, "receipt").map((number) => pathOf(base, "receipt", number));
  }

  /**
   * Makes an empty file with the next number for what is to be kept of a document, so that it can be written later, and no
   * other run takes the name. An empty file that a killed run left is taken again.
   * @throws the file system's error
   */
  open(document: string, kind: Kind): EmptyFile {
    const base = this.#baseOf(document);
    if (base !== document) mkdirSync(onDisk(dirname(base)), { recursive: true });
    const numbers = this.#numbers(base, kind);
    const held = [...this.#open].map(({ path }) => path);
    const left = numbers.find((number) => {
      const path = pathOf(base, kind, number);
      return !held.includes(path) && isEmptyFile(path);
    });
    const place = new NumberedPlace(base, kind, left ?? reserve(base, kind, numbers), numbers, () =>
      this.#open.delete(place),
    );
    this.#open.add(place);
    return writable(place);
  }

  /**
   * Writes a file of the document: the one that is about the same entry, or else a new one with the next number.
   * @param isSame whether the text of a file is about the same entry
   * @returns the path
   * @throws the file system's error
   */
  keep(document: string, kind: Kind, text: string, isSame: (text: string) => boolean): string {
    return this.open(document, kind).keep(text, isSame);
  }

  /** Removes what was made and not filled. */
  release(): void {
    for (const place of this.#open) place.release();
  }

  #numbers(base: string, kind: Kind): number[] {
    const folder = dirname(base);
    const listed = this.#folders.get(folder) ?? list(folder);
    this.#folders.set(folder, listed);
    const name = basename(base) + KINDS[kind][0];
    const numbers = listed.get(name) ?? [];
    listed.set(name, numbers);
    return numbers;
  }
}

/** An empty file that waits for its content. */
export interface EmptyFile {
  readonly path: string;
  /** As `DocumentFiles.keep`. */
  keep(text: string, isSame: (text: string) => boolean): string;
  /** Removes the file if it is still empty. */
  release(): void;
}

/** Where the files of documents are. */
export type DocumentPlaces = Pick<DocumentFiles, "receipts" | "open" | "release">;

class NumberedPlace implements EmptyFile {
  readonly #base: string;
  readonly #kind: Kind;
  readonly #numbers: number[];
  readonly #onClose: () => void;
  #number: number;

  /** @param numbers of all files of the document and this kind, its own included */
  constructor(base: string, kind: Kind, number: number, numbers: number[], onClose: () => void) {
    this.#base = base;
    this.#kind = kind;
    this.#number = number;
    this.#numbers = numbers;
    this.#onClose = onClose;
  }

  get path(): string {
    return pathOf(this.#base, this.#kind, this.#number);
  }

  keep(text: string, isSame: (text: string) => boolean): string {
    const same = this.#numbers.find((number) => {
      const path = pathOf(this.#base, this.#kind, number);
      return number !== this.#number && isSame(readFileSync(onDisk(path), "utf8"));
    });
    try {
      if (same !== undefined) {
        const path = pathOf(this.#base, this.#kind, same);
        replace(path, text);
        return path;
      }
      // Another run may have taken the empty file for one that was left.
      if (existsSync(onDisk(this.path)) && !isEmptyFile(this.path))
        this.#number = reserve(this.#base, this.#kind, this.#numbers);
      replace(this.path, text);
      return this.path;
    } finally {
      this.release();
    }
  }

  release(): void {
    this.#onClose();
    if (!isEmptyFile(this.path)) return;
    rmSync(onDisk(this.path), { force: true });
    this.#numbers.splice(this.#numbers.indexOf(this.#number), 1);
  }
}

/** The one file that the receipt of the one document goes to. Other files are beside it. */
export class OutFile implements DocumentPlaces {
  readonly #path: string;
  readonly #beside: DocumentFiles;

  constructor(path: string) {
    this.#path = path;
    this.#beside = new DocumentFiles(() => path);
  }

  receipts(): readonly string[] {
    // A pipe or a device is read for ever.
    const isFile = statSync(this.#path, { throwIfNoEntry: false })?.isFile() === true;
    return isFile && !isEmptyFile(this.#path) ? [this.#path] : [];
  }

  /** @throws the file system's error; `EEXIST` for a file that has something in it */
  open(document: string, kind: Kind): EmptyFile {
    if (kind !== "receipt") return this.#beside.open(document, kind);
    const path = this.#path;
    closeSync(openSync(path, isEmptyFile(path) ? "r+" : "wx"));
    const keep = (text: string) => {
      replace(path, text);
      return path;
    };
    return writable({ path, keep, release: () => this.release() });
  }

  release(): void {
    if (isEmptyFile(this.#path)) rmSync(this.#path);
    this.#beside.release();
  }
}

const draftOf = (path: string): string | Buffer => onDisk(`${path}.new`);

/** The place, if `replace` can write there. Otherwise that would be known when there is a receipt to lose. */
function writable<Place extends EmptyFile>(place: Place): Place {
  const draft = draftOf(place.path);
  try {
    closeSync(openSync(draft, "wx"));
    rmSync(draft);
  } catch (error) {
    // A run left it, or is writing it.
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return place;
    place.release();
    throw error;
  }
  return place;
}

/**
 * Writes to another name first, so that an interrupted run leaves no partial file under the real name. The salt of a private title
 * is nowhere else, so it is on disk before it gets that name; any other receipt can be had again, and to wait for the disk would
 * take most of the time that many documents need.
 */
function replace(path: string, text: string): void {
  const draft = draftOf(path);
  try {
    writeFileSync(draft, text, { flush: text.includes('"private_title"') });
    renameSync(draft, onDisk(path));
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

function isEmptyFile(path: string): boolean {
  const found = statSync(onDisk(path), { throwIfNoEntry: false });
  return found?.isFile() === true && found.size === 0;
}

/** Makes an empty file with the next number, so that no other run takes that, and adds the number. */
function reserve(base: string, kind: Kind, numbers: number[]): number {
  for (let number = (numbers.at(-1) ?? 0) + 1; ; number++) {
    try {
      closeSync(openSync(onDisk(pathOf(base, kind, number)), "wx"));
      numbers.push(number);
      return number;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

function list(folder: string): Map<string, number[]> {
  const listed = new Map<string, number[]>();
  for (const name of namesOf(folder)) {
    const { before, number = "1" } = OWN_NAME.exec(name)?.groups ?? {};
    if (before !== undefined) listed.set(before, [...(listed.get(before) ?? []), Number(number)]);
  }
  for (const numbers of listed.values()) numbers.sort((a, b) => a - b);
  return listed;
}

/** The names in a directory; none if it cannot be listed. Whoever opens a file in it then learns why. */
function namesOf(folder: string): readonly string[] {
  try {
    return namesIn(folder);
  } catch {
    return [];
  }
}
