/** Three PostgreSQL servers, nodes of one log, and the ways between all of them, each of which can be cut. */
import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mainOf } from "../../reliability/planted.js";
import { type Cluster, freePorts, startCluster } from "../servers/cluster.js";
import { Link } from "../servers/link.js";
import type { PostgresServer, Settings } from "../servers/server.js";
import { Node } from "./node.js";
import { Tap } from "./tap.js";

/** Milliseconds until a node must lead: far more than a lease. */
const PATIENCE_MS = 240_000;

export interface RigOptions {
  readonly dist: string;
  /** Number of nodes; default 2. */
  readonly nodes?: number;
  /** Whether all connections pass through links; without them nothing is between a node and a server. */
  readonly hasLinks?: boolean;
  /** Whether the clocks of nodes can be set, for which each of their threads reads a file fifty times a second. */
  readonly hasClocks?: boolean;
  /** Ports of the nodes; free ones if absent. */
  readonly ports?: readonly number[];
  /** Settings of the nodes. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Settings of the servers. */
  readonly settings?: Settings;
}

export class Rig {
  readonly cluster: Cluster;
  readonly nodes: readonly Node[];
  /** Public key of the operator, PEM. */
  readonly operatorKey: string;
  /** What passes between nodes and servers, if there are links. */
  readonly tap: Tap;
  readonly #dist: string;
  readonly #links: ReadonlyMap<string, Link>;
  readonly #killAll = () => {
    for (const node of this.nodes) node.killAtOnce();
  };

  private constructor(
    parts: Pick<Rig, "cluster" | "nodes" | "operatorKey" | "tap"> & { dist: string; links: ReadonlyMap<string, Link> },
  ) {
    this.cluster = parts.cluster;
    this.nodes = parts.nodes;
    this.operatorKey = parts.operatorKey;
    this.tap = parts.tap;
    this.#dist = parts.dist;
    this.#links = parts.links;
    process.once("exit", this.#killAll);
  }

  /** Starts everything: servers, an empty journal, nodes. Resolves when one of them leads. */
  static async start(options: RigOptions): Promise<Rig> {
    const { dist, nodes: count = 2, hasLinks = false, hasClocks = false, settings = {}, environment = {} } = options;
    const links = new Map<string, Link>();
    const tap = new Tap();
    // Links are opened while the cluster starts.
    let primary = (): PostgresServer | undefined => undefined;
    const portOf = async (from: string, to: PostgresServer): Promise<number> => {
      if (!hasLinks) return to.port;
      const name = `${from}-${to.name}`;
      const observe = () => (from.startsWith("n") ? tap.observer(() => to !== primary()) : null);
      const link = links.get(name) ?? (await Link.open(to.port, observe));
      links.set(name, link);
      return link.port;
    };
    const cluster = await startCluster({ settings, portBetween: portOf });
    primary = () => cluster.primary;
    let rig: Rig | undefined;
    try {
      const folder = join(cluster.folder, "nodes");
      mkdirSync(folder, { mode: 0o700 });
      const key = generateKeyPairSync("ed25519");
      const operatorKey = join(folder, "operator.pem");
      writeFileSync(operatorKey, key.privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
      const ports = options.ports ?? (await freePorts(count));
      const nodes: Node[] = [];
      for (const [i, port] of ports.entries()) {
        const name = `n${i + 1}`;
        const reached = await Promise.all(cluster.servers.map((server) => portOf(name, server)));
        const journal = cluster.url({ ports: reached });
        nodes.push(new Node({ name, folder, port, dist, journal, operatorKey, environment, hasClock: hasClocks }));
      }
      const publicKey = key.publicKey.export({ type: "spki", format: "pem" }).toString();
      rig = new Rig({ cluster, nodes, operatorKey: publicKey, tap, dist, links });
      await rig.command(nodes[0]!, ["replicate", "init", "--json"]);
      await Promise.all(nodes.map((node) => node.start()));
      await rig.leader();
      return rig;
    } catch (error) {
      await (rig ?? cluster).remove();
      throw error;
    }
  }

  /** The links whose name matches: `n1-s2` is the way from node n1 to server s2, `s3-s1` that from standby s3 to s1. */
  links(which: RegExp): Link[] {
    return [...this.#links].flatMap(([name, link]) => (which.test(name) ? [link] : []));
  }

  /** Lets all links pass again. */
  heal(): void {
    for (const link of this.#links.values()) if (link.isCut) link.heal();
  }

  /** Mends everything: all servers run, one of them as primary and the others stream from it, and all nodes run. */
  async restore(): Promise<void> {
    const { cluster } = this;
    this.heal();
    for (const node of this.nodes) {
      node.thaw();
      node.clock.set(0);
    }
    for (const server of cluster.servers) server.thaw();
    if (!cluster.primary.isRunning) await cluster.primary.start();
    // All at once: nodes that start must find their way while servers come back.
    await Promise.all([
      ...this.nodes.map((node) => (node.isRunning ? null : node.start())),
      ...cluster.standbys.map(async (server) => {
        if (!(await server.becomesReady()) || !(await server.isStandby())) await cluster.rejoin(server);
      }),
    ]);
    await cluster.settled();
  }

  /** The node that leads, as soon as there is one. */
  async leader(milliseconds = PATIENCE_MS): Promise<Node> {
    for (const until = Date.now() + milliseconds; ; await sleep(50)) {
      for (const node of this.nodes) if (node.isRunning && (await node.leads())) return node;
      if (Date.now() > until)
        throw new Error(`No node leads.\n${this.nodes.map((node) => node.lastWords()).join("\n")}`);
    }
  }

  /** Runs `cairnlog` with the environment of a node. @returns what it printed @throws Error if it fails */
  command(node: Node, args: readonly string[]): Promise<string> {
    const env = { ...process.env, ...node.environment };
    return new Promise((resolve, reject) => {
      execFile(
        process.execPath,
        [mainOf(this.#dist), ...args],
        { env, maxBuffer: 2 ** 28 },
        (error, stdout, stderr) => {
          if (error) reject(new Error(`cairnlog ${args.join(" ")}: ${stderr || error.message} ${stdout}`));
          else resolve(stdout);
        },
      );
    });
  }

  /** Ends everything and deletes all files. */
  async remove(): Promise<void> {
    process.off("exit", this.#killAll);
    await Promise.all(this.nodes.map((node) => node.kill()));
    for (const link of this.#links.values()) link.close();
    await this.cluster.remove();
  }
}
