/** A way from a client to a server over TCP that can be cut: bytes no longer pass, and nobody is told. */
import { connect, createServer, type Server, type Socket } from "node:net";

/** What looks at the bytes of one connection, before they pass. */
export interface Observer {
  /** Bytes of the client. */
  sent(chunk: Buffer): void;
  /** Bytes of the server. */
  received(chunk: Buffer): void;
}

export class Link {
  readonly port: number;
  readonly #server: Server;
  readonly #target: number;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  readonly #observe: () => Observer | null;
  /** What had arrived when the link was cut, and passes when it is healed. */
  readonly #held: (() => void)[] = [];
  #isCut = false;

  private constructor(server: Server, port: number, target: number, observe: () => Observer | null) {
    this.#server = server;
    this.port = port;
    this.#target = target;
    this.#observe = observe;
    server.on("connection", (socket) => this.#join(socket));
  }

  /** A link to a port of this machine. @param observe called for each connection */
  static open(target: number, observe: () => Observer | null = () => null): Promise<Link> {
    return new Promise((resolve, reject) => {
      const server = createServer({ pauseOnConnect: true, noDelay: true });
      server.once("error", reject);
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        if (typeof address === "object" && address) resolve(new Link(server, address.port, target, observe));
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

  /** Ends the connections of both sides, and what was held on them is gone. New ones pass. */
  reset(): void {
    this.#held.length = 0;
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  /** Lets bytes pass again. What waited meanwhile arrives, as TCP sends it again. */
  heal(): void {
    this.#isCut = false;
    for (const pass of this.#held.splice(0)) pass();
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
    const observer = this.#observe();
    if (observer) {
      client.on("data", (data) => observer.sent(data));
      server.on("data", (data) => observer.received(data));
    }
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      const pass = (data: Buffer) => {
        if (to.destroyed || to.write(data)) return;
        from.pause();
        to.once("drain", () => !this.#isCut && from.resume());
      };
      // An observer may have cut the link because of these very bytes.
      from.on("data", (data) => (this.#isCut ? this.#held.push(() => pass(data)) : pass(data)));
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
