/** Front ends of one writer, in one thread: whatever would pass between threads is a step of its own. */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { expect } from "vitest";
import type { LogFollower } from "#cairnlog/engine/log/follow/follower.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import type { Shared } from "#cairnlog/server/front/calls.js";
import { FeedSender } from "#cairnlog/server/front/feed-sender.js";
import type { ToFront } from "#cairnlog/server/front/messages.js";
import { SharedState } from "#cairnlog/server/front/shared-state.js";
import { WriterSide } from "#cairnlog/server/front/writer-side.js";
import { WriterPort } from "#cairnlog/server/front/writerport.js";
import { MAP_SIZE, openTestLog, testOperator } from "../log/harness.js";
import type { Scene, Step } from "./orders.js";

const note = { event_type: "note", payload: {} };
/** Looks at the counter within one `catchUp` after which it waits for what another thread does. */
const LOOKS = 100;

class Waits extends Error {}

/** What the writer's thread does that others can see, in order: carried out one by one, as if it was stopped in between. */
class Effects {
  readonly #list: { readonly label: string; readonly happen: () => void }[] = [];
  #added = () => {};
  #happened: (() => void)[] = [];

  add(label: string, happen: () => void): void {
    this.#list.push({ label, happen });
    this.#added();
  }

  /** The writer's thread, for as long as `isNeeded`. */
  async carryOut(step: Step, isNeeded: () => boolean): Promise<void> {
    while (isNeeded()) {
      const next = this.#list.shift();
      if (!next) {
        await new Promise<void>((resolve) => {
          this.#added = resolve;
        });
        continue;
      }
      await step(`the writer ${next.label}`, next.happen);
      for (const resolve of this.#happened.splice(0)) resolve();
    }
  }

  /** Ends every wait: there will be no more. */
  end(): void {
    this.#added();
    for (const resolve of this.#happened.splice(0)) resolve();
  }

  /** Resolves with the next effect. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#happened.push(resolve));
  }
}

class TestFront {
  readonly name: string;
  readonly port: WriterPort;
  readonly writerSide: WriterSide;
  readonly follower: LogFollower;
  readonly #inbox: MessagePort;
  #take: (message: ToFront) => void = () => {};
  #looks = 0;

  constructor(name: string, { log, path, sharedState, effects, feedSender }: FrontParts) {
    this.name = name;
    const { port1, port2 } = new MessageChannel();
    const post = port1.postMessage.bind(port1);
    port1.postMessage = (message: ToFront, transfer?: never) =>
      effects.add(`sends ${message.kind} to ${name}`, () => post(message, transfer));
    const metrics = { text: async () => `${(await log.append(note)).leaf_index + 1}` };
    this.writerSide = new WriterSide({
      port: port1,
      log,
      shared: { metrics } as unknown as Shared,
      due: () => feedSender().due(),
      heard: () => {},
    });
    this.#inbox = port2;
    port2.on = ((_: string, take: (message: ToFront) => void) => {
      this.#take = take;
      return port2;
    }) as never;
    const looked = () => {
      if (++this.#looks > LOOKS) throw new Waits();
      return sharedState.fed;
    };
    this.port = new WriterPort(
      port2,
      {
        get fed() {
          return looked();
        },
      },
      sharedState.fed,
    );
    this.follower = openLogFollower({
      path,
      operatorKey: testOperator.public.pem,
      mapSize: MAP_SIZE,
      writer: {
        enqueue: (...given) => this.port.enqueue(...given),
        signHead: () => Promise.reject(new Error("not here")),
        verify: () => Promise.reject(new Error("not here")),
      },
    });
    this.port.follow((message) => this.follower.follow(message));
  }

  /** Its event loop takes what has arrived. */
  hear(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#inbox) as { message: ToFront } | undefined;
      if (!received) return;
      this.#take(received.message);
    }
  }

  /** The size of the log that an answer shows; null while it waits for the writer's thread. */
  answer(): number | null {
    this.#looks = 0;
    try {
      this.port.catchUp();
      return this.follower.size;
    } catch (error) {
      if (error instanceof Waits) return null;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.writerSide.close();
    await this.follower.close();
  }
}

interface FrontParts {
  readonly log: LogWriter;
  readonly path: string;
  readonly sharedState: SharedState;
  readonly effects: Effects;
  readonly feedSender: () => FeedSender;
}

/**
 * A client that writes at one front end, by a command or a call, and when it is answered asks the others: each shows what it
 * was told, or waits for the writer's thread.
 */
export async function frontScene(
  step: Step,
  names: readonly string[],
  by: readonly ("command" | "call")[],
): Promise<Scene> {
  const { log, path } = await openTestLog();
  await log.append(note);
  const sharedState = SharedState.create(names.length);
  const effects = new Effects();
  const parts: FrontParts = { log, path, sharedState, effects, feedSender: () => feedSender };
  const counted = { count: (messages: number) => effects.add(`counts ${messages}`, () => sharedState.count(messages)) };
  const fronts: TestFront[] = [];
  const feedSender: FeedSender = new FeedSender(counted, () => fronts.map(({ writerSide }) => writerSide));
  for (const name of names) fronts.push(new TestFront(name, parts));
  log.feed((message) => feedSender.add(message));
  let told = log.size;
  let clients = by.length;
  const ends = () => clients === 0;
  const asks = async (way: "command" | "call", n: number) => {
    const [writes, ...others] = [...fronts.slice(n % fronts.length), ...fronts.slice(0, n % fronts.length)];
    for (let round = 0; round < 3; round++) {
      const answered =
        way === "command"
          ? writes!.follower.append(note).then(({ leaf_index }) => leaf_index + 1)
          : writes!.port.calls.metrics.text().then(Number);
      told = Math.max(told, await answered);
      for (const front of others) await shows(front);
    }
  };
  const shows = async (front: TestFront) => {
    for (;;) {
      const atLeast = told;
      const next = effects.next();
      const size = await step(`${front.name} is asked`, () => front.answer());
      if (size !== null) return expect(size, `what ${front.name} shows`).toBeGreaterThanOrEqual(atLeast);
      await next;
    }
  };
  const client = async (way: "command" | "call", n: number) => {
    try {
      await asks(way, n);
    } finally {
      if (--clients === 0) effects.end();
    }
  };
  const hearing = (front: TestFront) => async () => {
    while (!ends()) {
      const next = effects.next();
      await step(`${front.name} hears`, () => front.hear());
      await next;
    }
  };
  return {
    actors: [
      () => effects.carryOut(step, () => !ends()),
      ...by.map((way, n) => () => client(way, n)),
      ...fronts.map(hearing),
    ],
    close: async () => {
      for (const front of fronts) await front.close();
      await log.close();
    },
  };
}
