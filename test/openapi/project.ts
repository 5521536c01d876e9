/** A project of somebody who has the OpenAPI document of a running service, and the tools of other makers. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type TestService, temporaryFolder } from "../server/harness.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..");
/** The tools tell nobody that they run, and do not look for newer versions of themselves. */
const QUIET = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true", CI: "true" };

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  /** What a person sees: both streams. */
  readonly output: string;
}

export class Project {
  readonly folder = join(temporaryFolder(), "project");

  /** Makes the project: the document as `openapi.json`, the files of `program/`, and the tools. */
  static async of(service: TestService): Promise<Project> {
    const project = new Project();
    mkdirSync(project.folder);
    cpSync(join(here, "program"), project.folder, { recursive: true });
    symlinkSync(join(here, "node_modules"), join(project.folder, "node_modules"));
    project.write("package.json", JSON.stringify({ private: true, type: "module" }));
    project.write("openapi.json", (await service.get("/openapi.json")).text);
    return project;
  }

  write(name: string, content: string): void {
    writeFileSync(join(this.folder, name), content);
  }

  /** Runs one of the tools. */
  tool(name: string, ...args: string[]): Promise<Ended> {
    return this.#run(join(here, "node_modules", ".bin", name), args);
  }

  /** Compiles the project with the TypeScript of the tools, or with that of the repository. */
  compile(which: "tools" | "repository"): Promise<Ended> {
    const folder = which === "tools" ? here : root;
    const types = ["--typeRoots", join(root, "node_modules", "@types")];
    return this.#run(join(folder, "node_modules", ".bin", "tsc"), ["--project", this.folder, ...types]);
  }

  /** Runs a compiled program. */
  run(file: string, ...args: string[]): Promise<Ended> {
    return this.#run(process.execPath, [join(this.folder, "built", file), ...args]);
  }

  async #run(command: string, args: readonly string[]): Promise<Ended> {
    const options = { cwd: this.folder, env: { ...process.env, ...QUIET }, maxBuffer: 1 << 26 };
    return promisify(execFile)(command, [...args], options).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, output: stdout + stderr }),
      (error) => {
        if (typeof error.code !== "number") throw error;
        return { code: error.code, stdout: error.stdout, output: error.stdout + error.stderr };
      },
    );
  }
}
