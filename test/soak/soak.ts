/** A service under steady mixed load for a long time, with restarts: memory, descriptors and times must not grow. */
import { closeSync, openSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openReceivers } from "../../bench/strangers/receivers.js";
import { Monitor } from "../crash/checks.js";
import { Connection, type Expectation } from "../crash/connection.js";
import { type Acknowledged, Ledger, type Receipt } from "../crash/ledger.js";
import { Crew, operatorSigner, type Scene, subscribeTo } from "../crash/load.js";
import { Outside } from "../crash/outside.js";
import { Random } from "../reliability/random.js";
import { letStrangersRegister } from "../reliability/strangers.js";
import { newSigner } from "../server/signers.js";
import { type RunningService, scratchFolder, startService } from "../service.js";
import { Beside } from "./beside.js";
import { drifts, growths, type Sample } from "./drift.js";
import { Pace } from "./pace.js";
import { type Answered, Volume } from "./volume.js";

const WORKERS = 16;
/** Fraction of the measured capacity of the service. */
const SHARE = 0.7;
const CAPACITY_SECONDS = 10;
const SAMPLES = 240;
/** One receipt in this number is kept for the end. */
const KEPT = 50;
/** Allowed rise of resident memory between restarts, as a fraction of itself and in bytes. */
const OWN_MEMORY = { share: 0.25, slack: 48 * 2 ** 20 };
/** Clients may hold two connections for each worker. */
const DESCRIPTORS = { share: 0.1, slack: 2 * WORKERS };
/** Allowed rise of the bytes that the log's file grows by for each request. */
const GROWTH = 0.3;
/** A log of the service that cannot be written: each write fails with ENOSPC. */
const FULL_DISK = "/dev/full";
/** Seconds of `SERVICE_STOP_TIMEOUT_S`, and as many for the process to be started and seen. */
const STOP_SECONDS = 12;

export interface SoakOptions {
  readonly seed: number;
  readonly seconds: number;
  readonly restarts: number;
  readonly progress?: (seconds: number) => void;
  readonly signal?: AbortSignal;
}

export interface SoakReport {
  readonly seed: number;
  /** Requests a second, closed loop. */
  capacity: number;
  requests: number;
  restarts: number;
  readonly samples: Sample[];
  readonly problems: string[];
}

/** Keeps only some receipts: all receipts of hours would take more memory than the service. */
class SamplingLedger extends Ledger {
  #added = 0;

  override add(receipt: Receipt, says?: Acknowledged["says"]): void {
    if (this.#added++ % KEPT === 0) super.add(receipt, says);
  }
}

/** Sends at most `rate` requests a second, and measures each. */
class PacedConnection extends Connection {
  readonly #pace: Pace;
  readonly #latencies: number[];

  /** @param latencies takes the milliseconds of each request */
  constructor(url: string, ledger: Ledger, pace: Pace, latencies: number[]) {
    super(url, ledger);
    this.#pace = pace;
    this.#latencies = latencies;
  }

