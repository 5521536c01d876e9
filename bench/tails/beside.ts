/** What goes on beside the attestations whose latency is measured. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { CHECKOUT, type Service } from "../front/service.js";
import { signedSubmissions } from "../load/submissions.js";

/** Where it happens. */
export interface Scene {
  readonly service: Service;
  readonly dataDir: string;
  /** For files of its own. */
  readonly folder: string;
  readonly idleConnections: number;
}

/** Ends what was begun. @returns the number of pieces of work that were begun or, by the service itself, done */
type End = () => Promise<number>;

export interface Beside {
  readonly name: string;
  /** Made before the service starts: further settings. Such a service is compared with one that has none of them. */
  readonly settings?: (folder: string, vkey: string) => Promise<Settings>;
  /** Receivers of webhooks that subscribe to every event. */
  readonly receivers?: "live" | "dead";
  /** Whether it serves TLS. */
  readonly secure?: boolean;
  /** Whether the service goes on with it after its end. */
  readonly isLasting?: boolean;
  /** Begins when attestations have been sent for a while. */
  readonly begin: (scene: Scene) => Promise<End> | End;
}

interface Settings {
  readonly environment: Readonly<Record<string, string>>;
  end(): Promise<void>;
}

/** Milliseconds from one piece of work to the next, if the first has ended. */
const EVERY_MS = 100;
const WAIT_MS = 30_000;
const SLOW_READERS = 100;
/** Bytes that a slow reader takes at a time. */
const SLOW_BYTES = 1_024;
const BATCH = 64;
const BATCHES = 150;
const RELOAD_MS = 1_000;

/** Does it again and again, one after the other. */
function again(work: () => Promise<unknown>, everyMs = EVERY_MS): End {
  let isOver = false;
  const looping = (async () => {
    let count = 0;
    for (; !isOver; count++) {
      const started = performance.now();
      await work();
      await sleep(Math.max(0, started + everyMs - performance.now()));
    }
    return count;
  })();
  return () => {
    isOver = true;
    return looping;
  };
}

async function request({ port }: Service, path: string, init: RequestInit = {}): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, init);
  const body = await answer.text();
  if (!answer.ok) throw new Error(`${path} was answered ${answer.status}`);
  return body;
}

/** What the service does by itself: the sum of a metric since its start. If it is still zero at the end, it is waited for. */
const counted =
  (metric: string) =>
  ({ service }: Scene): End =>
  async () => {
    for (const until = performance.now() + WAIT_MS; ; await sleep(EVERY_MS)) {
      const lines = (await request(service, "/metrics")).split("\n").filter((line) => line.startsWith(metric));
      const sum = lines.reduce((before, line) => before + Number(line.split(" ").at(-1)), 0);
      if (sum > 0 || performance.now() > until) return sum;
    }
  };

/** Reads these paths in turn. */
const reading =
  (...paths: string[]) =>
  ({ service }: Scene): End => {
    let next = 0;
    return again(() => request(service, paths[next++ % paths.length]!));
  };

/** Asks for a verification as soon as the last one is done; what still runs at the end is not waited for. */
function verifying({ service }: Scene): End {
  const over = new AbortController();
  const init = { method: "POST", signal: over.signal };
  const ended = (error: unknown) => {
    if (!over.signal.aborted) throw error;
  };
  const end = again(() => request(service, "/api/v1/log/verify", init).catch(ended));
  return () => {
    over.abort();
    return end();
  };
}

const MAIN = join(CHECKOUT, "dist", "server", "cli", "main.js");
const start = (...args: string[]): ChildProcess =>
  spawn(process.execPath, [MAIN, ...args], { stdio: ["ignore", "pipe", "inherit"] });

/** Makes a whole backup, and another one. */
function backingUp({ dataDir, folder }: Scene): End {
  const to = join(folder, "backup");
  let child: ChildProcess;
  const end = again(async () => {
    child = start("backup", "--data", dataDir, "--to", to);
    child.stdout!.resume();
    await once(child, "exit");
    rmSync(to, { recursive: true, force: true });
  });
  return () => {
    const ended = end();
    child.kill();
    return ended;
  };
}

/** Attestations in batches: several times as many entries, and so runs of postings and merges of runs. */
function merging({ service }: Scene): End {
  const all = signedSubmissions(BATCH * BATCHES, `batches ${Date.now()}`);
  let next = 0;
  return again(async () => {
    const submissions = all.slice(next, next + BATCH);
    next = (next + BATCH) % all.length;
    const headers = { "content-type": "application/json" };
    await request(service, "/api/v1/attestations/batch", {
      method: "POST",
      headers,
      body: JSON.stringify({ submissions }),
    });
  });
}

