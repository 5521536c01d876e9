/** The servers that the service calls: a webhook endpoint and a timestamp calendar, on this machine. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { hash, hex, pending, prepend } from "../verify/ots/otsbytes.js";

const PATIENCE_MS = 5_000;

export class Outside {
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  /** Entries whose delivery was received. */
  readonly delivered = new Set<number>();
  /**
   * Whether deliveries are answered at once. Otherwise they wait, usually until the service has ended, but less than
   * the ten seconds after which it would count a failure. On a slow machine, such failures would delay the next attempt
   * by hours.
   */
  answers = true;

  static async open(): Promise<Outside> {
    const outside = new Outside();
    outside.#server.listen(0, "127.0.0.1");
    await once(outside.#server, "listening");
    return outside;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body: Buffer;
    try {
      body = Buffer.concat((await request.toArray()) as Buffer[]);
    } catch {
      // The service was killed while it was sending.
      return;
    }
    if (request.url === "/digest") response.end(this.#promise(body));
    else if (request.url !== "/hook") response.writeHead(404).end();
    else {
      if (!this.answers) await sleep(PATIENCE_MS);
      if (response.destroyed) return;
      this.delivered.add((JSON.parse(body.toString()) as { data: { entry_id: number } }).data.entry_id);
      response.writeHead(204).end();
    }
  }

  /** The answer of an OpenTimestamps calendar to a digest: a promise, and the address to ask later. */
  #promise(digest: Buffer): Buffer {
    const salted = prepend(hash("sha256", digest).subarray(0, 8));
    return hex(salted, "08", "00", pending(this.url));
  }
}
