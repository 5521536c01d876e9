/** Rows of work in the background: checkpoints, witnesses, deliveries, and the log under them. */

import { getEventListeners } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pino } from "pino";
import { expect } from "vitest";
import { systemClock } from "#cairnlog/engine/log/state/clock.js";
import { CheckpointPublisher } from "#cairnlog/engine/log/tlog/publisher.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { Webhooks } from "#cairnlog/engine/registry/webhooks/webhooks.js";
import { Writes } from "#cairnlog/engine/registry/writes/writes.js";
import { parsePolicy } from "#cairnlog/engine/verify/index.js";
import { Cosigning } from "#cairnlog/server/cosigning/cosigning.js";
import { Recall } from "#cairnlog/server/cosigning/recall.js";
import { patientFetch, throughOutages } from "#cairnlog/server/outgoing/patience.js";
import { systemSchedule } from "#cairnlog/server/webhooks/background-work.js";
import { Deliverer } from "#cairnlog/server/webhooks/deliverer.js";
import { ATTEMPT_TIMEOUT_MS, httpSender } from "#cairnlog/server/webhooks/send.js";
import { Sender } from "#cairnlog/server/webhooks/sender.js";
import { openFaultyLog, openTestLog, temporaryFolder, testOperator } from "../log/harness.js";
import { newMlDsaSigner } from "../verify/note/notes.js";
import { newTree } from "../witness/logs.js";
import { held } from "./held.js";
import { nothing, type Row } from "./rows.js";

const EXCHANGE = "server/outgoing/exchange.ts";
const PUBLISHER = "engine/log/tlog/publisher.ts";
const ASKER = "server/cosigning/asker.ts";
const OWNER = `sha256:${"a".repeat(64)}`;
/** Pauses of minutes last for seconds. */
const HASTE = 40;
const note = { event_type: "note", payload: {} };
const logger = pino({ level: "silent" });

/** A server of others that can be away: then its connections are closed without an answer. */
class Elsewhere {
  readonly #server: Server;
  isAway = false;
  /** Requests that came. */
  asked = 0;

