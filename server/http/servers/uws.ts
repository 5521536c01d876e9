/** HTTP by uWebSockets.js, whose requests and answers the handlers get as they are. */
import type { HttpResponse, ListenOptions, TemplatedApp, us_listen_socket, us_socket } from "uWebSockets.js";
import { freePort } from "../transport/freeport.js";
import { checkTls } from "../transport/tls.js";
import {
  type ConnectionCount,
  cannotListen,
  type RequestHandler,
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

/**
 * An app of the library. The certificate of an app never changes, so a new one needs a new app. The library keeps the functions
 * that an app was given until the process ends, also when it is closed. So these hold this object alone, which then lets go of
 * the service: whoever starts many of them in a process would keep all their memory.
 */
interface Running {
  readonly app: TemplatedApp;
  connections: number;
  /** Of each path, and for all others. */
  handlers: readonly RequestHandler[];
  /** Called with +1 and −1. */
  connected: (response: HttpResponse, change: number) => void;
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
    const running: Running = {
      app,
      connections: 0,
      handlers: [...handlers.values(), otherwise],
      connected: (response, change) => this.#connected(running, response, change),
    };
    addRoutes(running, [...handlers.keys()]);
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
      if (this.#running.delete(running)) end(running);
    });
  }

  stopListening(): void {
    if (this.#listening) this.#library.us_listen_socket_close(this.#listening);
    this.#listening = null;
  }

  close(): void {
    for (const running of this.#running) end(running);
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

/** Outside the class: functions that are made in one place hold all that any of them uses. */
function addRoutes(running: Running, paths: readonly string[]): void {
  const { app } = running;
  app.filter((response, change) => running.connected(response, Number(change)));
  const routes = [...paths.map((path) => path.replace(/\{(\w+)\}/g, ":$1")), "/*"];
  for (const [index, route] of routes.entries())
    app.any(route, (response, request) => running.handlers[index]!(response, request));
}

/** Closes all connections of an app, which no request can reach then, and lets go of what it called. */
function end(running: Running): void {
  running.app.close();
  running.handlers = [];
  running.connected = () => {};
}
