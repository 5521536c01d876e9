/**
 * Fuzzing of a real service. Every request is answered in time, as in the OpenAPI document, and never with 500. No
 * request blocks the event loop for long, memory stays bounded, and at the end the log verifies.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Outside } from "../crash/outside.js";
import { mainOf } from "../reliability/planted.js";
import { Random } from "../reliability/random.js";
import { brokenPromise } from "../server/promised.js";
import { scratchFolder, startService } from "../service.js";
import { LIMIT_MS, longestTurn, probedAlone } from "../stalls/loop.js";
import { Inputs } from "./inputs.js";
import { type Input, type Output, send } from "./wire.js";
import { World } from "./world.js";

const CONCURRENCY = 12;
/** Maximum growth of resident memory after the first third of the run. */
const GROWTH_BYTES = 128 * 2 ** 20;
const MEASURE_MS = 1_000;
/** Milliseconds between two checks for a blocked event loop. */
const WATCH_MS = 250;
/** Maximum number of inputs that are tried again alone. */
const MAX_SUSPECTS = 200;
const HELD_TRIES = 5;
/** Maximum number of requests until an operation has to succeed. */
const REACH_TRIES = 20;
/** Granted by a node that follows another, and the service that is fuzzed is its own. */
const OF_A_FOLLOWER = "GET /follower";
const SANE_ID = /^[A-Za-z0-9._-]{1,128}$/;

export interface ServiceFuzzOptions {
  readonly seed: number;
  readonly seconds: number;
  readonly dist: string;
  readonly progress?: (inputs: number) => void;
  readonly signal?: AbortSignal;
  /** Inputs of earlier runs, which are sent first. */
  readonly corpus?: readonly Input[];
}

export interface Finding {
  readonly problem: string;
  readonly input?: Input;
}

export interface ServiceFuzzReport {
  inputs: number;
  /** Answers by status. */
  readonly statuses: Record<number, number>;
  /** Operations that succeeded at least once, and those that never did. */
  readonly reached: Set<string>;
  unreached: readonly string[];
  readonly findings: Finding[];
  /** The longest time for which an input, sent alone, blocked the event loop, in milliseconds of processor time. */
  heldMs: number;
}

/** The fault of an answer; null if there is none. */
export function judge(world: World, input: Input, output: Output): string | null {
  const { method, path } = input;
  const name = `${method} ${path.slice(0, 200)}`;
  const { status, head, headers, body } = output;
  if (status === -1 || (status === 0 && isPlain(input))) return `${name} was not answered`;
  // The HTTP library refuses bytes that are not HTTP, with its own answer or with none.
  const isHttp =
    /^[A-Z]+$/.test(method) && /^\/[\x21-\x7e]*$/.test(path) && method !== "BREW" && head.includes("x-request-id");
  if (!isHttp) return status === 500 ? `${name} answered 500` : null;
  if (status >= 500 && !isExcused(method, output))
    return `${name} answered ${status}: ${body.toString().slice(0, 300)}`;
  if (headers.has("x-injected")) return `${name}: a header was injected`;
  if (!SANE_ID.test(headers.get("x-request-id") ?? ""))
    return `${name} has the request id ${headers.get("x-request-id")}`;
  // This answer belongs to the connection and not to the operation, so it is not in the document.
  if (status === 400 && body.includes('"code":"ambiguous-length"')) return null;
  const mediaType = headers.get("content-type") ?? "";
  if (!/^application\/(problem\+)?json$/.test(mediaType) || method === "HEAD" || !body.length) return null;
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    return `${name} answered what is no JSON: ${body.toString().slice(0, 200)}`;
  }
  if (/\bat .*\.js:|node:internal|\/dist\//.test(body.toString("latin1")) && status >= 400)
    return `${name} tells of its code`;
  return brokenPromise(world.document, method, path.split("?")[0]!, { status, mediaType, body: value });
}

/** Whether every HTTP server must be able to read the request. */
function isPlain({ method, path, headers }: Input): boolean {
  // The service may close the connection after invalid chunks without an answer.
  if (headers.some(([name]) => name === "Transfer-Encoding")) return false;
  const isPlainText = (text: string) => /^[\x20-\x7e]*$/.test(text) && text.length < 2_000;
  return (
    /^(GET|POST|DELETE)$/.test(method) && /^\/[\x21-\x7e]*$/.test(path) && [path, ...headers.flat()].every(isPlainText)
  );
}