  constructor(answer: RequestListener) {
    this.#server = createServer((request, response) => {
      this.asked++;
      if (this.isAway) request.socket.destroy();
      else answer(request, response);
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Away until it was asked once more. */
  async leave(): Promise<void> {
    this.isAway = true;
    const { asked } = this;
    await expect.poll(() => this.asked, { interval: 5 }).toBeGreaterThan(asked);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export const BACKGROUND_ROWS: readonly Row[] = [
  {
    name: "a log whose disk refuses",
    files: ["engine/store/store.ts", "engine/store/lmdb/opening-gate.ts", "engine/log/state/clock.ts"],
    async open() {
      const around = held();
      const { log, faults } = await openFaultyLog();
      return {
        around,
        async call() {
          const { size } = log;
          await Promise.all([log.append(note), log.append([note, note])]);
          return { added: log.size - size, queued: log.queued };
        },
        async fail() {
          faults.plan = ["not persisted"];
          await expect(log.append(note)).rejects.toMatchObject({ code: "storage-failed" });
        },
        recover: nothing,
        close: () => log.close(),
      };
    },
  },
  {
    name: "checkpoints that cannot be written",
    files: [PUBLISHER],
    pauses: PUBLISHER,
    async open() {
      const { log } = await openTestLog();
      await log.append(note);
      const around = held();
      const file = join(temporaryFolder(), "tlog-checkpoint.txt");
      const troubles: (string | null)[] = [];
      const publisher = new CheckpointPublisher({
        ...{ log, origin: "log.example/after", signer: testOperator, file, intervalMs: 0 },
        told: (trouble) => troubles.push(trouble?.code ?? null),
      });
      await publisher.open();
      publisher.start();
      return {
        around,
        async call() {
          await log.append(note);
          await expect.poll(() => publisher.size, { interval: 2 }).toBe(log.size);
          return { troubles: troubles.splice(0).filter((trouble) => trouble !== null) };
        },
        async fail() {
          mkdirSync(`${file}.new`);
          await log.append(note);
          await expect.poll(() => troubles.splice(0), { interval: 2 }).toEqual(["storage-failed"]);
        },
        async recover() {
          rmSync(`${file}.new`, { recursive: true });
          await expect.poll(() => publisher.size, { interval: 2 }).toBe(log.size);
        },
        close: () => publisher.stop(),
        remove: () => log.close(),
      };
    },
  },
  {
    name: "a witness that is away for a while",
    files: [EXCHANGE, ASKER, "server/cosigning/cosigning.ts"],
    pauses: ASKER,
    async open() {
      const tree = newTree("log.example/after");
      const signer = newMlDsaSigner("a.example");
      const witness = await new Elsewhere((request, response) => {
        void request.toArray().then((parts) => {
          const body = Buffer.concat(parts).toString();
          const text = `${body.slice(body.indexOf("\n\n") + 2).split("\n\n")[0]}\n`;
          response.end(signer.line(text));
        });
      }).start();
      const around = held();
      const cosigning = await Cosigning.open({
        policy: parsePolicy(`witness A ${signer.vkey} ${witness.url}\nquorum A\n`),
        file: join(temporaryFolder(), "cosigned.txt"),
        origin: tree.origin,
        proof: (from, to) => tree.proof(from, to),
        told: () => {},
      });
      let size = 0;
      const offer = () => cosigning.offer({ treeSize: ++size, note: tree.note(size) });
      const shown = () => expect.poll(() => cosigning.status.treeSize, { interval: 5 }).toBe(size);
      return {
        around,
        async call() {
          const { asked } = witness;
          offer();
          await shown();
          return { asked: witness.asked - asked, trouble: cosigning.status.witnesses[0]!.trouble };
        },
        async fail() {
          const left = witness.leave();
          offer();
          await left;
          await expect.poll(() => cosigning.status.witnesses[0]!.trouble, { interval: 5 }).not.toBeNull();
        },
        async recover() {
          witness.isAway = false;
          await shown();
        },
        close: () => cosigning.stop(),
        remove: () => witness.stop(),
      };
    },
  },
  {
    name: "the question whether a log was set back, which nobody answers",
    files: [EXCHANGE, "server/cosigning/recall.ts"],
    async open() {
      const { log } = await openTestLog();
      const mirror = await new Elsewhere((_, response) => response.writeHead(404).end()).start();
      const around = held();
      let recall: Recall | null = null;
      const begin = async () => {
        await recall?.stop();
        recall = new Recall({
          ...{ log, origin: "log.example/after", keys: [], witnesses: [], mirrors: [mirror.url], logger, againMs: 20 },
          compare: async () => null,
          refuted: () => {},
        });
        await recall.open();
      };
      return {
        around,
        async call() {
          await begin();
          await expect.poll(() => recall!.warnings, { interval: 5 }).toEqual([]);
          return true;
        },
        async fail() {
          mirror.isAway = true;
          await begin();
          await mirror.leave();
          expect(recall!.warnings).toHaveLength(1);
        },
        async recover() {
          mirror.isAway = false;
          await expect.poll(() => recall!.warnings, { interval: 5 }).toEqual([]);
        },
        close: async () => recall?.stop(),
        async remove() {
          await mirror.stop();
          await log.close();
        },
      };
    },
  },
  {
    name: "questions that wait until a log answers again",
    files: ["server/outgoing/patience.ts"],
    async open() {
      const log = await new Elsewhere((_, response) => response.writeHead(200, { connection: "close" }).end()).start();
      const around = held();
      const stop = new AbortController();
      const pauses: number[] = [];
      const ask = patientFetch(throughOutages, {
        ...{ signal: stop.signal, say: () => {}, requestMs: 60_000 },
        sleep: async (ms) => void pauses.push(ms),
      });
      return {
        around,
        async call() {
          const { status } = await ask(log.url);
          return { status, pauses: pauses.splice(0), listeners: getEventListeners(stop.signal, "abort").length };
        },
        async fail() {
          log.isAway = true;
          await expect(ask(log.url)).rejects.toThrow();
          expect(pauses.splice(0)).toEqual([1_000, 2_000, 4_000, 8_000]);
        },
        async recover() {
          log.isAway = false;
        },
        close: async () => stop.abort(),
        remove: () => log.stop(),
      };
    },
  },
  {
    name: "deliveries to an endpoint that is away for a while",
    files: ["server/webhooks/background-work.ts", EXCHANGE],
    async open() {
      const { log } = await openTestLog({ projection });
      const webhooks = new Webhooks({
        ...{ log, writer: log, operator: OWNER, allowPrivate: true, perAddress: null },
        writes: new Writes(log, { isReached: () => false, reaches: async () => false }),
        trust: { reaches: async () => true },
      });
      const receiver = await new Elsewhere((_, response) => {
        response.writeHead(204, { connection: "close" }).end();
      }).start();
      const register = async () => void (await log.append({ event_type: "key_registration", payload: {} }));
      await register();
      // Who reads an entry keeps the log's file open from then on.
      log.entry(1);
      await webhooks.subscribe({ url: receiver.url }, OWNER);
      const around = held();
      const began = systemClock();
      /** Timers that run, and their milliseconds. */
      const timers = new Map<object, number>();
      const deliverer = new Deliverer({
        ...{ webhooks, logger, send: httpSender({ allowPrivate: true }), random: () => 0 },
        // Its clock and its timers run faster, and an attempt has its time.
        clock: () => began + HASTE * (systemClock() - began),
        schedule(milliseconds, run) {
          const timer = {};
          const end = () => timers.delete(timer);
          const cancel = systemSchedule(milliseconds / (milliseconds === ATTEMPT_TIMEOUT_MS ? 1 : HASTE), () => {
            end();
            run();
          });
          timers.set(timer, milliseconds);
          return () => {
            end();
            cancel();
          };
        },
      });
      deliverer.start();
      const done = () =>
        expect.poll(() => deliverer.waiting + deliverer.unread + deliverer.behind, { interval: 5 }).toBe(0);
      return {
        around,
        async call() {
          const { asked } = receiver;
          const { delivered, failed } = deliverer;
          await register();
          await expect.poll(() => deliverer.delivered, { interval: 5 }).toBeGreaterThan(delivered);
          await done();
          return [deliverer.delivered - delivered, deliverer.failed - failed, receiver.asked - asked];
        },
        async fail() {
          const { failed } = deliverer;
          receiver.isAway = true;
          await register();
          await expect.poll(() => deliverer.failed, { interval: 5 }).toBeGreaterThan(failed);
          // It waits until it tries again.
          const waits = () => [...timers.values()].filter((milliseconds) => milliseconds !== ATTEMPT_TIMEOUT_MS).length;
          await expect.poll(waits, { interval: 5 }).toBe(1);
        },
        async recover() {
          receiver.isAway = false;
          await done();
        },
        async close() {
          await deliverer.stop();
          expect(timers.size).toBe(0);
        },
        async remove() {
          await receiver.stop();
          await log.close();
        },
      };
    },
  },
  {
    name: "the thread of deliveries, which is ended with attempts under way",
    files: ["server/webhooks/sender.ts"],
    async open() {
      const receiver = await new Elsewhere((_, response) => response.writeHead(204).end()).start();
      const around = held();
      const sender = new Sender(true);
      const request = { url: receiver.url, headers: { "content-type": "application/json" }, body: "{}" };
      const never = new AbortController().signal;
      const four = () => Promise.all(Array.from({ length: 4 }, () => sender.send(request, never)));
      return {
        around,
        async call() {
          const verdicts = await four();
          return { verdicts, isFull: sender.places.isFull("127.0.0.1") };
        },
        async fail() {
          const ending = four();
          await sender.close();
          for (const { isDelivered } of await ending) expect(isDelivered).toBe(false);
        },
        recover: nothing,
        close: () => sender.close(),
        remove: () => receiver.stop(),
      };
    },
  },
];
