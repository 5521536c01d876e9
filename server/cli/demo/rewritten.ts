/** A copy of the log in which one name was changed on disk, as a dishonest operator would do it. */
import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Copies the log of a data directory, and replaces a text in its entries by another of the same length. Nothing may be
 * appended meanwhile: the file is copied as it is.
 * @param to the new data directory, which is served without a private key
 */
export function rewrittenCopy(from: string, to: string, [text, other]: readonly [string, string]): void {
  mkdirSync(to, { mode: 0o700 });
  cpSync(join(from, "log"), join(to, "log"), { recursive: true });
  copyFileSync(join(from, "operator.pub.pem"), join(to, "operator.pub.pem"));
  const file = join(to, "log", "data.mdb");
  const bytes = readFileSync(file);
  const [old, wanted] = [Buffer.from(text), Buffer.from(other)];
  for (let at = bytes.indexOf(old); at !== -1; at = bytes.indexOf(old, at + old.length)) wanted.copy(bytes, at);
  writeFileSync(file, bytes);
}
