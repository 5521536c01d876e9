/** HTTP by uWebSockets.js, whose requests and answers the handlers get as they are. */
import type { HttpResponse, ListenOptions, TemplatedApp, us_listen_socket, us_socket } from "uWebSockets.js";
import { type ConnectionCount, cannotListen, type Serving, type ServingOptions, type Transport } from "./transport.js";

type Library = typeof import("uWebSockets.js");

/** Without it the port is shared with whatever else of this user asks for it: other threads, but also other processes. */
const EXCLUSIVE_PORT = 1;
const SHARED_PORT = 0;

/** @param library loaded by the caller, because its binary does not load everywhere */
export const uwsTransport = (library: Library): Transport => ({
  name: "uws",
  serve: (options) => new UwsServing(library, options),
});

class UwsServing implements Serving {
  readonly #library: Library;
  readonly #app: TemplatedApp;
  readonly #maxConnections: number;
  readonly #count: ConnectionCount | undefined;
  #listening: us_listen_socket | null = null;
  connections = 0;
  connectionsRefused = 0;

  constructor(library: Library, { tls, maxConnections, connectionCount, handlers, otherwise }: ServingOptions) {
    this.#library = library;
    this.#maxConnections = maxConnections;
    this.#count = connectionCount;
    this.#app = tls ? library.SSLApp({ cert_file_name: tls.certificate, key_file_name: tls.key }) : library.App();
    this.#app.filter((response, change) => this.#connected(response, Number(change)));
    for (const [path, handler] of handlers) this.#app.any(path.replace(/\{(\w+)\}/g, ":$1"), handler);
    this.#app.any("/*", otherwise);
  }

  listen(host: string, port: number, isShared: boolean): Promise<number> {
    return new Promise((resolve, reject) => {
      // The types know the options only without a host; the library takes both.
      const listen = this.#app.listen.bind(this.#app) as unknown as (
        host: string,
        port: number,
        options: ListenOptions,
        done: (socket: us_listen_socket | false) => void,
      ) => void;
      listen(host, port, isShared ? SHARED_PORT : EXCLUSIVE_PORT, (socket) => {
        if (!socket) return reject(cannotListen(host, port));
        this.#listening = socket;
        resolve(this.#library.us_socket_local_port(socket as us_socket));
      });
    });
  }

  stopListening(): void {
    if (this.#listening) this.#library.us_listen_socket_close(this.#listening);
    this.#listening = null;
  }

  close(): void {
    this.#app.close();
  }

  /** The library says +1 and −1; one that is too many and closed here is told as a −1, too. */
  #connected(response: HttpResponse, change: number): void {
    this.connections += change;
    const all = this.#count?.addConnections(change) ?? this.connections;
    if (change < 0 || all <= this.#maxConnections) return;
    this.connectionsRefused++;
    response.close();
  }
}
