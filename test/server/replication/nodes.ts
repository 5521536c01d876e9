/** Nodes of a replicated log as processes, over real PostgreSQL servers. */
import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { freePorts } from "../../cluster/servers/cluster.js";
import { MAIN, type RunningService, startService } from "../../service.js";

const run = promisify(execFile);
const PATIENCE_MS = 60_000;

/** A log of several nodes: their operator key, and where each of them is. */
export class Nodes {
  readonly folder = mkdtempSync(join(tmpdir(), "cairnlog-nodes-"));
  readonly #url: string;
  readonly #environment: Record<string, string>;
  readonly #running = new Set<RunningService>();
  readonly #ports = new Map<string, number>();

  constructor(url: string, environment: Record<string, string> = {}) {
    this.#url = url;
    this.#environment = environment;
    writeFileSync(join(this.folder, "operator.pem"), generatePrivateKey("ed25519"), { mode: 0o600 });
  }

  dataOf(name: string): string {
    return join(this.folder, name);
  }

  async urlOf(name: string): Promise<string> {
    if (!this.#ports.has(name)) this.#ports.set(name, (await freePorts(1))[0]!);
    return `http://127.0.0.1:${this.#ports.get(name)}`;
  }

  async environmentOf(name: string): Promise<Record<string, string>> {
    const url = await this.urlOf(name);
    mkdirSync(this.dataOf(name), { recursive: true, mode: 0o700 });
    // Each node has the key in its own directory, as on machines of their own.
    copyFileSync(join(this.folder, "operator.pem"), join(this.dataOf(name), "operator.pem"));
    return {
      PORT: new URL(url).port,
      SERVICE_DATA_DIR: this.dataOf(name),
      SERVICE_REPLICATION: this.#url,
      SERVICE_NODE_URL: url,
      SERVICE_WORKERS: "1",
      SERVICE_FRONT_ENDS: "1",
      LOG_LEVEL: "fatal",
      ...this.#environment,
    };
  }

  /** Runs a command with the settings of a node. @returns what it prints, and its exit code */
  async command(name: string, ...args: string[]): Promise<{ stdout: string; stderr: string; code: number }> {
    const env = { ...process.env, ...(await this.environmentOf(name)) };
    try {
      return { ...(await run(process.execPath, [MAIN, ...args], { env })), code: 0 };
    } catch (error) {
      const { stdout, stderr, code } = error as { stdout: string; stderr: string; code: number };
      return { stdout, stderr, code };
    }
  }

  /** Starts a node. @param args of `serve`, further ones */
  async start(name: string, ...args: string[]): Promise<RunningService> {
    const service = await startService(this.dataOf(name), await this.environmentOf(name), { args });
    this.#running.add(service);
    void service.exited.then(() => this.#running.delete(service));
    return service;
  }

  /** Ends what still runs, and deletes everything. */
  async remove(): Promise<void> {
    for (const { process: child, exited } of this.#running) {
      child.kill("SIGCONT");
      child.kill("SIGKILL");
      await exited;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Waits until `path` of a node answers with this status. @throws Error if it does not in time */
export async function until(url: string, path: string, status: number): Promise<void> {
  const started = performance.now();
  for (;;) {
    const answer = await fetch(url + path).catch(() => null);
    if (answer?.status === status) return;
    if (performance.now() - started > PATIENCE_MS)
      throw new Error(
        `${url}${path} does not answer ${status}: ${answer ? `${answer.status} ${await answer.text()}` : "no answer"}`,
      );
    await answer?.arrayBuffer();
    await sleep(20);
  }
}

/** Waits until a node has so many entries, and returns the head of that size. */
export async function headAt(url: string, size: number): Promise<unknown> {
  await until(url, `/api/v1/log/sth/${size}`, 200);
  return (await fetch(`${url}/api/v1/log/sth/${size}`)).json();
}
