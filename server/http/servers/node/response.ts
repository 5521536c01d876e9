/** An answer of `node:http` in the form that the service writes. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TransportResponse } from "../../transport/transport.js";
import type { Connection, OpenAnswer } from "./connection.js";

/** As much of a body is copied and handed to a socket at once. */
const PIECE_BYTES = 128 * 1024;
const NOTHING = new ArrayBuffer(0);

export class NodeResponse implements TransportResponse, OpenAnswer {
  readonly #connection: Connection;
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  #status = "200 OK";
  /** Names and values in turns. */
  readonly #headers: string[] = [];
  #hasBegun = false;
  #isOver = false;
  /** Writes that the socket has not handed to the operating system. */
  #unflushed = 0;
  /** Bytes of the body that were sent by `tryEnd`. */
  #offset = 0;
  /** Whether the service waits until it can write, or until the last byte is handed over. */
  #isAwaited = false;
  #aborted: (() => void) | null = null;
  #writable: ((offset: number) => boolean) | null = null;
  isEnded = false;

  constructor(connection: Connection, incoming: IncomingMessage, outgoing: ServerResponse) {
    this.#connection = connection;
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    connection.opened(this);
    // Node reports here what was written after the connection ended; that end itself is reported by `abort`.
    outgoing.on("error", () => {});
  }

  get isArriving(): boolean {
    return !this.#incoming.complete && !this.#hasBegun;
  }

  get isDue(): boolean {
    return this.#incoming.complete && !this.isEnded && !this.#unflushed;
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return copyOf(Buffer.from(this.#incoming.socket.remoteAddress ?? ""));
  }

  onData(receive: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    this.#incoming.on("data", (chunk: Buffer) => receive(copyOf(chunk), false)).on("end", () => receive(NOTHING, true));
  }

  onAborted(aborted: () => void): void {
    this.#aborted = aborted;
  }

  onWritable(writable: (offset: number) => boolean): void {
    this.#writable = writable;
  }

  /** `node:http` gathers the head and what is written in one turn of the event loop. */
  cork(write: () => void): void {
    write();
  }

  writeStatus(status: string): void {
    this.#status = status;
  }

  writeHeader(name: string, value: string): void {
    const [own, ...more] = value.split("\r\n");
    this.#headers.push(name, own!);
    for (const line of more) {
      const colon = line.indexOf(":");
      this.#headers.push(line.slice(0, colon), line.slice(colon + 2));
    }
    if (name === "connection") this.#connection.isLast = true;
  }

  end(body?: Buffer | string, close = false): void {
    if (close) this.writeHeader("connection", "close");
    if (body !== undefined) this.writeHeader("content-length", `${Buffer.byteLength(body)}`);
    this.#begin();
    this.#end(body);
  }

  endWithoutBody(): void {
    this.#begin();
    this.#end();
  }

  write(chunk: Buffer): boolean {
    this.#begin();
    const hasRoom = this.#send(chunk);
    this.#isAwaited = !hasRoom;
    return hasRoom;
  }

  tryEnd(rest: Buffer, total: number): [boolean, boolean] {
    // Called again when the last byte has been handed over.
    if (this.isEnded) return [true, true];
    if (!this.#hasBegun) this.writeHeader("content-length", `${total}`);
    this.#begin();
    // `rest` is the caller's again when this returns, and the socket may need it for longer.
    const piece = Buffer.from(rest.subarray(0, PIECE_BYTES));
    this.#offset += piece.length;
    const isFlushed = this.#offset === total && this.#end(piece);
    this.#isAwaited = !isFlushed;
    if (!this.isEnded) this.#send(piece);
    return [true, isFlushed];
  }

  close(): void {
    this.#connection.close();
  }

  abort(): void {
    this.#connection.settled(this);
    if (this.#isOver) return;
    this.#isOver = true;
    // An answer that nobody waits for counts as sent.
    if (!this.isEnded || this.#isAwaited) this.#aborted?.();
  }

  #begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#outgoing.writeHead(Number(this.#status.slice(0, 3)), this.#status.slice(4), this.#headers);
  }

  #send(piece: Buffer): boolean {
    this.#unflushed++;
    return this.#outgoing.write(piece, (error) => {
      this.#unflushed--;
      if (!error && !this.#unflushed) this.#goOn();
    });
  }

  /** Whether all of it has been handed over. */
  #end(piece?: Buffer | string): boolean {
    this.isEnded = true;
    this.#outgoing.end(piece);
    // Behind an answer that is not finished, this one waits in memory, without a socket.
    const isFlushed = this.#outgoing.socket !== null && this.#connection.isFlushed;
    if (isFlushed) this.#settle();
    else this.#outgoing.on("finish", () => this.#goOn());
    return isFlushed;
  }

  #settle(): void {
    this.#isOver = true;
    this.#connection.settled(this);
  }

  #goOn(): void {
    if (this.#isOver) return;
    if (this.isEnded) this.#settle();
    if (!this.#isAwaited) return;
    this.#isAwaited = false;
    this.#writable?.(this.#offset);
  }
}

/** A buffer of Node's is a part of a larger one. */
const copyOf = ({ buffer, byteOffset, byteLength }: Buffer): ArrayBuffer =>
  buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
