/** One PostgreSQL server on loopback, as a child of this process: it can be killed, frozen, promoted and rewound. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { childrenOf, type ServerProcess, signal } from "./processes.js";
import { findPrograms, findUser, run, type User } from "./programs.js";

/** Milliseconds for a start, a stop, a promotion. Most take less than a second. */
const PATIENCE_MS = 240_000;
/** Milliseconds for a query. A server that is frozen does not answer. */
const QUERY_MS = 30_000;

export type Settings = Readonly<Record<string, string>>;

export interface ServerPlace {
  /** Name of the server, and its `application_name` at the primary. */
  readonly name: string;
  /** Existing folder, which the servers' user may write to. */
  readonly folder: string;
  readonly port: number;
  readonly settings: Settings;
}

/** How a standby reaches its primary. */
export interface Upstream {
  readonly server: PostgresServer;
  /** Port of `server`, or of a link to it. */
  readonly port: number;
}

export class PostgresServer {
  readonly name: string;
  readonly port: number;
  readonly dataDir: string;
  /** What the server says. */
  readonly logFile: string;
  readonly #configFile: string;
  readonly #programs = findPrograms();
  readonly #user: User | null = findUser();
  #settings: Settings;
  #process: ChildProcess | null = null;

  constructor({ name, folder, port, settings }: ServerPlace) {
    this.name = name;
    this.port = port;
    this.#settings = settings;
    this.dataDir = join(folder, name);
    this.logFile = join(folder, `${name}.log`);
    // Outside the data directory, since pg_basebackup and pg_rewind replace what is in there.
    this.#configFile = join(folder, `${name}.conf`);
  }

