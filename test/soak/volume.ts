/**
 * Attestations and reads beside the mixed load of a soak run, as many as the service takes. They are sent by a process of
 * their own, so that signing and sending them takes nothing from the clients that check what they are told.
 */
import { answerOrders, type Child, startChild } from "../../bench/front/child.js";
import { type Crowd, signerAt } from "../../bench/front/crowd.js";
import { type Connection, openConnection, postRequest } from "../../bench/load/connection.js";
import { signedSubmissions } from "../../bench/load/submissions.js";
import { Random } from "../reliability/random.js";
import { Pace } from "./pace.js";

const CONNECTIONS = 16;
/** Attestations are signed so many at a time, each by the next of these signers. */
const AT_ONCE = 250;
const SIGNERS = 20_000;
/** After so many attestations of a connection, it reads an entry and asks for its proof. */
const WRITES = 4;

/** Sends to the service at this address until `stop`. */
interface Start {
  readonly kind: "start";
  readonly url: string;
  /** Of the choice of what is read. */
  readonly seed: number;
}

/** Requests a second from now on. */
interface Pacing {
  readonly kind: "pace";
  readonly rate: number;
}

/** What was answered since the last time; with `stop`, nothing more is sent. */
interface Take {
  readonly kind: "take" | "stop";
}

type Order = Start | Pacing | Take;

export interface Answered {
  readonly answered: number;
  /** Answers by status, other than 200; 0 for connections that broke. */
  readonly refused: Readonly<Record<number, number>>;
}

const pace = new Pace();
let answered = 0;
let refused: Record<number, number> = {};
let isStopping = false;
let signed = 0;
let working: Promise<unknown> = Promise.resolve();

/** Submissions that nobody has sent. */
let prepared: string[] = [];

function nextSubmission(): string {
  if (!prepared.length) {
    const crowd: Crowd = { name: "volume", size: SIGNERS, first: signed, step: 1 };
    const submissions = signedSubmissions(AT_ONCE, `volume from ${signed}`, (n) => signerAt(crowd, n));
    prepared = submissions.map((one) => JSON.stringify(one));
    signed += AT_ONCE;
  }
  return prepared.pop()!;
}

/** @returns the answer's body, if it was one of success */
async function exchange(connection: Connection, request: Buffer): Promise<string | null> {
  await pace.turn();
  const { status, body } = await connection.exchange(request);
  answered++;
  if (status === 200) return body;
  refused[status] = (refused[status] ?? 0) + 1;
  return null;
}

async function send(url: string, random: Random): Promise<void> {
  const { hostname: host, port } = new URL(url);
  const place = { host, port: Number(port) };
  const get = (path: string) => Buffer.from(`GET /api/v1/log/${path} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`);
  const connection = await openConnection(place);
  for (let sent = 1; !isStopping; sent++) {
    const receipt = await exchange(connection, postRequest(place, "/api/v1/attestations", nextSubmission()));
    // A connection that broke would fail at once for ever.
    if (receipt === null) break;
    if (sent % WRITES) continue;
    const { log_entry_id, leaf_index } = JSON.parse(receipt) as { log_entry_id: number; leaf_index: number };
    await exchange(connection, get(`${1 + random.below(log_entry_id)}`));
    await exchange(connection, get(`proof/${random.below(leaf_index + 1)}`));
  }
  connection.close();
}

async function handle(order: Order): Promise<Answered | null> {
  if (order.kind === "start") {
    isStopping = false;
    const random = new Random(order.seed);
    working = Promise.all(Array.from({ length: CONNECTIONS }, () => send(order.url, random.fork())));
    return null;
  }
  if (order.kind === "pace") {
    pace.rate = order.rate;
    return null;
  }
  if (order.kind === "stop") {
    isStopping = true;
    await working;
  }
  const taken = { answered, refused };
  [answered, refused] = [0, {}];
  return taken;
}

/** The parent's side. */
export class Volume {
  readonly #child: Child = startChild(new URL(import.meta.url));

  start(url: string, seed: number): Promise<null> {
    return this.#child.ask({ kind: "start", url, seed } satisfies Order);
  }

  pace(rate: number): Promise<null> {
    return this.#child.ask({ kind: "pace", rate } satisfies Order);
  }

  take(): Promise<Answered> {
    return this.#child.ask({ kind: "take" } satisfies Order);
  }

  /** Sends nothing more, and waits for the answers of what was sent. */
  stop(): Promise<Answered> {
    return this.#child.ask({ kind: "stop" } satisfies Order);
  }

  close(): Promise<void> {
    return this.#child.close();
  }
}

if (process.argv[1] === import.meta.filename) answerOrders(handle);
