/** Three real PostgreSQL servers on loopback: a primary and two streaming standbys, of which one must have each commit. */
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PostgresServer, type Settings, serversFolder, type Upstream } from "./server.js";

const NAMES = ["s1", "s2", "s3"] as const;
/** The database of the log. */
export const DATABASE = "cairnlog";
const PATIENCE_MS = 240_000;

const SETTINGS: Settings = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  synchronous_commit: "on",
  shared_buffers: "32MB",
  // A server that is killed leaves its memory behind, which then goes with its folder.
  dynamic_shared_memory_type: "mmap",
  max_connections: "60",
  // A server that stood still finds what it missed.
  wal_keep_size: "64MB",
  min_wal_size: "8MB",
  wal_log_hints: "on",
  // The defaults are for networks between cities: 5 s, 60 s, 60 s.
  wal_retrieve_retry_interval: "200ms",
  wal_sender_timeout: "5s",
  wal_receiver_timeout: "5s",
};

export interface ClusterOptions {
  /** Settings of all three servers, besides the usual ones. */
  readonly settings?: Settings;
  /** Port at which a server reaches another: by default the other's own. */
  readonly portBetween?: (from: string, to: PostgresServer) => number | Promise<number>;
}

/** Makes and starts three servers in a new folder, within some 6 s. @throws Error if PostgreSQL is not installed */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const cluster = new Cluster(await freePorts(NAMES.length), options);
  try {
    await cluster.start();
  } catch (error) {
    await cluster.remove();
    throw error;
  }
  return cluster;
}

export class Cluster {
  /** Folder of everything. */
  readonly folder: string;
  readonly servers: readonly PostgresServer[];
  readonly #portBetween: NonNullable<ClusterOptions["portBetween"]>;
  /** Servers that may have what their primary does not: those that were primaries, and those that a promotion left out. */
  readonly #diverged = new Set<PostgresServer>();
  readonly #endAll = () => {
    for (const server of this.servers) server.killAtOnce();
  };
  /** The one that `promote` has made primary last. */
  primary: PostgresServer;

  constructor(ports: readonly number[], { settings, portBetween = (_, to) => to.port }: ClusterOptions) {
    this.folder = mkdtempSync(join(tmpdir(), "cairnlog-cluster-"));
    // The servers' user must pass through to its own folder.
    chmodSync(this.folder, 0o711);
    const folder = serversFolder(this.folder);
    this.servers = NAMES.map((name, i) => {
      const others = NAMES.filter((other) => other !== name).join(", ");
      const own = { ...SETTINGS, synchronous_standby_names: `ANY 1 (${others})`, ...settings };
      return new PostgresServer({ name, folder, port: ports[i]!, settings: own });
    });
    this.primary = this.servers[0]!;
    this.#portBetween = portBetween;
    // A process that ends without `remove` leaves no servers behind.
    process.once("exit", this.#endAll);
  }

  async start(): Promise<void> {
    const [first, ...standbys] = this.servers as [PostgresServer, ...PostgresServer[]];
    await first.create();
    // Without standbys no commit would end.
    const names = `ANY 1 (${standbys.map(({ name }) => name).join(", ")})`;
    first.configure({ synchronous_standby_names: "" });
    await first.start();
    await first.query(`CREATE DATABASE ${DATABASE}`);
    await Promise.all(
      standbys.map(async (standby) => {
        await standby.copy(await this.#upstream(standby, first));
        await standby.start();
      }),
    );
    first.configure({ synchronous_standby_names: names });
    await this.settled();
  }

  /** The servers that are not the primary. */
  get standbys(): PostgresServer[] {
    return this.servers.filter((server) => server !== this.primary);
  }

  /** Connection string with all three hosts, for a database of the cluster. */
  url({ user = "postgres", database = DATABASE, ports = this.servers.map(({ port }) => port) } = {}): string {
    return `postgresql://${user}@${ports.map((port) => `127.0.0.1:${port}`).join(",")}/${database}`;
  }

  /** Waits until `count` standbys stream from the primary, and count for a commit. It may be recovering until then. */
  async settled(count = this.standbys.length): Promise<void> {
    const sql = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'quorum'";
    for (const until = Date.now() + PATIENCE_MS; ; await sleep(100)) {
      const streaming = await this.primary.query(sql).then(
        ([row]) => Number(row![0]),
        () => 0,
      );
      if (streaming >= count) return;
      if (Date.now() > until)
        throw new Error(`Only ${streaming} of ${count} standbys stream from ${this.primary.name}.`);
    }
  }

  /** Of the standbys that answer, the one that has received most: the only one that may become primary. */
  async newest(): Promise<PostgresServer> {
    return (await this.#received())[0]!.server;
  }

  /** Whether the primary has on its disk what no standby has received: it cannot follow one of them without a rewind. */
  async isAhead(): Promise<boolean> {
    const sql = "SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn";
    const [[row], [newest]] = await Promise.all([this.primary.query(sql), this.#received()]);
    return newest!.bytes >= 0 && Number(row![0]) > newest!.bytes;
  }

  /** What each standby has received, in bytes of the log of writes, most first; −1 of one that does not answer. */
  async #received(): Promise<{ readonly server: PostgresServer; readonly bytes: number }[]> {
    const sql = "SELECT coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn";
    const received = await Promise.all(
      this.standbys.map(async (server) => ({
        server,
        bytes: await server.query(sql).then(
          (rows) => Number(rows[0]![0]),
          () => -1,
        ),
      })),
    );
    return received.sort((a, b) => b.bytes - a.bytes);
  }

  /**
   * Makes a standby the primary, and has the other one follow it. The old primary is left as it is: `rejoin` or `attach`
   * brings it back.
   */
  async promote(next: PostgresServer): Promise<void> {
    const others = this.standbys.filter((server) => server !== next);
    await next.promote();
    this.#diverged.add(this.primary);
    this.#diverged.delete(next);
    this.primary = next;
    for (const other of others)
      if (other.isRunning) await other.follow(await this.#upstream(other, next));
      else this.#diverged.add(other);
  }

  /**
   * Brings a server back as a standby: started if that is enough, or else rewound to what the primary has; copied again if it
   * cannot be rewound.
   */
  async rejoin(server: PostgresServer): Promise<void> {
    await server.kill();
    if (!this.#diverged.has(server)) return server.start();
    const upstream = await this.#upstream(server, this.primary);
    try {
      await server.rewind(upstream);
      await server.follow(upstream);
    } catch {
      await server.copy(upstream);
    }
    this.#diverged.delete(server);
    await server.start();
  }

  /** Brings a server back as a standby without rewinding it. What it wrote alone stays in it: a mistake of an operator. */
  async attach(server: PostgresServer): Promise<void> {
    await server.kill();
    await server.follow(await this.#upstream(server, this.primary));
    await server.start();
  }

  async #upstream(standby: PostgresServer, primary: PostgresServer): Promise<Upstream> {
    return { server: primary, port: await this.#portBetween(standby.name, primary) };
  }

  /** Ends the servers and deletes their folder. */
  async remove(): Promise<void> {
    process.off("exit", this.#endAll);
    await Promise.all(this.servers.map((server) => server.stop("SIGQUIT")));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Ports of loopback that were free a moment ago. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}
