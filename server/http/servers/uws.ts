/** HTTP by uWebSockets.js, whose requests and answers the handlers get as they are. */
import type { HttpResponse, ListenOptions, TemplatedApp, us_listen_socket, us_socket } from "uWebSockets.js";
import { freePort } from "../transport/freeport.js";
import { checkTls } from "../transport/tls.js";
import {
  type ConnectionCount,
  cannotListen,
  type Serving,
  type ServingOptions,
  type Transport,
  type TransportResponse,
} from "../transport/transport.js";

type Library = typeof import("uWebSockets.js");

/** Without it the port is shared with whatever else of this user asks for it: other threads, but also other processes. */
const EXCLUSIVE_PORT = 1;
const SHARED_PORT = 0;
const END_OF_LINE = "\r\n";

/** @param library loaded by the caller, because its binary does not load everywhere */
export const uwsTransport = (library: Library): Transport => ({
  name: "uws",
  serve: (options) => new UwsServing(library, options),
});

/** An app of the library. The certificate of an app never changes, so a new one needs a new app. */
interface Running {
  readonly app: TemplatedApp;
  connections: number;
}

interface ListenAt {
  readonly host: string;
  readonly port: number;
  readonly options: ListenOptions;
}

class UwsServing implements Serving {
  readonly #library: Library;
  readonly #options: ServingOptions;
  readonly #count: ConnectionCount | undefined;
  #newest: Running;
  /** The newest app, and those with older certificates until their last connection has ended. */
  readonly #running = new Set<Running>();
  #listening: us_listen_socket | null = null;
  #place: ListenAt | null = null;
  connections = 0;
  connectionsRefused = 0;

  constructor(library: Library, options: ServingOptions) {
    this.#library = library;
    this.#options = options;
    this.#count = options.connectionCount;
    this.#newest = this.#make();
  }

  #make(): Running {
    const { tls, handlers, otherwise } = this.#options;
    const { App, SSLApp } = this.#library;
    const app = tls ? SSLApp({ cert_file_name: tls.certificate, key_file_name: tls.key }) : App();
    const running = { app, connections: 0 };
    app.filter((response, change) => this.#connected(running, response, Number(change)));
    for (const [path, handler] of handlers) app.any(path.replace(/\{(\w+)\}/g, ":$1"), handler);
    app.any("/*", otherwise);
    this.#running.add(running);
    return running;
  }

  async listen(host: string, port: number, isShared: boolean): Promise<number> {
    // An app keeps its certificate. One with a new certificate listens beside it.
    const isRenewable = this.#options.tls !== null;
    const options = isShared || isRenewable ? SHARED_PORT : EXCLUSIVE_PORT;
    const place = { host, port: isRenewable && !isShared ? await freePort(host, port) : port, options };
    const socket = this.#listen(this.#newest, place);
    if (!socket) throw cannotListen(host, port);
    const taken = this.#library.us_socket_local_port(socket as us_socket);
    this.#place = { ...place, port: taken };
    return taken;
  }

  /** The library calls back before it returns. @returns false if it cannot listen */
  #listen({ app }: Running, { host, port, options }: ListenAt): us_listen_socket | false {
    // The types know the options only without a host; the library takes both.
    const listen = app.listen.bind(app) as unknown as (
      host: string,
      port: number,
      options: ListenOptions,
      done: (socket: us_listen_socket | false) => void,
    ) => void;
    let listening: us_listen_socket | false = false;
    listen(host, port, options, (socket) => {
      listening = socket;
    });
    if (listening) this.#listening = listening;
    return listening;
  }

  /**
   * The new app listens beside the old one, which is why the port is shared; then the old one stops. A connection that the
   * kernel has given to the old one, and that it has not accepted, is reset.
   */
  renewCertificate(): void {
    const { tls } = this.#options;
    const place = this.#place;
    const [old, socket] = [this.#newest, this.#listening];
    if (!tls || !place || !socket) return;
    checkTls(tls);
    const renewed = this.#make();
    if (!this.#listen(renewed, place)) {
      this.#retire(renewed);
      throw cannotListen(place.host, place.port);
    }
    this.#newest = renewed;
    this.#library.us_listen_socket_close(socket);
    this.#retire(old);
  }

  /** Closes an app that does not listen any more, when its last connection has ended. */
  #retire(running: Running): void {
    if (running === this.#newest || running.connections > 0) return;
    // Not in a callback of the same app.
    setImmediate(() => {
      if (this.#running.delete(running)) running.app.close();
    });
  }

  stopListening(): void {
    if (this.#listening) this.#library.us_listen_socket_close(this.#listening);
    this.#listening = null;
  }

  close(): void {
    for (const { app } of this.#running) app.close();
    this.#running.clear();
  }

  /** The library would close the connection when the answer ends, with what is unread in it. So it sees one long header. */
  answerEarly(response: TransportResponse, body: Buffer): void {
    // It adds an end of line.
    const length = body.length + END_OF_LINE.length;
    const head = Buffer.from(`${new Date().toUTCString()}\r\ncontent-length: ${length}\r\n\r\n`);
    (response as HttpResponse).writeHeader("date", Buffer.concat([head, body]));
  }

  /** The library says +1 and −1; one that is too many and closed here is told as a −1, too. */
  #connected(running: Running, response: HttpResponse, change: number): void {
    running.connections += change;
    this.connections += change;
    const all = this.#count?.addConnections(change) ?? this.connections;
    if (change < 0) {
      this.#retire(running);
      return;
    }
    if (all <= this.#options.maxConnections) return;
    this.connectionsRefused++;
    response.close();
  }
}
