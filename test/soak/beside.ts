/**
 * What else happens to a service in the field, ten seconds after it was done last: a verification, an export, a large page, a
 * search, a scrape, and a reader in another process that is killed and started again.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const READER = fileURLToPath(new URL("./reader.js", import.meta.url));
const PAUSE_MS = 10_000;
/** Paths below the service's address, and the answers that are right: a verification may be asked for 12 times an hour. */
const READS = [
  ["/api/v1/audit/export?format=csv&per_page=10000", [200]],
  ["/api/v1/log?page=1&per_page=200", [200]],
  ["/api/v1/log?title=document&tags=load", [200, 422]],
  ["/metrics", [200]],
] as const;

export class Beside {
  readonly #dataDir: string;
  readonly #problems: string[];
  #url = "";
  #reader: ChildProcess | undefined;
  #stopping = new AbortController();
  #working: Promise<void> = Promise.resolve();

  /** @param problems takes a sentence for each answer that is wrong */
  constructor(dataDir: string, problems: string[]) {
    this.#dataDir = dataDir;
    this.#problems = problems;
  }

  start(url: string): void {
    this.#url = url;
    this.#stopping = new AbortController();
    this.#working = this.#rounds(this.#stopping.signal);
  }

  /** Waits for the answers of what was asked. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
    this.#reader?.kill("SIGKILL");
  }

  async #rounds(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) await this.#round();
    }
  }

  async #round(): Promise<void> {
    // It holds a place in LMDB's list of readers, which nobody gives back for it.
    if (this.#reader && this.#reader.exitCode !== null)
      this.#problems.push(`a reader ended by itself, with exit code ${this.#reader.exitCode}`);
    this.#reader?.kill("SIGKILL");
    this.#reader = spawn(process.execPath, [READER, this.#dataDir], { stdio: ["ignore", "ignore", "inherit"] });
    await this.#ask("/api/v1/log/verify", [200], { method: "POST", body: "{}" });
    for (const [path, right] of READS) await this.#ask(path, right);
  }

  async #ask(path: string, right: readonly number[], init?: RequestInit): Promise<void> {
    try {
      const response = await fetch(this.#url + path, init);
      const body = await response.text();
      if (!right.includes(response.status)) this.#problems.push(`${path} was answered ${response.status}: ${body}`);
      else if (path.endsWith("/verify") && !JSON.parse(body).valid)
        this.#problems.push(`the log is not valid: ${body}`);
    } catch (error) {
      this.#problems.push(`${path}: ${(error as Error).message}`);
    }
  }
}
