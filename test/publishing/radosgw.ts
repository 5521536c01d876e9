/** An S3 store of another maker: radosgw over a cluster of one disk that is memory (Debian: radosgw, ceph-mon, ceph-osd). */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { AwsV4Signer } from "aws4fetch";
import { freePorts } from "../cluster/servers/cluster.js";
import { scratchFolder } from "../service.js";

const run = promisify(execFile);

/** What the command finds in its environment. */
export const CREDENTIALS = { AWS_ACCESS_KEY_ID: "publisher", AWS_SECRET_ACCESS_KEY: "publisher-secret" } as const;

const configOf = (folder: string, fsid: string, monitor: number, gateway: number) => `[global]
fsid = ${fsid}
mon host = v2:127.0.0.1:${monitor}
public addr = 127.0.0.1
keyring = ${folder}/keyring
run dir = ${folder}
admin socket =
log file = ${folder}/$name.log
pid file =
ms bind ipv6 = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail crit = 0
paxos propose interval = 0.02
paxos min wait = 0.01
osd tick interval = 0.1
[mon.a]
mon data = ${folder}/mon
[osd.0]
osd data = ${folder}/osd
osd objectstore = memstore
memstore device bytes = 268435456
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:${gateway}
rgw data = ${folder}
rgw run sync thread = false
`;

export class Radosgw {
  readonly url: string;
  readonly #children: ChildProcess[] = [];
  readonly #folder = scratchFolder();

  private constructor(url: string) {
    this.url = url;
  }

  /** Starts a store with an empty bucket "logs". @throws Error if one of the programs is not installed, or fails */
  static async start(): Promise<Radosgw> {
    const [monitor = 0, gateway = 0] = await freePorts(2);
    const store = new Radosgw(`http://127.0.0.1:${gateway}`);
    try {
      await store.#start(monitor, gateway);
      return store;
    } catch (error) {
      await store.stop();
      throw error;
    }
  }

  async #start(monitor: number, gateway: number): Promise<void> {
    const { path } = this.#folder;
    const [fsid, disk] = [randomUUID(), randomUUID()];
    const at = (name: string) => join(path, name);
    for (const name of ["mon", "osd"]) mkdirSync(at(name));
    writeFileSync(at("ceph.conf"), configOf(path, fsid, monitor, gateway));
    const ceph = ["-c", at("ceph.conf")];
    const caps = ["mon", "osd", "mgr"].flatMap((service) => ["--cap", service, "allow *"]);
    const newKey = (name: string) => run("ceph-authtool", [at("keyring"), "--gen-key", "-n", name, ...caps]);
    await run("ceph-authtool", ["--create-keyring", at("keyring")]);
    for (const name of ["mon.", "client.admin", "client.rgw", "osd.0"]) await newKey(name);
    const address = `[v2:127.0.0.1:${monitor}]`;
    await run("monmaptool", ["--create", "--fsid", fsid, "--addv", "a", address, at("map")]);
    await run("ceph-mon", [...ceph, "--mkfs", "-i", "a", "--monmap", at("map"), "--keyring", at("keyring")]);
    this.#spawn("ceph-mon", [...ceph, "-i", "a", "-f"]);
    await run("ceph", [...ceph, "osd", "new", disk]);
    const osd = ["--no-mon-config", ...ceph, "-i", "0"];
    await run("ceph-osd", [...osd, "--mkfs", "--osd-uuid", disk]);
    this.#spawn("ceph-osd", [...osd, "-f"]);
    const rgw = ["--no-mon-config", ...ceph, "-n", "client.rgw"];
    this.#spawn("radosgw", [...rgw, "-f"]);
    while (!(await fetch(this.url).catch(() => null))) {
      const ended = this.#children.find(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null);
      if (ended) throw new Error(`${ended.spawnfile} has ended: ${readFileSync(at("said"), "utf8")}`);
      await sleep(50);
    }
    const keys = ["--access-key", CREDENTIALS.AWS_ACCESS_KEY_ID, "--secret-key", CREDENTIALS.AWS_SECRET_ACCESS_KEY];
    await run("radosgw-admin", [...rgw, "user", "create", "--uid=publisher", "--display-name=publisher", ...keys]);
    const made = await this.ask("PUT", "");
    if (!made.ok) throw new Error(`the bucket could not be made: ${made.status}`);
  }

  #spawn(program: string, args: readonly string[]): void {
    const said = openSync(join(this.#folder.path, "said"), "a");
    const child = spawn(program, args, { stdio: ["ignore", said, said] });
    closeSync(said);
    child.on("error", () => {});
    this.#children.push(child);
  }

  /** One signed request for an object of the bucket. */
  async ask(method: string, path: string, body?: string | Buffer): Promise<Response> {
    const signer = new AwsV4Signer({
      ...{ method, url: `${this.url}/logs${path}`, service: "s3", region: "us-east-1" },
      accessKeyId: CREDENTIALS.AWS_ACCESS_KEY_ID,
      secretAccessKey: CREDENTIALS.AWS_SECRET_ACCESS_KEY,
    });
    const { url, headers } = await signer.sign();
    return fetch(url, { method, headers, ...(body !== undefined && { body: body as BodyInit }) });
  }

  async stop(): Promise<void> {
    const running = this.#children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    for (const child of running.reverse()) {
      const ended = once(child, "exit");
      // What it holds is memory.
      if (child.kill("SIGKILL")) await ended;
    }
    this.#folder.remove();
  }
}
