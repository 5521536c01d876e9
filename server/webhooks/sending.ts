/**
 * The thread that sends deliveries: sockets, TLS and DNS of receivers, whom strangers choose. `sender.ts` is the other side
 * of its port. Where the system lets a thread have a priority of its own, this one yields to those that serve the log.
 */
import { type MessagePort, workerData } from "node:worker_threads";
import { yieldToOthers } from "../../engine/base/turns.js";
import { AddressPlaces } from "./address-places.js";
import type { DeliveryRequest } from "./message.js";
import { type AttemptResult, httpSender } from "./send.js";

export interface SendingData {
  readonly port: MessagePort;
  readonly allowPrivate: boolean;
}

/** What the thread is asked: to send, or to end an attempt. */
export type Order =
  | { readonly id: number; readonly request: DeliveryRequest }
  | { readonly id: number; readonly request: null };

/** What it says: how an attempt ended, or that a place at an address has become free. */
export type SenderMessage = { readonly id: number; readonly verdict: AttemptResult } | { readonly freed: string };

function serve({ port, allowPrivate }: SendingData): void {
  const places = new AddressPlaces();
  const send = httpSender({ allowPrivate, places });
  const attempts = new Map<number, AbortController>();
  let words: SenderMessage[] = [];
  const say = (word: SenderMessage): void => {
    if (words.push(word) > 1) return;
    setImmediate(() => {
      port.postMessage(words);
      words = [];
    });
  };
  places.freed = (freed) => say({ freed });
  const attempt = async (id: number, request: DeliveryRequest): Promise<void> => {
    const controller = new AbortController();
    attempts.set(id, controller);
    const verdict = await send(request, controller.signal);
    attempts.delete(id);
    say({ id, verdict });
    // A place may have become free while the verdict was made. To the other side the address is full from the verdict on.
    if (verdict.busy !== undefined && !places.isFull(verdict.busy)) places.freed(verdict.busy);
  };
  port.on("message", (orders: readonly Order[]) => {
    for (const { id, request } of orders)
      if (request) void attempt(id, request);
      else attempts.get(id)?.abort();
  });
}

yieldToOthers();
serve(workerData as SendingData);
