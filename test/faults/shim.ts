/**
 * Makes system calls of a service fail: `shim.c`, compiled and preloaded. A preloaded library counts calls of the whole
 * process in one order, tells LMDB's calls from Node's, and really writes the first half of what is written short; strace
 * counts for each thread, and leaves a call out altogether when it changes its result.
 */
import { execFileSync } from "node:child_process";
import { closeSync, ftruncateSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { DIST } from "../reliability/planted.js";

export type ErrorName = "EIO" | "ENOSPC" | "EDQUOT" | "EINTR" | "ENOMEM" | "EROFS" | "short" | "killed";

/** One failure: which call on which file, when, and how. */
export interface Rule {
  /** Name of the call and its caller, for example `pwrite64@lmdb`; `*` is every call that writes. */
  readonly call: string;
  /** Below the data directory, with N for every run of digits; `*` is every file. */
  readonly path: string;
  /** Counted from 1 after `arm`. */
  readonly nth: number;
  readonly error: ErrorName;
  /** Whether all later calls fail as well. */
  readonly lasts: boolean;
}

/** A call that the service made. */
export interface Call {
  readonly call: string;
  readonly path: string;
  /** Whether it was made to fail. */
  readonly hasFailed: boolean;
}

const SOURCE = join(dirname(DIST), "test", "faults", "shim.c");

// The layout of `struct control`, in bytes.
const ARMED = 0;
const INJECTED = 20;
const CALLS = 64;
const PATH = 256;
const LENGTH = 4096;

/** @returns the library. @throws Error where no C compiler is installed: the harness cannot do its work then */
export function compileShim(folder: string): string {
  const library = join(folder, "shim.so");
  try {
    execFileSync("cc", ["-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], {
      stdio: ["ignore", "pipe", "pipe"],
      encoding: "utf8",
    });
  } catch (error) {
    const { stderr = "", message } = error as Error & { stderr?: string };
    throw new Error(`No C compiler, or it fails (Debian: apt-get install gcc libc6-dev): ${message}\n${stderr}`);
  }
  return library;
}

/** The shim of one service. */
export class Injector {
  readonly #environment: Readonly<Record<string, string>>;
  readonly #control: number;
  readonly #trace: string;

  /** @param folder for its files, which must not be in the data directory */
  constructor(library: string, folder: string, dataDir: string) {
    const control = join(folder, "control");
    this.#trace = join(folder, "trace");
    this.#control = openSync(control, "w+");
    ftruncateSync(this.#control, LENGTH);
    writeFileSync(this.#trace, "");
    this.#environment = {
      LD_PRELOAD: library,
      FAULTS_DATA: dataDir,
      FAULTS_CONTROL: control,
      FAULTS_TRACE: this.#trace,
    };
  }

  /** What the service must be started with. */
  get environment(): Readonly<Record<string, string>> {
    return this.#environment;
  }

  /** From now on the calls that `rule` names are counted, and fail when it says so. */
  arm({ call, path, nth, error, lasts }: Rule): void {
    const fields = Buffer.alloc(LENGTH);
    const number = error === "short" ? 0 : error === "killed" ? -1 : constants.errno[error];
    for (const [i, value] of [0, nth, number, Number(lasts)].entries()) fields.writeInt32LE(value, 4 * i);
    fields.write(` ${call} `, CALLS);
    fields.write(path, PATH);
    writeSync(this.#control, fields, 0, LENGTH, 0);
    this.#setArmed(1);
  }

  /** The fault is over. */
  disarm(): void {
    this.#setArmed(0);
  }

  #setArmed(value: number): void {
    const field = Buffer.alloc(4);
    field.writeInt32LE(value);
    writeSync(this.#control, field, 0, 4, ARMED);
  }

  /** Calls that were made to fail since `arm`. */
  get injected(): number {
    const field = Buffer.alloc(4);
    readSync(this.#control, field, 0, 4, INJECTED);
    return field.readInt32LE();
  }

  /** All calls until now, in order. */
  calls(): Call[] {
    const lines = readFileSync(this.#trace, "utf8").split("\n").slice(0, -1);
    return lines.map((line) => {
      const [call = "", path = "", verdict] = line.split(" ");
      return { call, path, hasFailed: verdict !== undefined };
    });
  }

  close(): void {
    closeSync(this.#control);
  }
}
