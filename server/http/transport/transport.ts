/**
 * What the service needs of an HTTP library: it listens, reads requests, and writes answers no faster than clients read
 * them. uWebSockets.js has these forms of requests and answers itself (`uws.ts`), so nothing stands between the two;
 * `node/` makes them of `node:http`.
 */
import { CairnlogError } from "../../../engine/base/error.js";
import type { TlsFiles } from "./tls.js";

/** `uws` is uWebSockets.js, `node` is `node:http` and `node:https`. */
export const TRANSPORTS = ["uws", "node"] as const;
export type TransportName = (typeof TRANSPORTS)[number];

/** Seconds after which uWebSockets.js closes a connection that is idle. It has no option for it. */
export const UWS_IDLE_S = 10;

/** A request whose head has come. Valid until the handler returns. All of it may come from an attacker. */
export interface TransportRequest {
  getCaseSensitiveMethod(): string;
  /** What stands between the path and its end, as sent, without the question mark. */
  getQuery(): string | undefined;
  /** A part of the path that stands where the pattern has a name, as sent. */
  getParameter(index: number): string | undefined;
  /** Calls back with every header line, in order, names in lower case. */
  forEach(each: (name: string, value: string) => void): void;
}

/**
 * The answer to a request, and its body as it arrives. Until the handler returns, or in `cork`, writes are gathered.
 * Nothing may be called after the answer has ended or after it was aborted.
 */
export interface TransportResponse {
  /** Empty when the client is gone. */
  getRemoteAddressAsText(): ArrayBuffer;
  /** Must be called before the handler returns. A chunk is valid until the callback returns. */
  onData(receive: (chunk: ArrayBuffer, isLast: boolean) => void): unknown;
  /** Called once if the connection ends before the answer has been handed over, also by `close`. */
  onAborted(aborted: () => void): unknown;
  cork(write: () => void): unknown;
  /** A code and a phrase. Without it the status is 200. */
  writeStatus(status: string): unknown;
  /** The value may hold further header lines. Nothing of it is checked: all of it must be ours. */
  writeHeader(name: string, value: string): unknown;
  /** Ends an answer, with a body that fits a socket's own buffer; `close` closes the connection behind it. */
  end(body?: Buffer | string, close?: boolean): unknown;
  endWithoutBody(): unknown;
  /** Sends a chunk of an answer of unknown length, which is kept. @returns false when `onWritable` should be waited for */
  write(chunk: Buffer): boolean;
  /**
   * Sends as much of the rest of a body as can be sent now. `rest` may be overwritten when this returns.
   * @param total length of the whole body
   * @returns whether something was sent, and whether all of it has been handed to the operating system
   */
  tryEnd(rest: Buffer, total: number): [boolean, boolean];
  /** Called with the number of bytes that were sent when more can be. */
  onWritable(writable: (offset: number) => boolean): unknown;
  /** Ends the connection at once. */
  close(): unknown;
}

export type RequestHandler = (response: TransportResponse, request: TransportRequest) => void;

/** How many connections are open, in all threads that serve. */
export interface ConnectionCount {
  /** @returns how many there are then */
  addConnections(change: number): number;
}

export interface ServingOptions {
  /** Null for plain HTTP. */
  readonly tls: TlsFiles | null;
  /** Connections beyond which a new one is closed at once. */
  readonly maxConnections: number;
  /** Where they are counted, if other threads serve, too. */
  readonly connectionCount?: ConnectionCount | undefined;
  /** Seconds after which a connection without a request is closed; `UWS_IDLE_S` if absent. */
  readonly idleTimeoutSeconds?: number;
  /** Seconds in which the service itself refuses a body that has not arrived. */
  readonly requestTimeoutSeconds: number;
  /** Handlers by path, in which `{name}` stands for any part that is not empty; a part that is written out goes first. */
  readonly handlers: ReadonlyMap<string, RequestHandler>;
  /** For all other paths. */
  readonly otherwise: RequestHandler;
}

/** A server. One connection has one request at a time: a second one, while the first has no answer, ends it. */
export interface Serving {
  /** Open connections, and those that were closed at once because there were too many. */
  readonly connections: number;
  readonly connectionsRefused: number;
  /**
   * Starts to listen; port 0 takes a free one.
   * @param isShared whether other threads of this process listen on the same port; only uWebSockets.js can
   * @returns the port
   * @throws CairnlogError `precondition-failed` when the port is taken or the host is not this machine's
   */
  listen(host: string, port: number, isShared: boolean): Promise<number>;
  /**
   * Reads the files of certificate and key again. Connections that are made from now on get them; open ones keep theirs.
   * Nothing happens without TLS.
   * @throws CairnlogError `precondition-failed` when the files cannot be used; then the old certificate stays
   */
  renewCertificate(): void;
  /** Takes no more connections. */
  stopListening(): void;
  /** Ends every connection at once. */
  close(): void;
  /**
   * Sends the body of an answer, and with it its length, while the body of the request is arriving. In `cork`, when status and all
   * other headers are written. The answer does not end, so that the library neither closes the connection nor takes another
   * request from it: `close` of the response must follow.
   */
  answerEarly(response: TransportResponse, body: Buffer): void;
}

export interface Transport {
  readonly name: TransportName;
  serve(options: ServingOptions): Serving;
}

export const cannotListen = (host: string, port: number, cause?: unknown): CairnlogError =>
  new CairnlogError(
    "precondition-failed",
    `Cannot listen on ${host} port ${port}: the port is in use, or the address is not this machine's.`,
    { cause },
  );
