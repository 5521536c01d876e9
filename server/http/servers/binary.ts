/**
 * Finds the binary of uWebSockets.js. The library has one for each platform and version of Node, 257 MB of them, so it is
 * not a dependency: `scripts/uws.mjs` puts what is supported into `dist/uws`. A build of a checkout has the binaries of its
 * platform there. The published package has an archive for each platform; the binary is taken out of it on first use.
 */
import { randomUUID } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";

const OTHERS_MAY_WRITE = 0o022;

/** Place of each binary in the archive of its platform, by `<platform>_<arch>_<abi>`. */
type Index = Readonly<Record<string, { readonly offset: number; readonly length: number }>>;

/** @param packaged the folder `dist/uws` @returns path of the binary, which is taken out of its archive if need be */
export function uwsBinary(packaged: string): string {
  const platform = `${process.platform}_${process.arch}`;
  const key = `${platform}_${process.versions.modules}`;
  const name = `uws_${key}.node`;
  if (existsSync(join(packaged, name))) return join(packaged, name);
  const index = join(packaged, "index.json");
  const place = existsSync(index) ? (JSON.parse(readFileSync(index, "utf8")) as Index)[key] : undefined;
  if (!place) throw new Error(`there is no binary for Node ${process.versions.node} on ${platform}`);
  const content = () =>
    brotliDecompressSync(readFileSync(join(packaged, `${platform}.br`))).subarray(
      place.offset,
      place.offset + place.length,
    );
  try {
    return written(join(packaged, name), content);
  } catch (error) {
    if (!["EACCES", "EPERM", "EROFS"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    // The package belongs to somebody else, or is on a file system that is read-only.
    return written(join(ownFolder(), name), content);
  }
}

/**
 * A folder for temporary files that only this user can write to: what is loaded from it was written by him. It stays, so that
 * later starts find the file.
 */
function ownFolder(): string {
  const user = process.getuid?.() ?? userInfo().username;
  const path = join(tmpdir(), `cairnlog-uws-${user}`);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(path);
  const isOwn = process.getuid === undefined || (uid === user && (mode & OTHERS_MAY_WRITE) === 0);
  if (!isOwn) throw new Error(`${path} can be written to by other users`);
  return path;
}

/** Writes the file, whole or not at all, unless it is there. Other processes may write the same file at the same time. */
function written(path: string, content: () => Buffer): string {
  if (existsSync(path)) return path;
  const bytes = content();
  const fresh = `${path}.${randomUUID()}`;
  const file = openSync(fresh, "wx", 0o755);
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
    fsyncSync(file);
    closeSync(file);
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
  return path;
}
