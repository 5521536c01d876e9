/** Inputs that have failed before, in this project or elsewhere. They run before any new input. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Input } from "./wire.js";

/** `test/fuzz/corpus`, wherever this file was compiled to. */
const FOLDER = join(import.meta.dirname.replace(/test[\\/]build[\\/]/, ""), "corpus");

/** An input of the service, or of a parser; bytes in base64. */
export interface Kept {
  /** The purpose of the input, or its effect when it was found. */
  readonly note: string;
  readonly target: string;
  readonly request?: Omit<Input, "body">;
  readonly bytes: string | null;
}

export const SERVICE = "service";

export function readCorpus(): Kept[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith(".json"));
  return files.sort().map((name) => JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as Kept);
}

export const asInput = ({ request, bytes }: Kept): Input => ({
  ...request!,
  body: bytes === null ? null : Buffer.from(bytes, "base64"),
});

/** Keeps an input that failed. @returns its path */
export function keep(name: string, kept: Kept): string {
  mkdirSync(FOLDER, { recursive: true });
  const path = join(FOLDER, `${name}.json`);
  writeFileSync(path, `${JSON.stringify(kept, null, 2)}\n`);
  return path;
}
