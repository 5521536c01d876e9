/**
 * A front end's way to the writer's thread: commands and calls go out, answers come in, and so does what the writer tells of
 * the log. It belongs to the thread of the front end.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { CairnlogError } from "../../engine/base/error.js";
import { registeredTracer } from "../../engine/base/tracing.js";
import type { FeedMessage } from "../../engine/log/follow/feed.js";
import type { Command } from "../../engine/log/state/commands.js";
import type { Committed, Payer, Receipt } from "../../engine/log/state/executor.js";
import { traceHeaders, traceparent } from "../process/tracing.js";
import { callsBy, type WriterCalls } from "./calls.js";
import { type CommandMessage, errorOf, RECEIPT_ITEMS, type ToFront, type ToWriter } from "./messages.js";
import { PendingCalls } from "./pending-calls.js";
import type { SharedState } from "./shared-state.js";

/** Who sent a command or a call. */
interface Caller {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** What the writer's thread wants of a front end. */
export type FrontOrder = Extract<ToFront, { kind: "listen" | "report" | "writers" | "renew" | "close" | "abandon" }>;

export class WriterPort {
  /** What the writer's thread does for this front end. */
  readonly calls: WriterCalls;
  readonly #port: MessagePort;
  readonly #sharedState: Pick<SharedState, "fed">;
  readonly #waiting = new PendingCalls<Caller>();
  readonly #isTracing = registeredTracer() !== null;
  #commands: CommandMessage[] = [];
  /** Messages of the feed that have been followed. */
  #followed: number;
  #follow: ((message: FeedMessage) => void) | null = null;
  #obey: ((order: FrontOrder) => void) | null = null;
  /** What came before there was anybody to follow it. */
  #early: FeedMessage[] = [];

  /** @param fed the number of messages of the feed that were sent before this front end was made */
  constructor(port: MessagePort, sharedState: Pick<SharedState, "fed">, fed: number) {
    this.#port = port;
    this.#sharedState = sharedState;
    this.#followed = fed;
    this.calls = callsBy(
      (call) =>
        new Promise((resolve, reject) => {
          const message = { kind: "call", id: this.#waiting.add({ resolve, reject }), ...call } as const;
          this.send(this.#isTracing ? { ...message, ...traceHeaders() } : message);
        }),
    );
    port.on("message", (message: ToFront) => this.#take(message));
  }

  /** Has `follow` called with everything that the writer tells of the log, from the beginning, in order. */
  follow(follow: (message: FeedMessage) => void): void {
    this.#follow = follow;
    for (const message of this.#early.splice(0)) follow(message);
  }

  obey(obey: (order: FrontOrder) => void): void {
    this.#obey = obey;
  }

  /**
   * Follows what the writer has told until now. To be called before a request is handled: whoever has been answered
   * anywhere must find here what the answer said. The writer counts before it sends anything to anybody, and it sends all of
   * it in one go, so what is counted is there, or will be in some microseconds.
   */
  catchUp(): void {
    // The difference, because both start anew after 2³² messages.
    while (((this.#sharedState.fed - this.#followed) | 0) > 0) {
      const received = receiveMessageOnPort(this.#port) as { message: ToFront } | undefined;
      if (received) this.#take(received.message);
    }
  }

  /** As `Writer.enqueue`. */
  enqueue<Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    resolve: (committed: Committed<Output>) => void,
    reject: (error: unknown) => void,
    payer: Payer | null = null,
  ): void {
    const id = this.#waiting.add({ resolve, reject });
    let message: CommandMessage = payer
      ? [id, command.name, input, payer.client, payer.isReached]
      : [id, command.name, input];
    if (this.#isTracing)
      message = [id, command.name, input, payer?.client ?? null, payer?.isReached ?? false, traceparent()];
    // After all that this turn brings: a message costs both threads some 10 µs, however many commands are in it.
    if (this.#commands.push(message) === 1) process.nextTick(() => this.#flush());
  }

  send(message: ToWriter): void {
    this.#port.postMessage(message);
  }

  close(): void {
    this.#port.close();
    for (const { reject } of this.#waiting.takeAll())
      reject(new CairnlogError("closed", "The service is shutting down."));
  }

  #flush(): void {
    const commands = this.#commands;
    this.#commands = [];
    this.send({ kind: "commands", commands });
  }

  #take(message: ToFront): void {
    switch (message.kind) {
      case "feed":
        this.#followed = (this.#followed + message.feed.length) | 0;
        for (const told of message.feed)
          if (this.#follow) this.#follow(told);
          else this.#early.push(told);
        this.#ended(message);
        return;
      case "answer":
        this.#waiting.take(message.id).resolve(message.value as never);
        return;
      case "refusal":
        this.#waiting.take(message.id).reject(errorOf(message.fault));
        return;
      case "writers":
        this.#followed = (this.#followed + 1) | 0;
        this.#obey?.(message);
        return;
      default:
        this.#obey?.(message);
    }
  }

  #ended({ outcomes, heads, entries }: ToFront & { kind: "feed" }): void {
    const bytes = entries && Buffer.from(entries.buffer, entries.byteOffset, entries.length);
    let from = 0;
    for (const [id, fault, value, ...packed] of outcomes) {
      const { resolve, reject } = this.#waiting.take(id);
      if (fault) {
        reject(errorOf(fault));
        continue;
      }
      const receipts: Receipt[] = [];
      for (let at = 0; at < packed.length; at += RECEIPT_ITEMS) {
        const [log_entry_id, leaf_index, entry_hash, timestamp, root_hash, signature, head, end] = packed.slice(
          at,
          at + RECEIPT_ITEMS,
        ) as [number, number, string, string, string, string, number, number];
        const sth = { tree_size: leaf_index + 1, root_hash, signature, ...heads[head]! };
        receipts.push({ log_entry_id, leaf_index, entry_hash, timestamp, sth, json: bytes!.subarray(from, end) });
        from = end;
      }
      resolve({ value, receipts } as never);
    }
  }
}
