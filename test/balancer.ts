/** A balancer that sends each request to the next of several nodes in turn, as one in front of a replicated log does. */
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** The address to which a request goes. @param turn number of requests before it */
export type Choice = (turn: number, method: string) => string;

export class Balancer {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async before(choose: Choice): Promise<Balancer> {
    let turn = 0;
    const server = createServer((incoming, outgoing) => {
      const { method = "GET", url = "/", headers } = incoming;
      const forwarded = request(choose(turn++, method) + url, { method, headers, agent: false }, (answer) => {
        outgoing.writeHead(answer.statusCode!, answer.headers);
        answer.on("error", () => outgoing.destroy());
        answer.pipe(outgoing);
      });
      forwarded.on("error", () => {
        if (outgoing.headersSent) outgoing.destroy();
        else outgoing.writeHead(502).end();
      });
      outgoing.on("close", () => forwarded.destroy());
      incoming.pipe(forwarded);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Balancer(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
