/**
 * The load generator of this suite, in a process of its own. It stays for the whole run, so that its code is compiled
 * for all contenders alike, and sends the same requests to each of them: only the servers' CPU is measured.
 */
import { openConnection, postRequest } from "../load/connection.js";
import { signedSubmissions } from "../load/submissions.js";
import { quantile } from "../stats.js";
import { answerOrders, type Child, startChild } from "./child.js";
import { type Crowd, signerAt } from "./crowd.js";

const HOST = "127.0.0.1";
const SINGLE = "/api/v1/attestations";
const BATCH = "/api/v1/attestations/batch";

/** Prepares requests, which stay until others are prepared. */
interface Sign {
  readonly kind: "sign";
  readonly attestations: number;
  /** Attestations in one request; absent for requests of a single one. */
  readonly perRequest?: number;
  readonly name: string;
  /** Absent for one new key. */
  readonly signers?: Crowd;
}

/** Sends them. */
interface Post {
  readonly kind: "post";
  readonly port: number;
  readonly connections: number;
}

/** Sends them one at a time, each to all ports. */
interface Alternate {
  readonly kind: "alternate";
  readonly ports: readonly number[];
}

/** Reads `prefix` followed by each of these numbers. */
interface Get {
  readonly kind: "get";
  readonly port: number;
  readonly connections: number;
  readonly prefix: string;
  readonly numbers: readonly number[];
}

type Order = Sign | Post | Alternate | Get;

export interface Sent {
  /** Seconds from the first request to the last answer. */
  readonly seconds: number;
  /** Answers by status; 0 for connections that broke. */
  readonly statuses: Readonly<Record<number, number>>;
  /** Mean length of the answers' bodies. */
  readonly bytes: number;
  /** Milliseconds from a request to its answer. */
  readonly p50: number;
  readonly p99: number;
}

let requests: readonly Buffer[] = [];

function sign({ attestations, perRequest, name, signers }: Sign): number {
  const submissions = signedSubmissions(attestations, name, signers && ((n) => signerAt(signers, n)));
  const place = { host: HOST, port: 80 };
  requests =
    perRequest === undefined
      ? submissions.map((one) => postRequest(place, SINGLE, JSON.stringify(one)))
      : Array.from({ length: Math.ceil(attestations / perRequest) }, (_, n) => {
          const share = submissions.slice(n * perRequest, (n + 1) * perRequest);
          return postRequest(place, BATCH, JSON.stringify({ submissions: share }));
        });
  return requests.length;
}

async function send(port: number, connections: number, all: readonly Buffer[]): Promise<Sent> {
  const opened = await Promise.all(Array.from({ length: connections }, () => openConnection({ host: HOST, port })));
  const statuses: Record<number, number> = {};
  let [next, bytes] = [0, 0];
  const latencies: number[] = [];
  const started = performance.now();
  await Promise.all(
    opened.map(async (connection) => {
      while (next < all.length) {
        const sent = performance.now();
        const { status, body } = await connection.exchange(all[next++]!);
        latencies.push(performance.now() - sent);
        statuses[status] = (statuses[status] ?? 0) + 1;
        bytes += body.length;
        if (status === 0) return;
      }
    }),
  );
  const seconds = (performance.now() - started) / 1000;
  for (const connection of opened) connection.close();
  return {
    seconds,
    statuses,
    bytes: bytes / all.length,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
  };
}

/** Microseconds of every answer, for each port. */
async function alternate({ ports }: Alternate): Promise<number[][]> {
  const opened = await Promise.all(ports.map((port) => openConnection({ host: HOST, port })));
  const times: number[][] = ports.map(() => []);
  for (const request of requests)
    for (const [i, connection] of opened.entries()) {
      const started = performance.now();
      const { status } = await connection.exchange(request);
      times[i]!.push((performance.now() - started) * 1000);
      if (status !== 200) throw new Error(`port ${ports[i]} answered ${status}`);
    }
  for (const connection of opened) connection.close();
  return times;
}

const getRequest = (path: string) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);

function handle(order: Order): unknown {
  switch (order.kind) {
    case "sign":
      return sign(order);
    case "post":
      return send(order.port, order.connections, requests);
    case "alternate":
      return alternate(order);
    case "get": {
      const { port, connections, prefix, numbers } = order;
      return send(
        port,
        connections,
        numbers.map((number) => getRequest(`${prefix}${number}`)),
      );
    }
  }
}

/** The parent's side. */
export class Generator {
  readonly #child: Child = startChild(new URL(import.meta.url));

  /** Resolves with the number of requests. */
  sign(order: Omit<Sign, "kind">): Promise<number> {
    return this.#ask({ kind: "sign", ...order });
  }

  post(port: number, connections: number): Promise<Sent> {
    return this.#ask({ kind: "post", port, connections });
  }

  alternate(...ports: number[]): Promise<number[][]> {
    return this.#ask({ kind: "alternate", ports });
  }

  get(port: number, connections: number, prefix: string, numbers: readonly number[]): Promise<Sent> {
    return this.#ask({ kind: "get", port, connections, prefix, numbers });
  }

  close(): Promise<void> {
    return this.#child.close();
  }

  #ask<Reply>(order: Order): Promise<Reply> {
    return this.#child.ask(order);
  }
}

if (process.argv[1] === import.meta.filename) answerOrders(handle);
