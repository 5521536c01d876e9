/**
 * The writer's side of a front end: hands its commands to the log and its calls to whoever answers them, and sends the
 * answers back, all of one batch in one message. It belongs to the writer's thread.
 */
import type { MessagePort } from "node:worker_threads";
import { CairnlogError } from "../../engine/base/error.js";
import type { FeedMessage } from "../../engine/log/follow/feed.js";
import { commandNamed } from "../../engine/log/state/commands.js";
import type { Committed } from "../../engine/log/state/executor.js";
import type { LogWriter } from "../../engine/log/writer.js";
import type { TreeHead } from "../../engine/verify/tree/treehead.js";
import { inTrace } from "../process/tracing.js";
import { answerCall, type Shared } from "./calls.js";
import {
  type BatchHead,
  type CallId,
  type CommandMessage,
  faultOf,
  type Outcome,
  type ToFront,
  type ToWriter,
} from "./messages.js";

/** What a front end says of itself. */
export type FrontWord = Exclude<ToWriter, { kind: "commands" | "call" }>;

interface WriterSideParts {
  readonly port: MessagePort;
  readonly log: Pick<LogWriter, "enqueue">;
  readonly shared: Shared;
  /** Called when there is something for `tell` to send. */
  readonly due: () => void;
  /** Called with everything else that it says. */
  readonly heard: (word: FrontWord) => void;
}

export class WriterSide {
  readonly #parts: WriterSideParts;
  #outcomes: Outcome[] = [];
  #entries: Buffer[] = [];
  #bytes = 0;
  #heads: BatchHead[] = [];

  constructor(parts: WriterSideParts) {
    this.#parts = parts;
    parts.port.on("message", (message: ToWriter) => {
      if (message.kind === "commands") for (const command of message.commands) this.#take(command);
      else if (message.kind === "call") void this.#call(message);
      else parts.heard(message);
    });
  }

  /** A front end that is gone gets nothing, and that is no error. */
  send(message: ToFront): void {
    this.#parts.port.postMessage(message);
  }

  close(): void {
    this.#parts.port.close();
  }

  #take(message: CommandMessage): void {
    const traceparent = message[5];
    if (traceparent) inTrace(traceparent, () => this.#enqueue(message));
    else this.#enqueue(message);
  }

  #enqueue([id, name, input, client = null, isReached = false]: CommandMessage): void {
    const command = commandNamed(name);
    const reject = (error: unknown) => this.#ended([id, faultOf(error)]);
    const payer = client === null ? null : { client, isReached };
    if (command)
      this.#parts.log.enqueue(command, input as never, (committed) => this.#committed(id, committed), reject, payer);
    else reject(new CairnlogError("invalid-input", `There is no command of the name ${name}.`));
  }

  #committed(id: CallId, { value, receipts }: Committed<unknown>): void {
    const packed: (string | number)[] = [];
    for (const { log_entry_id, leaf_index, entry_hash, timestamp, sth, json } of receipts) {
      this.#entries.push(json);
      this.#bytes += json.length;
      const head = this.#headOf(sth);
      packed.push(log_entry_id, leaf_index, entry_hash, timestamp, sth.root_hash, sth.signature, head, this.#bytes);
    }
    this.#ended([id, null, value, ...packed]);
  }

  /** The number of what a head has in common with the others of its batch. */
  #headOf({ timestamp, key_id, tree_version }: TreeHead): number {
    const last = this.#heads.at(-1);
    if (last?.timestamp !== timestamp || last.key_id !== key_id) this.#heads.push({ timestamp, key_id, tree_version });
    return this.#heads.length - 1;
  }

  #ended(outcome: Outcome): void {
    this.#outcomes.push(outcome);
    this.#parts.due();
  }

  /** Sends what is new on the log, and how the commands have ended that ended since the last call. */
  tell(feed: readonly FeedMessage[]): void {
    if (!feed.length && !this.#outcomes.length) return;
    const entries = this.#joined();
    const message: ToFront = { kind: "feed", feed, outcomes: this.#outcomes, heads: this.#heads, entries };
    this.#parts.port.postMessage(message, entries ? [entries.buffer] : []);
    [this.#outcomes, this.#heads, this.#entries, this.#bytes] = [[], [], [], 0];
  }

  /** In memory of its own, which is moved to the other thread. */
  #joined(): Uint8Array<ArrayBuffer> | null {
    if (!this.#bytes) return null;
    const joined = new Uint8Array(this.#bytes);
    let at = 0;
    for (const json of this.#entries) {
      joined.set(json, at);
      at += json.length;
    }
    return joined;
  }

  async #call({ id, traceparent, ...call }: ToWriter & { kind: "call" }): Promise<void> {
    try {
      const { shared } = this.#parts;
      const value = await (traceparent
        ? inTrace(traceparent, () => answerCall(shared, call))
        : answerCall(shared, call));
      this.send({ kind: "answer", id, value });
    } catch (error) {
      this.send({ kind: "refusal", id, fault: faultOf(error) });
    }
  }
}
