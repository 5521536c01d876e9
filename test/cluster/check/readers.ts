/**
 * Clients and a monitor of the product that know one address only: that of a balancer, which sends each of their requests to
 * the next node. Nodes may be dead, frozen, cut off or behind; none of that may make the log look dishonest.
 */
import { sign } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ClientError, createClient } from "#cairnlog/server/client/index.js";
import { Misbehaviour, mayPass } from "#cairnlog/server/monitor/alarm.js";
import { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { Monitor } from "#cairnlog/server/monitor/monitor.js";
import { patientFetch } from "#cairnlog/server/outgoing/patience.js";
import { Balancer } from "../../balancer.js";
import { newManifest, newSigner, type TestManifest } from "../../server/signers.js";
import type { Rig } from "../rig/rig.js";

/** Milliseconds until a request is given up. A frozen node does not answer. */
const ANSWER_MS = 4_000;
const PAUSE_MS = 200;
/** The default of `cairnlog monitor --patience`. */
const PATIENCE_MS = 30_000;
const CLIENTS = 2;

const documentOf = ({ document: { title, content_hash } }: TestManifest) => ({ title, content_hash });

export class Readers {
  readonly #balancer: Balancer;
  readonly #monitor: Monitor;
  #signal = new AbortController().signal;
  readonly #fetch: typeof fetch = (...request) =>
    patientFetch(() => () => null, { signal: this.#signal, requestMs: ANSWER_MS })(...request);
  /** When the first of the rounds ended that have all accused the log of something that may pass. */
  #doubtful: number | null = null;
  /** What was finished: attestations, and rounds of the monitor. */
  readonly finished = { attestations: 0, rounds: 0 };
  /** Accusations, as sentences. */
  readonly problems: string[] = [];

  private constructor(balancer: Balancer, rig: Rig) {
    this.#balancer = balancer;
    this.#monitor = new Monitor({
      server: balancer.url,
      folder: new MonitorFolder(join(rig.cluster.folder, "balanced")),
      fetch: this.#fetch,
      operatorKey: rig.operatorKey,
      patience: ANSWER_MS,
    });
  }

  static async of(rig: Rig): Promise<Readers> {
    return new Readers(await Balancer.before((turn) => rig.nodes[turn % rig.nodes.length]!.url), rig);
  }

  /** Works until `signal`. */
  async work(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    const clients = Array.from({ length: CLIENTS }, () => this.#attest());
    await Promise.all([...clients, this.#watch()]);
  }

  async close(): Promise<void> {
    await this.#monitor.close();
    this.#balancer.close();
  }

  async #attest(): Promise<void> {
    const { url: server } = this.#balancer;
    const { publicKey: publicKeyPem, privateKey } = newSigner();
    const signed = async (bytes: Uint8Array) => new Uint8Array(sign(null, bytes, privateKey));
    const signer = { publicKeyPem, algorithm: "ed25519", sign: signed } as const;
    const client = createClient({ server, fetch: this.#fetch, patience: ANSWER_MS, signer });
    while (!this.#signal.aborted)
      try {
        await client.attest(documentOf(newManifest()));
        this.finished.attestations++;
      } catch (error) {
        if (!(error instanceof ClientError)) throw error;
        if (error.code === "log-misbehaved" || error.code === "operator-key-mismatch")
          this.#accused("a client", error.message, error.evidence);
        await sleep(PAUSE_MS);
      }
  }

  async #watch(): Promise<void> {
    while (!this.#signal.aborted) {
      try {
        await this.#monitor.round();
        this.finished.rounds++;
        this.#doubtful = null;
      } catch (error) {
        if (error instanceof Misbehaviour) this.#judge(error);
        else if (!(error instanceof ClientError)) throw error;
      }
      await sleep(PAUSE_MS);
    }
  }

  #judge(error: Misbehaviour): void {
    this.#doubtful ??= performance.now();
    if (mayPass(error) && performance.now() - this.#doubtful < PATIENCE_MS) return;
    this.#accused(`a monitor (${error.kind})`, error.message, error.evidence);
  }

  #accused(who: string, detail: string, evidence: unknown): void {
    this.problems.push(`${who} accuses the log: ${detail} ${JSON.stringify(evidence).slice(0, 1_500)}`);
  }
}
