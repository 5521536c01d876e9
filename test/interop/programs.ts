/** Programs that use the packages of other makers: built with Debian's Go, or run by Node with what npm installed here. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { temporaryFolder } from "../server/harness.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..");
/** Where Debian's packages of Go libraries are. Nothing is fetched. */
const GO = { GO111MODULE: "off", GOPATH: "/usr/share/gocode", GOFLAGS: "", GOPROXY: "off" };

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Builds a Go program. @param source path from the root of the repository @returns the path of the program */
export async function goProgram(source: string): Promise<string> {
  const folder = temporaryFolder();
  const program = join(folder, "program");
  const env = { ...process.env, ...GO, GOCACHE: join(folder, "cache") };
  await promisify(execFile)("go", ["build", "-o", program, join(root, source)], { env });
  return program;
}

/** Runs a program. A program that ends by a signal, or is not there, fails the test. */
export function run(program: string, ...args: string[]): Promise<Ended> {
  return promisify(execFile)(program, args, { maxBuffer: 1 << 26 }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error) => {
      if (typeof error.code !== "number") throw error;
      return { code: error.code, stdout: error.stdout, stderr: error.stderr };
    },
  );
}

/** Runs a program of `program/` with Node. */
export const runNode = (name: string, ...args: string[]): Promise<Ended> =>
  run(process.execPath, join(here, "program", name), ...args);