/** Whether a 503 is allowed: the queues for passwords and trust may be full, and a service that is alone follows nobody. */
function isExcused(method: string, { status, body }: Output): boolean {
  if (status !== 503) return false;
  // An answer to HEAD has no body that could say why; the same path is asked with GET, too.
  return method === "HEAD" || body.includes('"code":"overloaded"') || body.includes("it follows no other");
}

export async function fuzzService(options: ServiceFuzzOptions): Promise<ServiceFuzzReport> {
  const folder = scratchFolder();
  const report: ServiceFuzzReport = {
    inputs: 0,
    statuses: {},
    reached: new Set(),
    unreached: [],
    findings: [],
    heldMs: 0,
  };
  const outside = await Outside.open();
  const turns = join(folder.path, "turns");
  const environment = { LOG_LEVEL: "fatal", SERVICE_OTS_CALENDARS: outside.url, ...probedAlone(turns) };
  const service = await startService(folder.path, environment, { main: mainOf(options.dist) });
  try {
    const world = await World.build(service.url, readFileSync(join(folder.path, "operator.pem"), "utf8"));
    await new ServiceFuzz(options, world, Number(new URL(service.url).port), turns, report).run();
    // A service that hangs does not stop.
    if (report.findings.length) return report;
    if (service.process.exitCode !== null) report.findings.push({ problem: "the service ended" });
    else if ((await service.stop()) !== 0) report.findings.push({ problem: "the service does not stop as it should" });
  } finally {
    service.process.kill("SIGKILL");
    await outside.close();
    folder.remove();
  }
  return report;
}

class ServiceFuzz {
  readonly #options: ServiceFuzzOptions;
  readonly #world: World;
  readonly #port: number;
  readonly #turns: string;
  readonly #report: ServiceFuzzReport;
  /** Inputs that were running when the loop was blocked for long. One of them or several together blocked it. */
  readonly #suspects = new Set<Input>();
  readonly #underWay = new Set<Input>();
  /** Inputs that were answered since the last check. */
  readonly #recent: Input[] = [];

  constructor(options: ServiceFuzzOptions, world: World, port: number, turns: string, report: ServiceFuzzReport) {
    this.#options = options;
    this.#world = world;
    this.#port = port;
    this.#turns = turns;
    this.#report = report;
  }

  async run(): Promise<void> {
    const { seed, seconds, signal, progress, corpus = [] } = this.#options;
    const report = this.#report;
    for (const input of corpus) await this.#try(input);
    const inputs = new Inputs(this.#world);
    await this.#reach(inputs, new Random(seed));
    await this.#sendNoObjects(inputs, new Random(seed));
    const started = Date.now();
    let next = 0;
    let settled = 0;
    const isOver = () => Date.now() - started > seconds * 1000 || signal?.aborted || report.findings.length > 0;
    const work = async () => {
      while (!isOver()) {
        const number = next++;
        // Each input has its own seed, so it can be made again without the inputs before it.
        await this.#try(await inputs.make(new Random(seed * 1_000_003 + number)));
        progress?.(report.inputs);
      }
    };
    // In the first third, caches fill and the heap reaches its size. Later samples must not exceed that by much.
    const measure = async () => {
      const resident = await this.#memory();
      const growth = resident - settled;
      if (Date.now() - started < (seconds * 1000) / 3) settled = Math.max(settled, resident);
      else if (settled && growth > GROWTH_BYTES)
        report.findings.push({ problem: `memory grew by ${Math.round(growth / 2 ** 20)} MiB` });
    };
    const measuring = setInterval(() => void measure().catch(() => {}), MEASURE_MS);
    const watching = setInterval(() => void this.#watchLoop().catch(() => {}), WATCH_MS);
    const failed = (error: Error) => report.findings.push({ problem: `the fuzzer itself: ${error.stack}` });
    await Promise.all(Array.from({ length: CONCURRENCY }, () => work().catch(failed)));
    clearInterval(measuring);
    clearInterval(watching);
    if (!report.findings.length) await this.#trySuspects();
    if (report.findings.length) return;
    await this.#checkHealth();
  }

  /** Repeats every operation until it has succeeded once, because code that is never reached is not fuzzed. */
  async #reach(inputs: Inputs, random: Random): Promise<void> {
    const { reached } = this.#report;
    for (const operation of inputs.operations)
      for (let tries = 0; tries < REACH_TRIES && !reached.has(operation.name); tries++)
        await this.#try(await inputs.plain(operation, random));
    this.#report.unreached = inputs.operations
      .map(({ name }) => name)
      .filter((name) => !reached.has(name) && name !== OF_A_FOLLOWER);
  }

  /** Sends every operation with a body each kind of JSON that is not an object. Random inputs rarely are. */
  async #sendNoObjects(inputs: Inputs, random: Random): Promise<void> {
    for (const operation of inputs.operations) {
      if (!operation.document.requestBody?.required) continue;
      const valid = await inputs.plain(operation, random);
      for (const text of ["null", "[]", "5", '"text"']) {
        const input = { ...valid, body: Buffer.from(text) };
        const { status, body } = await this.#try(input);
        if (status === 400 && body.includes('"code":"not-an-object"')) continue;
        this.#report.findings.push({ problem: `${operation.name} answered ${status} to the body ${text}`, input });
      }
    }
  }

