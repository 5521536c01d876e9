/** An S3 store of another maker: radosgw over a cluster of one disk that is memory (Debian: radosgw, ceph-mon, ceph-osd). */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { freePorts } from "../cluster/servers/cluster.js";
import { Store } from "./store.js";

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

export class Radosgw extends Store {
  readonly #monitor: number;
  readonly #gateway: number;

  private constructor(monitor: number, gateway: number) {
    super(gateway, CREDENTIALS);
    this.#monitor = monitor;
    this.#gateway = gateway;
  }

  /** Starts a store with an empty bucket "logs". @throws Error if one of the programs is not installed, or fails */
  static async start(): Promise<Radosgw> {
    const [monitor = 0, gateway = 0] = await freePorts(2);
    return new Radosgw(monitor, gateway).started();
  }

  protected async begin(): Promise<void> {
    const [fsid, disk] = [randomUUID(), randomUUID()];
    const at = (name: string) => this.at(name);
    for (const name of ["mon", "osd"]) mkdirSync(at(name));
    writeFileSync(at("ceph.conf"), configOf(at("."), fsid, this.#monitor, this.#gateway));
    const ceph = ["-c", at("ceph.conf")];
    const caps = ["mon", "osd", "mgr"].flatMap((service) => ["--cap", service, "allow *"]);
    const newKey = (name: string) => run("ceph-authtool", [at("keyring"), "--gen-key", "-n", name, ...caps]);
    await run("ceph-authtool", ["--create-keyring", at("keyring")]);
    for (const name of ["mon.", "client.admin", "client.rgw", "osd.0"]) await newKey(name);
    const address = `[v2:127.0.0.1:${this.#monitor}]`;
    await run("monmaptool", ["--create", "--fsid", fsid, "--addv", "a", address, at("map")]);
    await run("ceph-mon", [...ceph, "--mkfs", "-i", "a", "--monmap", at("map"), "--keyring", at("keyring")]);
    this.spawn("ceph-mon", [...ceph, "-i", "a", "-f"]);
    await run("ceph", [...ceph, "osd", "new", disk]);
    const osd = ["--no-mon-config", ...ceph, "-i", "0"];
    await run("ceph-osd", [...osd, "--mkfs", "--osd-uuid", disk]);
    this.spawn("ceph-osd", [...osd, "-f"]);
    const rgw = ["--no-mon-config", ...ceph, "-n", "client.rgw"];
    this.spawn("radosgw", [...rgw, "-f"]);
    await this.listening(this.#gateway);
    const keys = ["--access-key", CREDENTIALS.AWS_ACCESS_KEY_ID, "--secret-key", CREDENTIALS.AWS_SECRET_ACCESS_KEY];
    await run("radosgw-admin", [...rgw, "user", "create", "--uid=publisher", "--display-name=publisher", ...keys]);
  }
}
