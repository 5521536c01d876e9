/** HTTP by `node:http` and `node:https`, for machines where uWebSockets.js does not load. */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { checkTls, type TlsFiles } from "../../transport/tls.js";
import {
  cannotListen,
  type RequestHandler,
  type Serving,
  type ServingOptions,
  type Transport,
  type TransportResponse,
  UWS_IDLE_S,
} from "../../transport/transport.js";
import { Connection } from "./connection.js";
import { MAX_HEADER_LINES, refusalHeaders, refusalOf, refusalOfError } from "./refusals.js";
import { NodeRequest, splitTarget } from "./request.js";
import { NodeResponse } from "./response.js";
import { Router } from "./router.js";

/** Milliseconds for which a client may be idle: in a head, in a body, in an answer that it reads. */
const IDLE_MS = 10_000;
/** Milliseconds between two looks for requests that are late. */
const LOOK_MS = 1_000;
/** Bytes of a request's head. */
const MAX_HEAD_BYTES = 16 * 1024;
/** Bytes that a socket holds before it says that it is full. */
const SOCKET_BYTES = 64 * 1024;

const contextOf = ({ certificate, key }: TlsFiles) =>
  ({ cert: readFileSync(certificate), key: readFileSync(key), minVersion: "TLSv1.2" }) as const;

export const nodeTransport: Transport = { name: "node", serve: (options) => new NodeServing(options) };

class NodeServing implements Serving {
  readonly #server: Server;
  readonly #tls: TlsFiles | null;
  readonly #router: Router<RequestHandler>;
  readonly #otherwise: RequestHandler;
  /** All open sockets, including those that have not begun the TLS handshake. */
  readonly #sockets = new Set<Socket>();
  /** The connections on which bytes have arrived. With TLS, the keys are the decrypted sockets. */
  readonly #connections = new Map<Socket, Connection>();
  connectionsRefused = 0;

  constructor(served: ServingOptions) {
    const { tls, maxConnections, requestTimeoutSeconds, idleTimeoutSeconds = UWS_IDLE_S, handlers, otherwise } = served;
    this.#router = new Router(handlers);
    this.#otherwise = otherwise;
    const options: ServerOptions = {
      insecureHTTPParser: false,
      // Refused by `refusalOf`, with a sentence.
      requireHostHeader: false,
      maxHeaderSize: MAX_HEAD_BYTES,
      highWaterMark: SOCKET_BYTES,
      headersTimeout: IDLE_MS,
      keepAliveTimeout: idleTimeoutSeconds * 1000,
      // The service refuses a body that is late; this ends a connection that goes on sending it all the same.
      requestTimeout: requestTimeoutSeconds * 1000 + IDLE_MS,
      connectionsCheckingInterval: LOOK_MS,
    };
    const server = tls
      ? createTlsServer({ ...options, ...contextOf(tls), handshakeTimeout: IDLE_MS })
      : createServer(options);
    this.#server = server;
    this.#tls = tls;
    server.maxConnections = maxConnections;
    // Further lines are dropped, and the count shows that there were more.
    server.maxHeadersCount = MAX_HEADER_LINES + 1;
    server.timeout = IDLE_MS;
    const accept = (incoming: IncomingMessage, outgoing: ServerResponse) => this.#accept(incoming, outgoing);
    server
      .on("connection", (socket: Socket) => {
        this.#sockets.add(socket);
        socket.on("close", () => this.#sockets.delete(socket));
      })
      .on("drop", () => this.connectionsRefused++)
      .on("request", accept)
      // uWebSockets.js looks at no expectation either.
      .on("checkExpectation", accept)
      .on("connect", (_: IncomingMessage, socket: Socket) => {
        // The library leaves such a socket alone.
        socket.on("error", () => socket.destroy());
        this.#of(socket).refuse({ status: "400 Bad Request", sentence: "The request must name a path." });
      })
      .on("clientError", (error: Error, socket: Socket) => {
        const refusal = socket.bytesRead ? refusalOfError(error) : null;
        if (refusal) this.#of(socket).refuse(refusal);
        else socket.destroy();
      })
      .on("timeout", (socket: Socket) => this.#of(socket).idle());
  }

  get connections(): number {
    return this.#sockets.size;
  }

  listen(host: string, port: number): Promise<number> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      const failed = (cause: Error) => reject(cannotListen(host, port, cause));
      server.once("error", failed).listen(port, host, () => {
        // From now on an error says that one connection could not be accepted.
        server.off("error", failed).on("error", () => this.connectionsRefused++);
        resolve((server.address() as AddressInfo).port);
      });
    });
  }

  renewCertificate(): void {
    if (!this.#tls) return;
    checkTls(this.#tls);
    (this.#server as TlsServer).setSecureContext(contextOf(this.#tls));
  }

  stopListening(): void {
    this.#server.close();
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  answerEarly(response: TransportResponse, body: Buffer): void {
    response.writeHeader("content-length", `${body.length}`);
    response.write(body);
  }

  #of(socket: Socket): Connection {
    const known = this.#connections.get(socket);
    if (known) return known;
    const connection = new Connection(socket);
    // One that has closed already would stay here for ever.
    if (socket.destroyed) return connection;
    this.#connections.set(socket, connection);
    socket.on("close", () => {
      this.#connections.delete(socket);
      connection.close();
    });
    return connection;
  }

  #accept(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const connection = this.#of(incoming.socket);
    if (connection.isLast) return;
    if (!connection.isFree) {
      connection.close();
      return;
    }
    const refusal = refusalOf(incoming);
    if (refusal) {
      connection.isLast = true;
      const { status, sentence } = refusal;
      outgoing.writeHead(Number(status.slice(0, 3)), status.slice(4), refusalHeaders(refusal)).end(sentence);
      return;
    }
    const [path, query] = splitTarget(incoming.url!);
    const found = this.#router.find(path);
    const response = new NodeResponse(connection, incoming, outgoing);
    (found?.value ?? this.#otherwise)(response, new NodeRequest(incoming, found?.params ?? [], query));
  }
}