async function readingSlowly({ service }: Scene): Promise<End> {
  const sockets = new Set<Socket>();
  for (let n = 0; n < SLOW_READERS; n++) {
    const socket = connect(service.port, "127.0.0.1").on("error", () => {});
    await once(socket, "connect");
    socket.pause().write("GET /api/v1/audit/export?page_size=1000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    sockets.add(socket);
  }
  const end = again(async () => {
    for (const socket of sockets) socket.read(SLOW_BYTES);
  });
  return async () => {
    const count = await end();
    for (const socket of sockets) socket.destroy();
    return count;
  };
}

/** Keeps connections open on which nothing is sent. The service closes them after some seconds; then new ones are made. */
async function idling({ service, idleConnections }: Scene): Promise<End> {
  const sockets = new Set<Socket>();
  let count = 0;
  let isOver = false;
  const open = (): Socket => {
    count++;
    const socket = connect(service.port, "127.0.0.1", () => sockets.add(socket));
    socket
      .on("error", () => {})
      .on("close", () => {
        sockets.delete(socket);
        if (!isOver) open();
      });
    return socket.resume();
  };
  while (count < idleConnections) await once(open(), "connect");
  return async () => {
    isOver = true;
    for (const socket of sockets) socket.destroy();
    return count;
  };
}

/** Two witnesses, and a policy by which both of them must cosign each checkpoint of this key. */
async function witnessed(folder: string, vkey: string): Promise<Settings> {
  const logs = join(folder, "logs.txt");
  writeFileSync(logs, `log ${vkey}\n`);
  const witnesses = await Promise.all(
    ["w1", "w2"].map(async (name) => {
      const place = ["--data", join(folder, name), "--name", `witness.example/${name}`, "--port", "0"];
      const child = start("witness", "--logs", logs, "--json", ...place);
      const [line] = (await once(createInterface({ input: child.stdout! }), "line")) as [string];
      const { url, vkey: its } = JSON.parse(line) as { url: string; vkey: string };
      return { child, line: `witness ${name} ${its} ${url}` };
    }),
  );
  const policy = join(folder, "witnesses.policy");
  writeFileSync(policy, `${witnesses.map(({ line }) => line).join("\n")}\ngroup both all w1 w2\nquorum both\n`);
  return {
    environment: { SERVICE_WITNESSES: policy, SERVICE_CHECKPOINT_INTERVAL_S: "1" },
    async end() {
      for (const { child } of witnesses) {
        child.kill();
        await once(child, "exit");
      }
    },
  };
}

/** A certificate that openssl makes. */
async function certified(folder: string): Promise<Settings> {
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost"];
  execFileSync("openssl", ["req", "-x509", ...kind, "-keyout", key, "-out", cert], { stdio: "ignore" });
  return { environment: { SERVICE_TLS_CERT: cert, SERVICE_TLS_KEY: key }, end: async () => {} };
}

/** All of it, in the order in which it is measured. */
export const BESIDE: readonly Beside[] = [
  { name: "verification of the whole log", isLasting: true, begin: verifying },
  { name: "backups", begin: backingUp },
  {
    name: "exports of 1,000 entries",
    begin: reading(...["csv", "json"].map((format) => `/api/v1/audit/export?page_size=1000&format=${format}`)),
  },
  { name: "page 1,000", begin: reading("/api/v1/log?page=1000&per_page=50") },
  {
    name: "searches",
    begin: reading("/api/v1/log?title=w12", "/api/v1/log?tags=tag%207&title=w7", "/api/v1/log?search=docu"),
  },
  { name: "scrapes of metrics", begin: reading("/metrics") },
  { name: "batches, so runs and merges", begin: merging },
  { name: "slow readers", begin: readingSlowly },
  { name: "idle connections", begin: idling },
  { name: "checkpoints with two witnesses", settings: witnessed, begin: counted("cairnlog_cosigned_entries") },
  { name: "live webhooks", receivers: "live", begin: counted("cairnlog_webhook_delivered_total") },
  { name: "dead webhooks", receivers: "dead", begin: counted("cairnlog_webhook_failed_total") },
  {
    name: "reloads of the certificate",
    settings: certified,
    secure: true,
    begin: ({ service }) => again(async () => process.kill(service.pid, "SIGHUP"), RELOAD_MS),
  },
];
