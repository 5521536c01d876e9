/** Packs the package once for all tests of it: the archives of binaries in it take half a minute of CPU to make. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";

/** What `npm pack --json` says. */
export interface Packed {
  /** Path of the tarball. */
  readonly filename: string;
  /** Bytes of the tarball. */
  readonly size: number;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

declare module "vitest" {
  interface ProvidedContext {
    readonly packed: Packed;
  }
}

export default async function packOnce({ provide }: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-"));
  const pack = ["pack", "--json", "--pack-destination", folder];
  const { stdout } = await promisify(execFile)("npm", pack, {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
    maxBuffer: 1 << 24,
  });
  const [packed] = JSON.parse(stdout) as [Packed];
  provide("packed", { ...packed, filename: join(folder, packed.filename) });
  return () => rmSync(folder, { recursive: true });
}
