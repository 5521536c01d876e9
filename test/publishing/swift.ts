/** An S3 store of another maker that knows no conditional PUTs: OpenStack Swift with its s3api (Debian: swift, swift-proxy …). */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { promisify } from "node:util";
import { freePorts } from "../cluster/servers/cluster.js";
import { Store } from "./store.js";

const run = promisify(execFile);

/** What the command finds in its environment. */
export const SWIFT_CREDENTIALS = {
  AWS_ACCESS_KEY_ID: "logs:publisher",
  AWS_SECRET_ACCESS_KEY: "publisher-secret",
} as const;

const SERVERS = ["account", "container", "object"] as const;
const FILTERS = ["catch_errors", "gatekeeper", "memcache", "listing_formats", "s3api", "tempauth"] as const;

/** Names are hashed with these. */
const CONFIG = `[swift-hash]
swift_hash_path_prefix = before
swift_hash_path_suffix = after
[storage-policy:0]
name = only
default = yes
`;

const common = (folder: string, port: number) => `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
workers = 0
user = ${userInfo().username}
swift_dir = ${folder}
devices = ${folder}/devices
mount_check = false
log_address =
log_level = ERROR
`;

const serverOf = (name: string) => `[pipeline:main]
pipeline = ${name}-server
[app:${name}-server]
use = egg:swift#${name}
`;

const proxy = () => `[pipeline:main]
pipeline = ${FILTERS.join(" ")} proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
${FILTERS.map((name) => `[filter:${name}]\nuse = egg:swift#${name}\n`).join("")}
user_logs_publisher = ${SWIFT_CREDENTIALS.AWS_SECRET_ACCESS_KEY} .admin
`;

/** Nobody listens there: s3api wants a cache to be named, and works without one. */
const MEMCACHE = "[memcache]\nmemcache_servers = 127.0.0.1:1\n";

export class Swift extends Store {
  readonly #ports: readonly number[];

  private constructor(ports: readonly number[]) {
    super(ports[0]!, SWIFT_CREDENTIALS);
    this.#ports = ports;
  }

  /** Starts a store with an empty bucket "logs". @throws Error if one of the programs is not installed, or fails */
  static async start(): Promise<Swift> {
    return new Swift(await freePorts(1 + SERVERS.length)).started();
  }

  protected async begin(): Promise<void> {
    mkdirSync(this.at("devices/disk"), { recursive: true });
    writeFileSync(this.at("swift.conf"), CONFIG);
    writeFileSync(this.at("memcache.conf"), MEMCACHE);
    const [gateway = 0, ...ports] = this.#ports;
    const ringOf = async (server: string, port: number) => {
      const ring = this.at(`${server}.builder`);
      await run("swift-ring-builder", [ring, "create", "1", "1", "0"]);
      await run("swift-ring-builder", [ring, "add", `r1z1-127.0.0.1:${port}/disk`, "1"]);
      await run("swift-ring-builder", [ring, "rebalance"]);
    };
    await Promise.all(SERVERS.map((server, i) => ringOf(server, ports[i]!)));
    for (const [i, server] of SERVERS.entries()) this.#serve(server, ports[i]!, serverOf(server));
    this.#serve("proxy", gateway, proxy());
    // The gateway answers before the others do.
    for (const port of this.#ports) await this.listening(port);
  }

  #serve(server: string, port: number, what: string): void {
    writeFileSync(this.at(`${server}.conf`), common(this.at("."), port) + what);
    this.spawn(`swift-${server}-server`, [this.at(`${server}.conf`)]);
  }
}