  override async send(path: string, body: object | null, expectation?: Expectation) {
    await this.#pace.turn();
    const started = performance.now();
    const answer = await super.send(path, body, expectation);
    this.#latencies.push(performance.now() - started);
    return answer;
  }
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.floor(sorted.length * share)] ?? Number.NaN;

export async function soak({ seed, seconds, restarts: planned, progress, signal }: SoakOptions): Promise<SoakReport> {
  const folder = scratchFolder();
  const outside = await Outside.open();
  const receivers = await openReceivers();
  await letStrangersRegister(folder.path, receivers.urls);
  const random = new Random(seed);
  const ledger = new SamplingLedger();
  const hookUrl = `${outside.url}/hook`;
  const scene: Scene = { ledger, watched: newSigner(), submitted: [], hookUrl, operator: null };
  const crew = new Crew(scene, WORKERS);
  const pace = new Pace();
  const latencies: number[] = [];
  const volume = new Volume();
  const report: SoakReport = { seed, capacity: 0, requests: 0, restarts: 0, samples: [], problems: [] };
  const environment = { LOG_LEVEL: "info", SERVICE_WEBHOOK_ALLOW_PRIVATE: "on", SERVICE_OTS_CALENDARS: outside.url };
  const stderr = openSync(FULL_DISK, "w");
  const start = () => startService(folder.path, environment, { stderr });
  const stop = async (running: RunningService) => {
    const asked = performance.now();
    const exitCode = await running.stop();
    const seconds = (performance.now() - asked) / 1000;
    if (exitCode !== 0) report.problems.push(`the service stopped with exit code ${exitCode}`);
    if (seconds > STOP_SECONDS) report.problems.push(`the service took ${seconds.toFixed(1)} s to stop`);
  };
  const beside = new Beside(folder.path, report.problems);
  const file = (name: string) => readFileSync(join(folder.path, name), "utf8");
  let service = await start();
  /** Requests that were answered to the volume. */
  let answered = 0;
  const count = (taken: Answered): number => {
    for (const [status, times] of Object.entries(taken.refused))
      report.problems.push(`a request of the volume was answered ${status}, ${times} times`);
    answered += taken.answered;
    return taken.answered;
  };
  try {
    let connection = new PacedConnection(service.url, ledger, pace, latencies);
    scene.operator = operatorSigner(file("operator.pem"));
    await subscribeTo(scene, connection);
    const monitor = new Monitor(file("operator.pub.pem"));

    let failure: Error | null = null;
    const load = () =>
      crew.work(connection, random.fork()).catch((error: Error) => {
        failure ??= error;
      });
    await volume.start(service.url, random.below(2 ** 32));
    beside.start(service.url);
    let working = load();
    const capacityOver = Date.now() + Math.min(CAPACITY_SECONDS, seconds / 4) * 1000;
    const before = pace.requests;
    const measured = performance.now();
    while (Date.now() < capacityOver && !failure) await sleep(100);
    const perSecond = 1000 / (performance.now() - measured);
    const [mixedRate, volumeRate] = [(pace.requests - before) * perSecond, count(await volume.take()) * perSecond];
    report.capacity = mixedRate + volumeRate;
    pace.rate = SHARE * mixedRate;
    await volume.pace(SHARE * volumeRate);

    const started = performance.now();
    const elapsed = () => (performance.now() - started) / 1000;
    const interval = seconds / SAMPLES;
    let restarts = 0;
    for (let n = 1; n <= SAMPLES && !failure && !signal?.aborted; n++) {
      await sleep(Math.max(0, (n * interval - elapsed()) * 1000));
      const ofVolume = count(await volume.take());
      const times = latencies.splice(0);
      const requests = pace.requests + answered;
      const sample = takeSample(service, folder.path, restarts, elapsed(), times);
      report.samples.push({ ...sample, requests, perSecond: (times.length + ofVolume) / interval });
      progress?.(elapsed());
      if (n % Math.floor(SAMPLES / (planned + 1)) !== 0 || restarts === planned) continue;
      count(await volume.stop());
      await beside.stop();
      connection.isStopping = true;
      await stop(service);
      await working;
      service = await start();
      connection = new PacedConnection(service.url, ledger, pace, latencies);
      crew.renew();
      restarts++;
      await volume.start(service.url, random.below(2 ** 32));
      beside.start(service.url);
      working = load();
    }
    count(await volume.stop());
    report.restarts = restarts;
    report.requests = pace.requests + answered;
    if (failure) report.problems.push((failure as Error).stack ?? String(failure));
    await beside.stop();
    connection.isStopping = true;
    await stop(service);
    await working;

    service = await start();
    report.problems.push(...(await monitor.check(new Connection(service.url, ledger), ledger, random)));
    await service.stop();
    report.problems.push(...drifts(report.samples, "ownMemory", OWN_MEMORY.share, OWN_MEMORY.slack));
    report.problems.push(...drifts(report.samples, "descriptors", DESCRIPTORS.share, DESCRIPTORS.slack));
    report.problems.push(...growths(report.samples, GROWTH));
  } finally {
    service.process.kill("SIGKILL");
    await beside.stop();
    closeSync(stderr);
    await volume.close();
    await outside.close();
    await receivers.close();
    folder.remove();
  }
  return report;
}

/** The process as Linux sees it, and what clients measured since the last sample. @param times milliseconds */
function takeSample(
  service: RunningService,
  dataDir: string,
  restarts: number,
  at: number,
  times: number[],
): Omit<Sample, "requests" | "perSecond"> {
  const { pid } = service.process;
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kibibytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]);
  const sorted = times.sort((a, b) => a - b);
  return {
    at,
    service: restarts,
    rss: kibibytes("VmRSS") * 1024,
    ownMemory: kibibytes("RssAnon") * 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    disk: statSync(join(dataDir, "log", "data.mdb")).blocks * 512,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
  };
}
