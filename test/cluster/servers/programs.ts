/** PostgreSQL's own programs, and the user who may run a server: PostgreSQL refuses to run as root. */
import { type ExecFileOptions, execFile, execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The oldest version that the journal supports. */
export const OLDEST_VERSION = 15;

/** Where Debian keeps the programs of each version. */
const DEBIAN = "/usr/lib/postgresql";

export interface User {
  readonly uid: number;
  readonly gid: number;
}

/** The folder of the newest PostgreSQL: that of the PATH, or of Debian. @throws Error if there is none, or it is too old */
export function findPrograms(): string {
  const onPath = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder);
  const ofDebian = existsSync(DEBIAN)
    ? readdirSync(DEBIAN)
        .sort((a, b) => Number(b) - Number(a))
        .map((version) => join(DEBIAN, version, "bin"))
    : [];
  // The PATH of Debian has wrappers of the clients, but no server.
  const folder = [...onPath, ...ofDebian].find(
    (folder) => existsSync(join(folder, "pg_basebackup")) && hasServer(folder),
  );
  if (!folder) throw new Error("PostgreSQL is not installed (Debian: apt-get install postgresql).");
  const said = execFileSync(join(folder, "postgres"), ["--version"], { encoding: "utf8" });
  const version = Number(/(\d+)/.exec(said)?.[1]);
  if (version < OLDEST_VERSION)
    throw new Error(`PostgreSQL ${OLDEST_VERSION} or newer is needed; ${folder} has ${version}.`);
  return folder;
}

const hasServer = (folder: string): boolean => ["postgres", "initdb"].every((name) => existsSync(join(folder, name)));

/** The user that runs the servers: `postgres` if this process is root's, else null for its own. @throws Error if there is none */
export function findUser(): User | null {
  if (process.getuid?.() !== 0) return null;
  const number = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  try {
    return { uid: number("-u"), gid: number("-g") };
  } catch (cause) {
    throw new Error("PostgreSQL does not run as root, and there is no user postgres.", { cause });
  }
}

/** Runs a program to its end. Returns its standard output. @throws Error that holds what it said */
export function run(program: string, args: readonly string[], options: ExecFileOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { maxBuffer: 2 ** 30, ...options, encoding: "utf8" }, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      const how = error.killed ? "did not end in time" : `failed (${error.signal ?? error.code})`;
      reject(new Error(`${program} ${how}: ${stderr || error.message}`, { cause: error }));
    });
  });
}