  async #try(input: Input): Promise<Output> {
    const report = this.#report;
    this.#underWay.add(input);
    const output = await send(this.#port, input);
    this.#underWay.delete(input);
    this.#recent.push(input);
    report.inputs++;
    report.statuses[output.status] = (report.statuses[output.status] ?? 0) + 1;
    const { method, path } = input;
    const template = output.status === 200 || output.status === 201 ? routeOf(this.#world, path) : undefined;
    if (template && method !== "HEAD") report.reached.add(`${method} ${template}`);
    const problem = judge(this.#world, input, output);
    if (problem) report.findings.push({ problem, input });
    return output;
  }

  async #watchLoop(): Promise<void> {
    const sent = [...this.#recent.splice(0), ...this.#underWay];
    if ((await longestTurn(this.#turns)) <= LIMIT_MS) return;
    for (const input of sent) if (this.#suspects.size < MAX_SUSPECTS) this.#suspects.add(input);
  }

  /**
   * Sends each of the suspects alone, several times. The shortest time counts, because any request may by chance
   * include garbage collection, compilation, or a batch of other appends.
   */
  async #trySuspects(): Promise<void> {
    const report = this.#report;
    for (const input of this.#suspects) {
      let least = Number.POSITIVE_INFINITY;
      for (let tries = 0; tries < HELD_TRIES && least > LIMIT_MS; tries++) {
        await longestTurn(this.#turns);
        await send(this.#port, input);
        least = Math.min(least, await longestTurn(this.#turns));
      }
      report.heldMs = Math.max(report.heldMs, least);
      const problem = `${input.method} ${input.path.slice(0, 200)} held the event loop for ${Math.round(least)} ms`;
      if (least > LIMIT_MS) report.findings.push({ problem, input });
    }
  }

  async #memory(): Promise<number> {
    const text = await (await fetch(`${this.#world.service.url}/metrics`)).text();
    return Number(/^process_resident_memory_bytes (\S+)/m.exec(text)?.[1]);
  }

  async #checkHealth(): Promise<void> {
    const { findings } = this.#report;
    const { service } = this.#world;
    const { status } = await service.send("/health", null, { method: "GET" });
    if (status !== "ok") findings.push({ problem: `the service says of its health: ${status}` });
    const { valid, errors } = await service.send("/log/verify", {});
    if (!valid) findings.push({ problem: `the log does not verify: ${JSON.stringify(errors.slice(0, 3))}` });
  }
}

function routeOf({ document }: World, path: string): string | undefined {
  const plain = path.split("?")[0]!;
  const templates = Object.keys(document.paths).sort((a, b) => a.split("{").length - b.split("{").length);
  return templates.find((template) => new RegExp(`^${template.replace(/\{\w+\}/g, "[^/]+")}$`).test(plain));
}
