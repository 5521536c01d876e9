/** Helpers for tests of backups: data directories, and the folders of their backups. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Pool } from "#cairnlog/engine/crypto/pool/pool.js";
import type { BackupManifest } from "#cairnlog/engine/log/history/backupformat.js";
import { cairnlog } from "../cli/harness.js";
import { openData } from "../fsck/everykind.js";

/** Nothing on stderr except progress, which work of more than 5 s reports. On a busy machine it may take that long. */
export const NO_COMPLAINT = expect.stringMatching(/^(?:(?:Backing up|Restoring): \d+ of \d+ \(\d+ %\)\n)*$/);

/** Runs `cairnlog backup`, which must succeed. */
export async function backUp(dataDir: string, to: string): Promise<{ tree_size: number; added: number }> {
  const { code, stdout, stderr } = await cairnlog(["backup", "--data", dataDir, "--to", to, "--json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: NO_COMPLAINT });
  return JSON.parse(stdout);
}

/** The head of the newest entry. */
export async function headOf(dataDir: string, pool: Pool) {
  const { log, close } = await openData(dataDir, pool);
  const head = log.treeHead();
  await close();
  return head!;
}

/** All answers of a log about its entries. */
export async function answers(dataDir: string, size: number, pool: Pool): Promise<unknown[]> {
  const { log, close } = await openData(dataDir, pool);
  const seen: unknown[] = [];
  for (let index = 0; index < size; index++)
    seen.push([
      log.entryJsonAt(index)?.toString(),
      log.treeHead(index + 1),
      log.inclusionProof(index, { treeSize: size }),
    ]);
  await close();
  return seen;
}

export const manifestOf = (folder: string): BackupManifest =>
  JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
