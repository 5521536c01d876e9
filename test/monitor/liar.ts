/** A log that lies when the test says so, and checks of the data in a monitor's folder. */
import { createHash, sign } from "node:crypto";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, expect } from "vitest";
import {
  type Entry,
  OperatorKeys,
  type PublicKey,
  parsePublicKey,
  type TreeHead,
} from "#cairnlog/engine/verify/index.js";
import type { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { Mirror } from "#cairnlog/server/monitor/mirror.js";
import type { Monitor } from "#cairnlog/server/monitor/monitor.js";
import { anyEvent } from "../anyevent.js";
import { type Lie, LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { canonical } from "../server/signers.js";
import { forged, newMonitor } from "./monitors.js";

/** Number of entries that both histories share. */
export const COMMON = 4;

/**
 * Two services with one operator key and a common history up to `COMMON`. Each test gets a new proxy before the first.
 */
export class Liar {
  service!: TestService;
  fork!: TestService;
  proxy!: LyingProxy;
  #operatorPem!: string;

  /** One for all tests of a file. */
  static forTests(): Liar {
    const liar = new Liar();
    beforeAll(() => liar.#start());
    beforeEach(async () => {
      liar.proxy = await LyingProxy.before(liar.service.url);
    });
    return liar;
  }

  async #start(): Promise<void> {
    const [folder, copy] = [temporaryFolder(), join(temporaryFolder(), "data")];
    const first = await startTestService({ SERVICE_DATA_DIR: folder });
    await grow(first, COMMON);
    await first.close();
    cpSync(folder, copy, { recursive: true });
    this.#operatorPem = readFileSync(join(folder, "operator.pem"), "utf8");
    this.service = await startTestService({ SERVICE_DATA_DIR: folder });
    this.fork = await startTestService({ SERVICE_DATA_DIR: copy });
    await grow(this.service, COMMON + 4);
    await grow(this.fork, COMMON + 4);
  }

  async growBy(count: number): Promise<void> {
    await grow(this.service, (await this.service.entryCount()) + count);
  }

  async operatorKey(): Promise<PublicKey> {
    return parsePublicKey((await this.service.get("/log/operator-key")).body.public_key);
  }

  /** A head with any content, signed by the operator key. */
  signed(head: TreeHead, changes: Partial<TreeHead>, key: string = this.#operatorPem): TreeHead {
    const { root_hash, tree_size, timestamp } = { ...head, ...changes };
    const signature = sign(null, Buffer.from(`${root_hash}:${tree_size}:${timestamp}`), key).toString("base64");
    return { ...head, ...changes, signature };
  }

  /** A monitor that has mirrored the log, after which the log grew. */
  async acquainted(growth = 3) {
    const made = newMonitor(this.proxy.url);
    await made.monitor.round();
    const size = await this.service.entryCount();
    const head: TreeHead = (await this.service.get("/log/sth")).body;
    expect(made.monitor.size).toBe(size);
    if (growth) await this.growBy(growth);
    return { ...made, size, head };
  }

  /** Asserts that the mirror is that of the true log with this size, and continues when the service is honest again. */
  async expectUnharmed(monitor: Monitor, folder: MonitorFolder, size: number): Promise<void> {
    await monitor.close();
    const mirror = await Mirror.open(folder.mirror, OperatorKeys.of(await this.operatorKey()));
    const leaves = Array.from({ length: mirror.size }, (_, index) => index);
    expect(leaves.length).toBe(size);
    const { entries } = (await this.service.get("/log?per_page=200")).body;
    expect(leaves.map((index) => mirror.entry(index))).toEqual(entries.slice(0, size));
    const { heads } = (await this.service.get(`/log/heads?limit=${size}`)).body;
    expect(leaves.map((index) => mirror.head(index + 1))).toEqual(heads);
    await mirror.close();
    this.proxy.repent();
    this.proxy.upstream = this.service.url;
    const next = newMonitor(this.proxy.url, { folder });
    await next.monitor.round({ audit: true });
    expect(next.monitor.size).toBe(await this.service.entryCount());
    await next.monitor.close();
  }
}

/** Appends until the log has `size` entries. Each service gets other entries. */
export async function grow(to: TestService, size: number): Promise<void> {
  const missing = size - (await to.entryCount());
  const note = anyEvent({ of: to.url });
  if (missing > 0) await to.server.registry.log.append(Array.from({ length: missing }, () => note));
}

// biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
type Change = (answer: any) => unknown;
export const isPage = (path: string): boolean => path.startsWith("/log?");
export const isHeads = (path: string): boolean => path.startsWith("/log/heads");

/** A lie that changes the answers of some paths. */
export function at(where: (path: string) => boolean, change: Change): Lie {
  return (path, answer) => (where(path) ? change(answer) : answer);
}
export const newestAt = (change: Change): Lie => at((path) => path === "/log/sth", change);

/** A lie that changes the head of one size, or omits it. */
export const headAt = (size: number, change: (head: TreeHead) => TreeHead | null): Lie =>
  at(isHeads, ({ heads }) => ({
    heads: heads.flatMap((head: TreeHead) => (head.tree_size === size ? (change(head) ?? []) : head)),
  }));

/** Another hash of the same form. */
export const otherHash = (hash: string): string => (hash.startsWith("0") ? "1" : "0") + hash.slice(1);
/** A signature of the right length that no key has made. */
export const noSignature = (): string => Buffer.alloc(64, 1).toString("base64");

/**
 * The entries with one of them changed and all later ones linked again: the hashes are right, but the history is
 * another.
 */
export function rechained(entries: readonly Entry[], from: number, changes: Partial<Entry> = {}): Entry[] {
  let previous: Entry | undefined;
  return entries.map((entry) => {
    let next = entry;
    if (entry.id >= from) {
      const changed = entry.id === from ? { ...forged(entry), ...changes } : entry;
      const { payload, timestamp } = changed;
      const previous_hash = previous?.entry_hash ?? null;
      const body = canonical({ payload, previous_hash, timestamp });
      const entry_hash = createHash("sha256").update(`service.log.entry.v2\0${body}`).digest("hex");
      const entry_hashes = [{ algorithm: "sha2-256", digest_hex: entry_hash, is_primary: true }];
      next = { ...changed, previous_hash, entry_hash, entry_hashes };
    }
    previous = next;
    return next;
  });
}
