/** Requests to nodes that may be dead, frozen or cut off, by a client that goes on at another node. */
import { setTimeout as sleep } from "node:timers/promises";
import { patientFetch } from "#cairnlog/server/outgoing/patience.js";
import type { Random } from "../../reliability/random.js";
import type { Node } from "../rig/node.js";
import type { Facts } from "./facts.js";

/** Milliseconds until a client gives up an answer. A frozen node does not answer. */
const ANSWER_MS = 4_000;
/** Milliseconds until a client that was refused asks another node. */
const PAUSE_MS = 200;

/** Codes of refusals that promise that a client may try again. */
const PASSING: ReadonlySet<string> = new Set(["not-leader", "not-ready", "overloaded", "storage-failed", "closed"]);

export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly body: any;
  /** Which node answered. */
  readonly by: Node;
}

export class Client {
  readonly #nodes: readonly Node[];
  readonly #facts: Facts;
  readonly #random: Random;
  readonly #signal: AbortSignal;
  readonly #fetch: typeof fetch;
  /** Number of answers of each kind: statuses, codes of refusals, and `none`. */
  readonly answers: Map<string, number>;

  constructor(nodes: readonly Node[], facts: Facts, random: Random, signal: AbortSignal, answers: Map<string, number>) {
    this.#nodes = nodes;
    this.#facts = facts;
    this.#random = random;
    this.#signal = signal;
    this.#fetch = patientFetch(() => () => null, { signal, requestMs: ANSWER_MS });
    this.answers = answers;
  }

  get isOver(): boolean {
    return this.#signal.aborted;
  }

  /** One request to a node. @returns null if it was not answered: what it asks for was done, will be done, or never */
  async send(node: Node, method: string, path: string, body?: object, token?: string): Promise<Reply | null> {
    let response: Response;
    let text: string;
    try {
      response = await this.#fetch(`${node.url}/api/v1${path}`, {
        method,
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        ...(body && { body: JSON.stringify(body) }),
      });
      text = await response.text();
    } catch (error) {
      if (!(error instanceof TypeError || ["TimeoutError", "AbortError"].includes((error as Error).name))) throw error;
      this.#count("none");
      return null;
    }
    const parsed = text ? JSON.parse(text) : {};
    this.#count(response.ok ? "ok" : String(parsed.code ?? response.status));
    if (response.status === 503 && !PASSING.has(parsed.code))
      this.#facts.problems.push(`${method} ${path} at ${node.name}: 503 ${text.slice(0, 200)}`);
    if (parsed.code === "not-leader") this.#checkHint(node, response);
    return { status: response.status, body: parsed, by: node };
  }

  #count(kind: string): void {
    this.answers.set(kind, (this.answers.get(kind) ?? 0) + 1);
  }

  #checkHint(node: Node, { headers }: Response): void {
    const leader = headers.get("cairnlog-leader");
    if (!headers.has("retry-after")) this.#facts.problems.push(`${node.name}: not-leader without Retry-After`);
    if (leader !== null && !this.#nodes.some(({ url }) => url === leader))
      this.#facts.problems.push(`${node.name} names a leader that there is not: ${leader}`);
  }

  /**
   * Sends a request until a node decides it: one after the other, beginning with any.
   * @returns null if nobody has when the round is over
   */
  async insist(method: string, path: string, body?: object, token?: string): Promise<Reply | null> {
    for (let at = this.#random.below(this.#nodes.length); !this.isOver; at++) {
      const reply = await this.send(this.#nodes[at % this.#nodes.length]!, method, path, body, token);
      if (reply && reply.status !== 503) return reply;
      await sleep(PAUSE_MS);
    }
    return null;
  }

  /** Any node. */
  any(): Node {
    return this.#random.pick(this.#nodes);
  }
}
