/** What an attempt leaves behind, however it ended: nothing. */
import { getEventListeners } from "node:events";
import { MessageChannel, Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AddressPlaces } from "#cairnlog/server/webhooks/address-places.js";
import { httpSender } from "#cairnlog/server/webhooks/send.js";
import type { SenderMessage } from "#cairnlog/server/webhooks/sending.js";
import { added, held, watchResources } from "../after/held.js";
import { closeWorlds } from "../registry/world.js";
import { ACCEPTED, openPost, REFUSED } from "./harness.js";
import { type Receiver, startReceiver } from "./receiver.js";

watchResources();
afterAll(closeWorlds);

/** An answer that is too long to be read. */
const LONG = Buffer.alloc(1_000_000);
/** Attempts at one address at the same time. */
const AT_ADDRESS = 4;
/** Seconds before the second attempt. */
const FIRST_PAUSE_S = 5;
/** Nobody listens there. */
const NOBODY = "http://127.0.0.1:1/";
const request = (url: string) => ({ url, headers: { "content-type": "application/json" }, body: "{}" });

interface Ending {
  readonly answer?: Receiver["answer"];
  readonly url?: string;
  /** Whether the deliverer ends it when the receiver has the request. */
  readonly isGivenUp?: boolean;
}

const ENDINGS: Readonly<Record<string, Ending>> = {
  "is delivered": {},
  "is refused": { answer: (response) => response.writeHead(503, { "retry-after": "7" }).end() },
  "is broken off": { answer: (response) => response.socket!.destroy() },
  "is answered at length": { answer: (response) => response.writeHead(200).end(LONG) },
  "is broken off within the answer": {
    answer(response) {
      response.writeHead(200, { "content-length": "100" });
      response.write("half", () => response.socket!.destroy());
    },
  },
  "is given up": { answer: () => {}, isGivenUp: true },
  "is given up within the answer": {
    answer: (response) => void response.writeHead(200, { "content-length": "100" }).write("half"),
    isGivenUp: true,
  },
  "reaches nobody": { url: NOBODY },
};

let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});

/** One attempt, which ends as `ending` says. @param begin makes it; the function it is given ends it */
async function attempted(ending: Ending, begin: (url: string) => { ended: Promise<unknown>; giveUp: () => void }) {
  const { received } = receiver;
  const { length } = received;
  receiver.answer = ending.answer ?? ((response) => response.writeHead(204).end());
  const { ended, giveUp } = begin(ending.url ?? receiver.url);
  if (ending.isGivenUp) {
    await expect.poll(() => received.length, { interval: 1 }).toBe(length + 1);
    giveUp();
  }
  await ended;
}

test.each(Object.entries(ENDINGS))(
  "one that %s: no timer, no connection, no place, nobody who listens",
  async (_, ending) => {
    const before = held();
    const places = new AddressPlaces();
    const send = httpSender({ allowPrivate: true, places });
    const controller = new AbortController();
    await attempted(ending, (url) => ({
      ended: send(request(url), controller.signal),
      giveUp: () => controller.abort(),
    }));
    await expect.poll(() => getEventListeners(controller.signal, "abort"), { interval: 1 }).toEqual([]);
    await expect.poll(() => added(held(), before), { interval: 5 }).toEqual([]);
    const free = Array.from({ length: AT_ADDRESS }, () => places.enter("127.0.0.1"));
    expect(free).toEqual(free.map(() => true));
  },
);

describe("in the thread that sends", () => {
  let worker: Worker;
  const { port1, port2 } = new MessageChannel();
  const verdicts = new Map<number, () => void>();
  beforeAll(() => {
    worker = new Worker(new URL("./counting.mjs", import.meta.url), {
      workerData: { port: port2, allowPrivate: true },
      transferList: [port2],
      execArgv: [],
    });
    port1.on("message", (words: readonly SenderMessage[]) => {
      for (const word of words) if ("verdict" in word) verdicts.get(word.id)!();
    });
  });
  afterAll(async () => {
    port1.close();
    await worker.terminate();
  });
  const controllers = () =>
    new Promise<number>((resolve) => {
      worker.once("message", resolve);
      worker.postMessage("count");
    });

  test("nothing by which one that has ended could be given up", async () => {
    const before = await controllers();
    for (const [n, ending] of Object.values(ENDINGS).entries())
      await attempted(ending, (url) => ({
        ended: new Promise<void>((resolve) => {
          verdicts.set(n, resolve);
          port1.postMessage([{ id: n, request: request(url) }]);
        }),
        giveUp: () => port1.postMessage([{ id: n, request: null }]),
      }));
    await expect.poll(controllers).toBe(before);
  });
});

test("in the deliverer: a stop ends the attempt under way, and no other; no timer is left", async () => {
  const post = await openPost();
  const answers = [ACCEPTED, REFUSED, ACCEPTED];
  post.answer = () => answers.shift() ?? new Promise(() => {});
  await post.subscribe();
  await post.register(2);
  await post.until(() => post.timers === 1);
  post.pass(FIRST_PAUSE_S);
  await post.done();
  await post.register();
  await post.until(() => post.arrivals.length === 4);
  await post.deliverer.stop();
  expect(post.arrivals.map(({ signal }) => signal.aborted)).toEqual([false, false, false, true]);
  expect(post.timers).toBe(0);
});
