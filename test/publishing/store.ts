/** An S3 store of another maker, of processes that this one starts, with a bucket "logs". */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AwsV4Signer } from "aws4fetch";
import { scratchFolder } from "../service.js";

/** What the command finds in its environment. */
export interface Credentials extends Readonly<Record<string, string>> {
  readonly AWS_ACCESS_KEY_ID: string;
  readonly AWS_SECRET_ACCESS_KEY: string;
}

export abstract class Store {
  readonly url: string;
  readonly #credentials: Credentials;
  readonly #children: ChildProcess[] = [];
  readonly #folder = scratchFolder();

  protected constructor(port: number, credentials: Credentials) {
    this.url = `http://127.0.0.1:${port}`;
    this.#credentials = credentials;
  }

  /** Starts what listens at `url`. */
  protected abstract begin(): Promise<void>;

  /** Starts the store with an empty bucket. @throws Error if one of the programs is not installed, or fails */
  protected async started(): Promise<this> {
    try {
      await this.begin();
      const made = await this.ask("PUT", "");
      if (!made.ok) throw new Error(`the bucket could not be made: ${made.status}`);
      return this;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** The path of a file of the store. */
  protected at(name: string): string {
    return join(this.#folder.path, name);
  }

  protected spawn(program: string, args: readonly string[]): void {
    const said = openSync(this.at("said"), "a");
    const child = spawn(program, args, { stdio: ["ignore", said, said] });
    closeSync(said);
    child.on("error", () => {});
    this.#children.push(child);
  }

  /** Resolves when there are answers at a port. @throws Error if one of its processes ends before */
  protected async listening(port: number): Promise<void> {
    while (!(await fetch(`http://127.0.0.1:${port}`).catch(() => null))) {
      const ended = this.#children.find(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null);
      if (ended) throw new Error(`${ended.spawnfile} has ended: ${readFileSync(this.at("said"), "utf8")}`);
      await sleep(50);
    }
  }

  /** One signed request for an object of the bucket. */
  async ask(method: string, path: string, body?: string | Buffer): Promise<Response> {
    const signer = new AwsV4Signer({
      ...{ method, url: `${this.url}/logs${path}`, service: "s3", region: "us-east-1" },
      accessKeyId: this.#credentials.AWS_ACCESS_KEY_ID,
      secretAccessKey: this.#credentials.AWS_SECRET_ACCESS_KEY,
    });
    const { url, headers } = await signer.sign();
    return fetch(url, { method, headers, ...(body !== undefined && { body: body as BodyInit }) });
  }

  async stop(): Promise<void> {
    const running = this.#children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    for (const child of running.reverse()) {
      const ended = once(child, "exit");
      // What it holds is for these tests alone.
      if (child.kill("SIGKILL")) await ended;
    }
    this.#folder.remove();
  }
}