  /** Makes an empty primary. */
  async create(): Promise<void> {
    await this.#run("initdb", [
      "-D",
      this.dataDir,
      "-A",
      "trust",
      "-U",
      "postgres",
      "-E",
      "UTF8",
      "-k",
      "-N",
      "--locale=C",
      // A rewind copies all segments.
      "--wal-segsize=1",
    ]);
  }

  /** Makes a standby: a copy of a primary that runs, with a slot of its own there. */
  async copy({ server, port }: Upstream): Promise<void> {
    this.#mustBeStopped();
    rmSync(this.dataDir, { recursive: true, force: true });
    await server.query(
      `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '${this.name}'`,
    );
    const way = `host=127.0.0.1 port=${port} user=postgres application_name=${this.name}`;
    await this.#run("pg_basebackup", ["-D", this.dataDir, "-d", way, "-R", "-C", "-S", this.name, "-c", "fast", "-N"]);
  }

  /** Starts it. Resolves when it answers queries. @throws Error with the end of its log if it ends */
  async start(): Promise<void> {
    this.launch();
    const process = this.#process!;
    for (const until = Date.now() + PATIENCE_MS; ; await sleep(30)) {
      if (process.exitCode !== null || process.signalCode !== null || Date.now() > until)
        throw new Error(`${this.name} does not start:\n${this.#lastWords()}`);
      if (await this.isReady()) return;
    }
  }

  /** Starts it without waiting. */
  launch(): void {
    this.#mustBeStopped();
    writeFileSync(this.#configFile, this.#config());
    const log = openSync(this.logFile, "a");
    const args = ["-D", this.dataDir, "-c", `config_file=${this.#configFile}`];
    // In a process group of its own: Ctrl-C on a terminal is for those who started it.
    const options: SpawnOptions = { ...this.#user, cwd: "/", stdio: ["ignore", log, log], detached: true };
    this.#process = spawn(join(this.#programs, "postgres"), args, options);
    closeSync(log);
  }

  /** Whether it answers queries now. */
  async isReady(): Promise<boolean> {
    const args = ["-h", "127.0.0.1", "-p", String(this.port), "-t", "1", "-q"];
    return run(join(this.#programs, "pg_isready"), args).then(
      () => true,
      () => false,
    );
  }

  /** Whether it answers queries, now or soon: a busy machine makes it late. */
  async becomesReady(): Promise<boolean> {
    for (const until = Date.now() + QUERY_MS; this.isRunning && Date.now() < until; await sleep(100))
      if (await this.isReady()) return true;
    return false;
  }

  get isRunning(): boolean {
    const process = this.#process;
    return process !== null && process.exitCode === null && process.signalCode === null;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Stops it in order; connections are ended. @param how `SIGQUIT` for at once, without writing anything */
  async stop(how: "SIGINT" | "SIGQUIT" = "SIGINT"): Promise<void> {
    if (!this.isRunning) return;
    this.thaw();
    const ended = once(this.#process!, "exit");
    const late = setTimeout(() => this.kill(), PATIENCE_MS);
    this.#process!.kill(how);
    await ended;
    clearTimeout(late);
  }

  /** Ends all its processes at once, as a power cut does; what it has written stays. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    const ended = once(this.#process!, "exit");
    this.killAtOnce();
    await ended;
  }

  /** Like `kill`, without waiting. */
  killAtOnce(): void {
    if (!this.isRunning) return;
    // The postmaster first, so that it starts no others.
    const children = this.processes();
    signal(this.#process!.pid!, "SIGKILL");
    for (const { pid } of children) signal(pid, "SIGKILL");
  }

  /** Stops the processor for all its processes, or for those whose title matches. Connections stay open. */
  freeze(which?: RegExp): ServerProcess[] {
    return this.#signal("SIGSTOP", which);
  }

  /** Lets everything run again. */
  thaw(): void {
    this.#signal("SIGCONT");
  }

  /** Kills one of its processes. PostgreSQL then ends all the others, and recovers. */
  killProcess(which: RegExp): boolean {
    const [found] = this.processes().filter(({ title }) => which.test(title));
    if (found) signal(found.pid, "SIGKILL");
    return found !== undefined;
  }

  /** Its processes but the first. */
  processes(): ServerProcess[] {
    return this.isRunning ? childrenOf(this.#process!.pid!) : [];
  }

  #signal(name: NodeJS.Signals, which?: RegExp): ServerProcess[] {
    if (!this.isRunning) return [];
    if (!which) signal(this.#process!.pid!, name);
    const chosen = this.processes().filter(({ title }) => !which || which.test(title));
    for (const { pid } of chosen) signal(pid, name);
    return chosen;
  }

  /** Makes this standby a primary. */
  async promote(): Promise<void> {
    await this.query(`SELECT pg_promote(true, ${PATIENCE_MS / 1000})`, "postgres", PATIENCE_MS);
    // Until then pg_rewind takes a server that it finds on the old timeline for one that needs nothing.
    await this.query("CHECKPOINT", "postgres", PATIENCE_MS);
  }

  /** Gives up what it wrote and the other server does not have. `follow` must say then whom it follows. */
  async rewind({ port }: Upstream): Promise<void> {
    this.#mustBeStopped();
    // Of a server that was killed, pg_rewind first finishes the recovery, which a standby does not.
    rmSync(join(this.dataDir, "standby.signal"), { force: true });
    const source = `host=127.0.0.1 port=${port} user=postgres dbname=postgres`;
    await this.#run("pg_rewind", ["-D", this.dataDir, "--source-server", source, "-N"]);
  }

  /** Makes it a standby of another server, from its next start or, if it runs as a standby, at once. */
  async follow({ server, port }: Upstream): Promise<void> {
    const slots = "SELECT 1 FROM pg_replication_slots WHERE slot_name = ";
    await server.query(
      `SELECT pg_create_physical_replication_slot('${this.name}') WHERE NOT EXISTS (${slots}'${this.name}')`,
    );
    const conninfo = `host=127.0.0.1 port=${port} user=postgres application_name=${this.name}`;
    this.#write("postgresql.auto.conf", `primary_conninfo = '${conninfo}'\nprimary_slot_name = '${this.name}'\n`);
    this.#write("standby.signal", "");
    if (this.isRunning) this.reload();
  }

  /** Changes settings. Those that only a start reads take effect at the next. */
  configure(settings: Settings): void {
    this.#settings = { ...this.#settings, ...settings };
    writeFileSync(this.#configFile, this.#config());
    if (this.isRunning) this.reload();
  }

  reload(): void {
    signal(this.#process!.pid!, "SIGHUP");
  }

  /** Whether it is a standby. */
  async isStandby(): Promise<boolean> {
    return (await this.query("SELECT pg_is_in_recovery()"))[0]![0] === "t";
  }

  /** Runs statements by psql. @returns the rows of the last one, as text @throws Error of the server */
  async query(sql: string, database = "postgres", milliseconds = QUERY_MS): Promise<string[][]> {
    const connection = ["-h", "127.0.0.1", "-p", String(this.port), "-U", "postgres", "-d", database];
    const form = ["-X", "-q", "-t", "-A", "-F", "\t", "-v", "ON_ERROR_STOP=1"];
    const text = await run(join(this.#programs, "psql"), [...connection, ...form, "-c", sql], {
      timeout: milliseconds,
      env: { ...process.env, PGCONNECT_TIMEOUT: "5", PGAPPNAME: "rig" },
    });
    return text.split("\n").flatMap((line) => (line ? [line.split("\t")] : []));
  }

  /** Runs a file of statements by psql, as an administrator does. @throws Error of the first that fails */
  async runFile(path: string): Promise<void> {
    const connection = ["-h", "127.0.0.1", "-p", String(this.port), "-U", "postgres", "-d", "postgres"];
    await run(join(this.#programs, "psql"), [...connection, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", path]);
  }

  #run(program: string, args: readonly string[]): Promise<string> {
    return run(join(this.#programs, program), args, { ...this.#user, cwd: "/" });
  }

  #write(name: string, text: string): void {
    const path = join(this.dataDir, name);
    writeFileSync(path, text, { mode: 0o600 });
    if (this.#user) chownSync(path, this.#user.uid, this.#user.gid);
  }

  #config(): string {
    const settings = { ...this.#settings, port: String(this.port) };
    return Object.entries(settings)
      .map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`)
      .join("");
  }

  #mustBeStopped(): void {
    if (this.isRunning) throw new Error(`${this.name} runs.`);
  }

  #lastWords(): string {
    return readFileSync(this.logFile, "utf8").split("\n").slice(-20).join("\n");
  }
}

/** A new folder below `parent` for servers. */
export function serversFolder(parent: string): string {
  const path = join(parent, "postgres");
  mkdirSync(path, { mode: 0o700 });
  const user = findUser();
  if (user) chownSync(path, user.uid, user.gid);
  return path;
}
