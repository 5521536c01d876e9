/** A PostgreSQL server of this suite, from the machine's own programs. It listens on a socket in its folder only. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Where Debian keeps the programs of each version. */
const DEBIAN = "/usr/lib/postgresql";
const PATIENCE_MS = 30_000;
const POLL_MS = 50;

export interface PostgresServer {
  readonly pid: number;
  /** Of its socket. */
  readonly folder: string;
  readonly dataDir: string;
  close(): Promise<void>;
}

/** The folder of the newest server's programs, and the user who may run them, since PostgreSQL refuses to run as root. */
function findPrograms(): { readonly programs: string; readonly user: { uid?: number; gid?: number } } | null {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const programs = versions
    .map((version) => join(DEBIAN, version, "bin"))
    .find((folder) => ["postgres", "initdb"].every((name) => existsSync(join(folder, name))));
  if (!programs) return null;
  if (process.getuid?.() !== 0) return { programs, user: {} };
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { programs, user: { uid: id("-u"), gid: id("-g") } };
}

/** Makes and starts a server; null if the machine has none. @throws if it does not start */
export async function startPostgres(parent: string): Promise<PostgresServer | null> {
  const found = findPrograms();
  if (!found) return null;
  const { programs, user } = found;
  const folder = join(parent, "postgres");
  const dataDir = join(folder, "data");
  mkdirSync(folder, { mode: 0o700 });
  // Its user must reach its own folder below this one.
  chmodSync(parent, 0o711);
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid!);
  const options = { ...user, cwd: "/", stdio: "ignore" } as const;
  execFileSync(
    join(programs, "initdb"),
    ["-D", dataDir, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"],
    options,
  );
  const settings = ["listen_addresses=", `unix_socket_directories=${folder}`, "shared_buffers=256MB"];
  const child = spawn(
    join(programs, "postgres"),
    ["-D", dataDir, ...settings.flatMap((setting) => ["-c", setting])],
    options,
  );
  const kill = () => child.kill("SIGKILL");
  process.on("exit", kill);
  const exited = once(child, "exit");
  const isReady = () => spawnSync(join(programs, "pg_isready"), ["-h", folder, "-q"]).status === 0;
  for (const until = Date.now() + PATIENCE_MS; !isReady(); await sleep(POLL_MS))
    if (child.exitCode !== null || Date.now() > until) throw new Error("PostgreSQL did not start");
  return {
    pid: child.pid!,
    folder,
    dataDir,
    async close() {
      // "Fast": open connections end, and what is in memory is written.
      child.kill("SIGINT");
      await exited;
      process.off("exit", kill);
    },
  };
}
