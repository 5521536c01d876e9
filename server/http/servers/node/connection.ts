/** A connection of `node:http`, and the answers on it that are not handed over yet. */
import type { Socket } from "node:net";
import { type EarlyRefusal, refusalBytes } from "./refusals.js";

/** Answers that wait for a client which sends requests and does not read. Node makes objects of several kilobytes for each. */
const MAX_WAITING = 64;
/** Milliseconds for which what a refused client still sends is thrown away, so that it gets to see the answer. */
const LINGER_MS = 2_000;

/** An answer on a connection, until the last of it is handed over. */
export interface OpenAnswer {
  /** The service will write no more. */
  readonly isEnded: boolean;
  /** The request is arriving, and nothing of the answer was sent. */
  readonly isArriving: boolean;
  /** The client has done its part and waits for the service. */
  readonly isDue: boolean;
  /** The connection ended, or will. */
  abort(): void;
}

export class Connection {
  readonly #socket: Socket;
  /** Answers that are being made, or that the client has not taken. In the order of the requests. */
  readonly #open = new Set<OpenAnswer>();
  /** An answer has begun behind which the connection ends: whatever else comes is no request. */
  isLast = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Whether the last byte has been handed to the operating system. */
  get isFlushed(): boolean {
    return this.#socket.writableLength === 0;
  }

  /** Whether a request may begin now: every earlier one is answered, and the client reads. */
  get isFree(): boolean {
    if (this.#open.size >= MAX_WAITING) return false;
    for (const response of this.#open) if (!response.isEnded) return false;
    return true;
  }

  opened(response: OpenAnswer): void {
    this.#open.add(response);
  }

  settled(response: OpenAnswer): void {
    this.#open.delete(response);
  }

  /**
   * Answers bytes that are no request, and ends the connection. While another answer is due, that one's client must not
   * take this answer for it, so the connection just ends.
   */
  refuse(refusal: EarlyRefusal): void {
    if (this.isLast || !this.#socket.writable) return;
    const [first, second] = this.#open;
    if (second || (first && !first.isArriving)) {
      this.close();
      return;
    }
    this.isLast = true;
    first?.abort();
    this.#socket.end(refusalBytes(refusal));
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
  }

  /** Ends a connection on which nothing has moved for long, unless the client waits for the service. */
  idle(): void {
    for (const response of this.#open) if (response.isDue) return;
    this.close();
  }

  /** Ends it at once, or learns that it has ended. */
  close(): void {
    this.isLast = true;
    for (const response of this.#open) response.abort();
    this.#socket.destroy();
  }
}
