/** Runs client processes against a service and collects their measurements. */
import { type ChildProcess, fork } from "node:child_process";
import type { Done, Order, Prepare, Reply, Sample } from "./protocol.js";
import { sharesOf } from "./shares.js";

export interface LoadOptions {
  readonly host?: string;
  readonly port: number;
  /** Over TLS, with any certificate. */
  readonly secure?: boolean;
  readonly requests: number;
  readonly connections: number;
  /** Client processes that share requests and connections. */
  readonly clients: number;
  readonly name: string;
  readonly rate?: number;
  /** Called with every hundredth receipt, while the load runs. */
  readonly onSample?: (sample: Sample) => void;
  /** Ends the load early: nothing more is sent, and running requests are awaited. */
  readonly signal?: AbortSignal;
}

export interface LoadResult {
  /** Seconds from the first request to the last answer. */
  readonly seconds: number;
  /** Answers of any status. */
  readonly answered: number;
  /** Milliseconds, ascending, of the requests answered with 200. */
  readonly latencies: readonly number[];
  /** Milliseconds from the start at which each of them was answered, ascending, with its latency. */
  readonly answers: readonly { readonly at: number; readonly latency: number }[];
  /** Answers by status; 0 for connections that broke or could not be made. */
  readonly statuses: Readonly<Record<number, number>>;
}

export interface PreparedLoad {
  run(): Promise<LoadResult>;
}

const CLIENT = new URL("./client.js", import.meta.url);

/** A client process and its messages. */
class Client {
  readonly #child: ChildProcess;
  #expected: { kind: Reply["kind"]; resolve: (reply: Reply) => void; reject: (error: Error) => void } | null = null;

  constructor(onSample: (sample: Sample) => void) {
    this.#child = fork(CLIENT, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#child.on("message", (reply: Reply) => {
      if (reply.kind === "sampled") return onSample(reply.sample);
      if (reply.kind !== this.#expected?.kind) throw new Error(`a client said ${reply.kind} out of turn`);
      this.#expected.resolve(reply);
      this.#expected = null;
    });
    this.#child.on("exit", () => this.#expected?.reject(new Error("a client process ended before it was done")));
  }

  /** Sends an order and resolves with the reply to it. */
  ask<K extends Reply["kind"]>(order: Order, kind: K): Promise<Extract<Reply, { kind: K }>> {
    return new Promise((resolve, reject) => {
      this.#expected = { kind, resolve: resolve as (reply: Reply) => void, reject };
      this.#child.send(order);
    });
  }

  stop(): void {
    if (this.#child.connected) this.#child.send({ kind: "stop" } satisfies Order);
  }

  kill(): void {
    this.#child.kill();
  }
}

/** Starts the clients, one for each connection at most, and lets them sign all requests. @throws if `signal` aborts before that is done */
export async function prepareLoad(options: LoadOptions): Promise<PreparedLoad> {
  const { requests, connections, host = "127.0.0.1", port, secure = false, name, rate, signal } = options;
  const clients = Math.min(options.clients, connections);
  const [requestsOf, connectionsOf] = [sharesOf(requests, clients), sharesOf(connections, clients)];
  const children = Array.from({ length: clients }, () => new Client(options.onSample ?? (() => {})));
  const killAll = () => {
    for (const child of children) child.kill();
  };
  signal?.addEventListener("abort", killAll);
  await Promise.all(
    children.map((child, i) => {
      const share: Prepare = {
        kind: "prepare",
        host,
        port,
        secure,
        requests: requestsOf[i]!,
        connections: connectionsOf[i]!,
        name: `${name} client ${i}`,
      };
      return child.ask(share, "ready");
    }),
  );
  signal?.removeEventListener("abort", killAll);
  return {
    async run() {
      const stop = () => {
        for (const child of children) child.stop();
      };
      signal?.addEventListener("abort", stop);
      const started = performance.now();
      const results = await Promise.all(
        children.map((child) =>
          child.ask({ kind: "start", ...(rate === undefined ? {} : { rate: rate / clients }) }, "done"),
        ),
      );
      signal?.removeEventListener("abort", stop);
      return combine(results, (performance.now() - started) / 1000);
    },
  };
}

function combine(results: readonly Done[], seconds: number): LoadResult {
  const answers = results
    .flatMap(({ latencies, finished }) => latencies.map((latency, i) => ({ at: finished[i]!, latency })))
    .sort((a, b) => a.at - b.at);
  const statuses: Record<number, number> = {};
  for (const result of results)
    for (const [status, count] of Object.entries(result.statuses))
      statuses[Number(status)] = (statuses[Number(status)] ?? 0) + count;
  return {
    seconds,
    answered: Object.entries(statuses).reduce((sum, [status, count]) => sum + (status === "0" ? 0 : count), 0),
    latencies: answers.map(({ latency }) => latency).sort((a, b) => a - b),
    answers,
    statuses,
  };
}

/** The latency that this share of all answers did not exceed. */
export function percentile(ascending: readonly number[], share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN;
}
