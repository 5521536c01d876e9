/** Witnesses over real HTTP: in this process, and as processes of the command. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pino } from "pino";
import { afterAll, expect } from "vitest";
import { type NoteKey, parseVkey, verifyNote } from "#cairnlog/engine/verify/index.js";
import { type RunningWitness, startWitness, type WitnessSettings } from "#cairnlog/server/witness/server.js";
import { temporaryFolder, WANTED_TRANSPORT } from "../server/harness.js";
import { MAIN } from "../service.js";
import type { WitnessedTree } from "./logs.js";

export const NAME = "witness.example/w1";
const started = new Set<RunningWitness>();
const children = new Set<ChildProcess>();
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  for (const witness of started) await witness.close();
});

export interface Reply {
  readonly status: number;
  readonly type: string | null;
  readonly text: string;
}

/** Requests to a witness. */
export class WitnessClient {
  readonly url: string;
  readonly key: NoteKey;

  constructor(url: string, vkey: string) {
    this.url = url;
    this.key = parseVkey(vkey);
  }

  async add(body: string | Uint8Array): Promise<Reply> {
    return this.send("/add-checkpoint", { method: "POST", body: body as BodyInit });
  }

  async send(path: string, init: RequestInit = {}): Promise<Reply> {
    const response = await fetch(this.url + path, init);
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
  }

  /** The size from which the witness wants to go on. */
  async size(tree: WitnessedTree): Promise<number> {
    const { status, text } = await this.add(tree.body(0, 1));
    return status === 200 ? 1 : Number(text);
  }

  /** Expects a valid cosignature of the checkpoint of this size. @returns its time */
  async expectCosigned({ status, text }: Reply, tree: WitnessedTree, size: number): Promise<number> {
    expect({ status, text }).toEqual({ status: 200, text: expect.stringMatching(/^\u2014 \S+ \S+\n$/) });
    const verified = await verifyNote(tree.note(size) + text, [this.key]);
    expect(verified?.signatures).toHaveLength(1);
    return verified!.signatures[0]!.time!;
  }
}

/** A file with the logs of these trees. */
export function logsFile(trees: readonly Pick<WitnessedTree, "signer">[]): string {
  const path = join(temporaryFolder(), "logs.txt");
  writeFileSync(path, `# logs\n\n${trees.map(({ signer }) => `log ${signer.vkey}\n`).join("")}`);
  return path;
}

/** What is logged, as lines of JSON. */
export const silentLogger = (lines: string[] = []) =>
  pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });

/** Starts a witness in this process. */
export async function startTestWitness(
  trees: readonly Pick<WitnessedTree, "signer">[],
  settings: Partial<WitnessSettings> = {},
  lines: string[] = [],
): Promise<WitnessClient & { readonly running: RunningWitness; readonly dataDir: string }> {
  const dataDir = settings.dataDir ?? temporaryFolder();
  const running = await startWitness(
    {
      dataDir,
      logsFile: settings.logsFile ?? logsFile(trees),
      name: NAME,
      algorithm: "ed25519",
      host: "127.0.0.1",
      port: 0,
      prefix: "",
      tls: null,
      transport: WANTED_TRANSPORT,
      ...settings,
    },
    silentLogger(lines),
  );
  started.add(running);
  return Object.assign(new WitnessClient(running.url, running.vkey), { running, dataDir });
}

export interface WitnessProcess extends WitnessClient {
  readonly child: ChildProcess;
  /** The exit code, or the name of the signal that ended it. */
  readonly exited: Promise<number | string | null>;
  /** Ends it and waits for that. @returns the exit code, or the name of the signal that ended it */
  end(signal: NodeJS.Signals): Promise<number | string | null>;
}

/** Starts `cairnlog witness` on a free port. @throws Error if it ends before it listens */
export async function spawnWitness(
  dataDir: string,
  logs: string,
  more: readonly string[] = [],
  stderr: "inherit" | "pipe" | "ignore" = "inherit",
  environment: Readonly<Record<string, string>> = {},
  started: (child: ChildProcess) => void = () => {},
): Promise<WitnessProcess> {
  const args = ["witness", "--data", dataDir, "--logs", logs, "--name", NAME, "--port", "0", "--json", ...more];
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", stderr],
  });
  children.add(child);
  started(child);
  const exited = once(child, "exit").then(([code, signal]): number | string | null => signal ?? code);
  const [line] = (await Promise.race([
    once(createInterface({ input: child.stdout! }), "line"),
    exited.then((code) => {
      throw new Error(`the witness ended before it listened: ${code}`);
    }),
  ])) as [string];
  const { url, vkey } = JSON.parse(line) as { url: string; vkey: string };
  return Object.assign(new WitnessClient(url, vkey), {
    child,
    exited,
    end(signal: NodeJS.Signals) {
      child.kill(signal);
      return exited;
    },
  });
}
