/** A writer and readers in other threads, of which each stops at every write and before and after every read of a moment. */
import { MessageChannel, Worker } from "node:worker_threads";
import { expect, vi } from "vitest";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { Postings } from "#cairnlog/engine/store/postings/postings.js";
import { type Faults, MAP_SIZE, openFaultyLog, testOperator } from "../log/harness.js";
import { runIn } from "../log/inline.js";
import type { Scene, Step } from "./orders.js";

const TYPES = 3;
const typeOf = (leafIndex: number) => `type ${leafIndex % TYPES}`;
const CRITERIA = { eventTypes: [typeOf(1)] };

/** What a reader shows. */
interface Shown {
  readonly size: number;
  readonly indexes: readonly number[];
  /** All that the term has. */
  readonly listed: readonly number[];
  readonly total: number;
  readonly root: string;
  readonly head: number;
  /** The newest row of a watched table, as its observer saw it. */
  readonly password: number;
}

type Said = { readonly label: string } | { readonly failure: string } | { readonly result: unknown };

/** A log in a thread of its own (`reader.mjs`). */
export class ReaderThread {
  readonly #go = new Int32Array(new SharedArrayBuffer(4));
  readonly #worker: Worker;
  /** Messages to it wait until it follows them. */
  readonly #told = new MessageChannel();
  #heard: (said: Said) => void = () => {};

  constructor() {
    this.#worker = new Worker(new URL("./reader.mjs", import.meta.url), {
      workerData: { go: this.#go, told: this.#told.port2, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE },
      transferList: [this.#told.port2],
    });
    this.#worker.on("message", (said: Said) => this.#heard(said));
  }

  tell(message: FeedMessage): void {
    this.#told.port1.postMessage(message);
  }

  end(): Promise<number> {
    this.#told.port1.close();
    return this.#worker.terminate();
  }

  #next(): Promise<Said> {
    return new Promise((resolve) => {
      this.#heard = resolve;
    });
  }

  /** What it does is one step, or as many as it stops in. */
  async does(order: string, input: object = {}, step: Step | null = null): Promise<unknown> {
    let next = this.#next();
    const begin = () => {
      this.#worker.postMessage({ order, input, held: step !== null });
      return next;
    };
    let said = await (step ? step(`reader begins to ${order}`, begin) : begin());
    while ("label" in said) {
      const { label } = said;
      next = this.#next();
      said = await step!(`reader goes on ${label}`, () => {
        Atomics.add(this.#go, 0, 1);
        Atomics.notify(this.#go, 0);
        return next;
      });
    }
    if ("failure" in said) throw new Error(`The reader failed: ${said.failure}`);
    return said.result;
  }
}

/** A log whose writes are steps, with some runs of postings, and which tells a reader of them. */
export interface Written {
  readonly log: LogWriter;
  readonly path: string;
  readonly faults: Faults;
  readonly postings: Postings;
  /** The root of each size that was shown. */
  readonly roots: ReadonlyMap<number, string>;
}

/** Closed after the test. */
export async function openWritten(thread: ReaderThread): Promise<Written> {
  const adding = vi.spyOn(Postings.prototype, "add");
  const { log, path, faults } = await openFaultyLog();
  const roots = new Map<number, string>();
  log.observeSize(() => roots.set(log.size, log.treeHead()!.root_hash));
  await append(log);
  const postings = adding.mock.contexts.at(-1) as Postings;
  adding.mockRestore();
  log.feed((message) => thread.tell(message));
  return { log, path, faults, postings, roots };
}

/** Two entries, and a row that no entry makes, with the size of the log. */
const append = (log: LogWriter) =>
  runIn(log, (transaction) => {
    for (let i = 0; i < 2; i++) {
      const { size } = transaction;
      transaction.append({ event_type: typeOf(size), payload: { n: size } });
    }
    transaction.put("passwords", "someone", { n: transaction.size } as never);
  });

/**
 * A writer that appends, makes runs and merges each four of them, and a reader that reads whenever it may: it shows some size
 * with all of its entries and no others, and its proofs; never less than before, nor less than it was told.
 */
export async function readingScene(
  step: Step,
  { log, path, faults, postings, roots }: Written,
  thread: ReaderThread,
  kind: "reader" | "follower",
): Promise<Scene> {
  const isFollower = kind === "follower";
  await thread.does("open", { path, isFollower });
  let told = log.size;
  const write = async () => {
    faults.step = step;
    for (let n = 0; n < 2; n++) {
      await append(log);
      await postings.fileAll();
    }
  };
  const read = async () => {
    for (let n = 0; n < 2; n++) {
      if (isFollower) {
        told = log.size;
        await thread.does("follow", {}, step);
      } else await thread.does("refresh", {}, step);
      const shown = (await thread.does("read", { criteria: CRITERIA }, step)) as Shown;
      const { size, password } = shown;
      // Rows may be ahead of the entries that came with them, and are never behind.
      if (isFollower) expect(password).toBeGreaterThanOrEqual(size);
      expect(size).toBeGreaterThanOrEqual(told);
      told = size;
      const indexes = Array.from({ length: size }, (_, i) => i).filter((i) => typeOf(i) === typeOf(1));
      expect(shown).toEqual({
        ...{ size, indexes, listed: indexes, total: indexes.length },
        ...{ root: roots.get(size), head: size, password },
      });
    }
  };
  return {
    actors: [write, read],
    close: async () => {
      faults.step = (_, work) => work();
      await thread.does("close");
    },
  };
}
