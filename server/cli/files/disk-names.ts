/**
 * File names that are not UTF-8. Linux keeps names as bytes. In the command a path is always text: a byte that is no UTF-8
 * stands there as a lone surrogate, U+DC80 to U+DCFF, as in Python (PEP 383). So paths are joined and compared as usual, and
 * only where the system gets one, it becomes bytes again.
 */
import { isUtf8 } from "node:buffer";
import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const ESCAPES = 0xdc00;
const LONE = /[\udc80-\udcff]/u;

/** A name as the system has it. */
export function decodeName(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  let name = "";
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((n) => at + n <= bytes.length && isUtf8(bytes.subarray(at, at + n)));
    name += length ? bytes.toString("utf8", at, at + length) : String.fromCharCode(ESCAPES + bytes[at]!);
    at += length ?? 1;
  }
  return name;
}

/** A path for the system. */
export function onDisk(path: string): string | Buffer {
  if (!LONE.test(path)) return path;
  return Buffer.concat(
    [...path].map((part) => (LONE.test(part) ? Buffer.from([part.charCodeAt(0) - ESCAPES]) : Buffer.from(part))),
  );
}

/** A path for others: what is not UTF-8 becomes U+FFFD. */
export const wellFormed = (path: string): string => path.replace(/\p{Cs}/gu, "\uFFFD");

/** The names in a directory. @throws the file system's error */
export const namesIn = (directory: string): string[] =>
  readdirSync(onDisk(directory), { encoding: "buffer" }).map(decodeName);

/**
 * The path that an argument means. Node makes U+FFFD of what is not UTF-8 in it: then it is the one file there whose name
 * looks the same.
 */
export function fromArgument(path: string): string {
  if (!path.includes("\uFFFD") || existsSync(path)) return path;
  const directory = fromArgument(dirname(path));
  if (directory === path || !existsSync(onDisk(directory))) return path;
  const shown = (name: string) => Buffer.from(onDisk(name)).toString("utf8");
  const [found, ...others] = namesIn(directory).filter((name) => shown(name) === basename(path));
  return found === undefined || others.length ? path : join(directory, found);
}
