/**
 * Sends deliveries from a thread of their own (`sending.ts`), so that what receivers cost does not delay the writer. The
 * thread begins with the first delivery: a service without subscriptions has none.
 */
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import type { FreePlaces } from "./address-places.js";
import type { AttemptResult, Send } from "./send.js";
import type { Order, SenderMessage, SendingData } from "./sending.js";

const WORKER = new URL("./sending.js", import.meta.url);
const ENDED: AttemptResult = { isDelivered: false, reason: "the sending thread has ended" };
const NO_THREAD: AttemptResult = { isDelivered: false, reason: "no thread can be begun" };

/** A thread, and the attempts that it makes. */
class Thread {
  readonly #port: MessagePort;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, (verdict: AttemptResult) => void>();
  #orders: Order[] = [];

  /**
   * @param hear called for everything that it says, in order
   * @param ended called when it has ended, by itself or by `close`
   */
  constructor(allowPrivate: boolean, hear: (word: SenderMessage) => void, ended: () => void) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#worker = new Worker(WORKER, {
      workerData: { port: port2, allowPrivate } satisfies SendingData,
      transferList: [port2],
      name: "webhooks",
      execArgv: [],
    });
    port1.on("message", (words: readonly SenderMessage[]) => {
      for (const word of words) {
        hear(word);
        if ("verdict" in word) this.#end(word.id, word.verdict);
      }
    });
    // Its own end says all that there is to say: every attempt has failed.
    this.#worker.on("error", () => {});
    this.#worker.on("exit", () => {
      port1.close();
      for (const id of [...this.#waiting.keys()]) this.#end(id, ENDED);
      ended();
    });
  }

  send(id: number, order: Order["request"]): void {
    if (this.#orders.push({ id, request: order } as Order) > 1) return;
    // Orders of one turn of the event loop are one message.
    queueMicrotask(() => {
      this.#port.postMessage(this.#orders);
      this.#orders = [];
    });
  }

  verdict(id: number): Promise<AttemptResult> {
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  #end(id: number, verdict: AttemptResult): void {
    this.#waiting.get(id)?.(verdict);
    this.#waiting.delete(id);
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

export class Sender {
  readonly #allowPrivate: boolean;
  #thread: Thread | null = null;
  #attempts = 0;
  /** Addresses that have as many attempts as they may have, as far as this thread was told. */
  readonly #full = new Set<string>();
  readonly places: FreePlaces = { isFull: (place) => this.#full.has(place), freed: () => {} };

  /** @param allowPrivate whether addresses that are not public may be called */
  constructor(allowPrivate: boolean) {
    this.#allowPrivate = allowPrivate;
  }

  readonly send: Send = async (request, signal) => {
    const id = ++this.#attempts;
    const thread = this.#begun();
    if (!thread) return NO_THREAD;
    const verdict = thread.verdict(id);
    const abort = () => thread.send(id, null);
    signal.addEventListener("abort", abort);
    thread.send(id, request);
    const ended = await verdict;
    signal.removeEventListener("abort", abort);
    return ended;
  };

  /** Ends the thread; every attempt under way fails. */
  async close(): Promise<void> {
    await this.#thread?.close();
  }

  /** Null where the system gives no more threads: this concerns no one but those who wait for deliveries, which come later. */
  #begun(): Thread | null {
    try {
      this.#thread ??= this.#begin();
    } catch {}
    return this.#thread;
  }

  #begin(): Thread {
    const freed = (place: string) => {
      this.#full.delete(place);
      this.places.freed(place);
    };
    const hear = (word: SenderMessage) => {
      if ("freed" in word) freed(word.freed);
      else if (word.verdict.busy !== undefined) this.#full.add(word.verdict.busy);
    };
    return new Thread(this.#allowPrivate, hear, () => {
      this.#thread = null;
      for (const place of [...this.#full]) freed(place);
    });
  }
}
