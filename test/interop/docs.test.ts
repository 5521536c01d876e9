/** The commands of docs/interop.md, run as they stand there against a live service, and what they print. */
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { temporaryFolder } from "../server/harness.js";
import { MAIN } from "../service.js";
import { liveLog } from "./services.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const MARKED = /<!-- run by test\/interop\/docs\.test\.ts -->\n```sh\n([\s\S]*?)```\n```\n([\s\S]*?)```/g;

test("every command does what the page says", async () => {
  const { service } = await liveLog(1_230);
  const folder = temporaryFolder();
  const bin = join(folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "cairnlog"), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`);
  chmodSync(join(bin, "cairnlog"), 0o755);
  symlinkSync(join(root, "docs"), join(folder, "docs"));
  const parts = [...readFileSync(join(root, "docs/interop.md"), "utf8").matchAll(MARKED)];
  expect(parts.length).toBe(3);
  const { stdout } = await promisify(execFile)(
    "bash",
    ["-euo", "pipefail", "-c", parts.map(([, sh]) => sh).join("\n")],
    {
      cwd: folder,
      env: {
        ...process.env,
        PATH: `${bin}:${process.env.PATH}`,
        GOCACHE: join(folder, "cache"),
        SERVER: service.url,
        XDG_STATE_HOME: join(folder, "state"),
      },
    },
  );
  expect(stdout.replace(/\b[0-9a-f]{64}\b/g, "…")).toBe(parts.map(([, , printed]) => printed).join(""));
});
