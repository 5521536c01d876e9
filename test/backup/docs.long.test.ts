/** The commands of docs/backup.md, run one after the other exactly as they are written there. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { newSigner, submission } from "../server/signers.js";
import { MAIN, scratchFolder, startService } from "../service.js";

const page = readFileSync(fileURLToPath(new URL("../../docs/backup.md", import.meta.url)), "utf8");
const blocks = [...page.matchAll(/<!-- run by test\/backup\/docs\.test\.ts -->\n```sh\n([\s\S]*?)```/g)];
const folder = scratchFolder();
afterAll(() => folder.remove());
const run = promisify(execFile);

test("a backup, a restore and a check go as the page says", async () => {
  expect(blocks).toHaveLength(page.match(/```sh/g)!.length);
  const service = await startService(join(folder.path, "data"));
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify(submission(newSigner()));
  expect((await fetch(`${service.url}/api/v1/attestations`, { method: "POST", headers, body })).status).toBe(200);
  const output: string[] = [];
  for (const [, script] of blocks) {
    const command = `cairnlog() { ${process.execPath} ${MAIN} "$@"; }\n${script}`;
    const env = { ...process.env, SERVER: service.url };
    output.push((await run("bash", ["-euc", command], { cwd: folder.path, env })).stdout);
  }
  expect(await service.stop()).toBe(0);
  expect(output).toEqual([
    "2 entries in ./backup, 2 of them new\n",
    "",
    expect.stringMatching(/^2 entries in \.\/restored; signed by sha256:\w{64}\n$/),
    expect.stringMatching(/^2 entries in \.\/restored; signed by sha256:\w{64}\n$/),
    "2 entries, and nothing differs.\n",
    "2 entries, and nothing differs.\n",
  ]);
});
