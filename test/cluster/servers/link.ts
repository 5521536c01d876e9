/** A way from a client to a server over TCP that can be cut: bytes no longer pass, and nobody is told. */
import { connect, createServer, type Server, type Socket } from "node:net";

export class Link {
  readonly port: number;
  readonly #server: Server;
  readonly #target: number;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #isCut = false;

  private constructor(server: Server, port: number, target: number) {
    this.#server = server;
    this.port = port;
    this.#target = target;
    server.on("connection", (socket) => this.#join(socket));
  }

  /** A link to a port of this machine. */
  static open(target: number): Promise<Link> {
    return new Promise((resolve, reject) => {
      const server = createServer({ pauseOnConnect: true, noDelay: true });
      server.once("error", reject);
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        if (typeof address === "object" && address) resolve(new Link(server, address.port, target));
      });
    });
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  /** Nothing passes any more. Both ends keep their connections, as behind a cable that is pulled out. */
  cut(): void {
    this.#isCut = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** Ends the connections of both sides. New ones pass. */
  reset(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  /** Lets bytes pass again. What waited meanwhile arrives, as TCP sends it again. */
  heal(): void {
    this.#isCut = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  close(): void {
    this.#server.close();
    this.reset();
  }

  #join(client: Socket): void {
    const server = connect({ port: this.#target, host: "127.0.0.1", noDelay: true });
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on("data", (data) => {
        if (to.write(data)) return;
        from.pause();
        to.once("drain", () => !this.#isCut && from.resume());
      });
      from.on("end", () => to.end());
      // An end that breaks off breaks the other one off, too.
      from.on("error", () => to.destroy());
      from.on("close", () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
    }
    if (!this.#isCut) client.resume();
  }
}
