/** `cairnlog serve` in a separate process, with resource limits. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { MAIN } from "../../service.js";

/** The environment of such a service. */
export const environment = (dataDir: string) => ({
  ...process.env,
  PORT: "0",
  SERVICE_DATA_DIR: dataDir,
  SERVICE_RATE_LIMITS: "off",
  SERVICE_WORKERS: "1",
});

/** Runs `cairnlog serve` after a line of shell, which may limit it. Its stderr is kept. */
export async function startLimited(line: string, dataDir: string) {
  const child = spawn(
    "bash",
    ["-c", `${line}; exec "$0" "$@"`, process.execPath, MAIN, "serve", "--json", "--no-parent"],
    {
      env: environment(dataDir),
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let log = "";
  child.stderr.on("data", (data) => {
    log += data;
  });
  const [first] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { child, url: JSON.parse(first).url as string, log: () => log };
}
