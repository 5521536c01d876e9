/** Connections of their own to a service, so that a test can ask each of its front ends. */
import { Agent, type IncomingMessage, request } from "node:http";

export interface Said {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

/** How fast a client sends and reads. */
export interface Pace {
  /** Parts of the body, each in a turn of the event loop. */
  readonly pieces?: number;
  readonly read?: (response: IncomingMessage) => Promise<Buffer>;
}

async function atOnce(response: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  return Buffer.concat(parts);
}

/**
 * Half of the time after which the service closes an idle connection: a write over one that is being closed is lost, and must not
 * be sent again.
 */
const IDLE_MS = 5_000;

/** One connection, which stays open while it is used. */
export class Connection {
  readonly #url: URL;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1, timeout: IDLE_MS });

  constructor(url: string) {
    this.#url = new URL(url);
  }

  async send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    { pieces = 1, read = atOnce }: Pace = {},
  ): Promise<Said> {
    const sent = body === undefined ? null : Buffer.from(JSON.stringify(body));
    const response = await this.#begin(method, path, sent, headers, pieces);
    const bytes = await read(response);
    const text = bytes.toString();
    const isJson = /json/.test(response.headers["content-type"] ?? "");
    return {
      status: response.statusCode!,
      headers: response.headers,
      bytes,
      text,
      body: isJson && text ? JSON.parse(text) : undefined,
    };
  }

  #begin(
    method: string,
    path: string,
    body: Buffer | null,
    headers: Record<string, string>,
    pieces: number,
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.#url;
      const length = body && { "content-length": `${body.length}` };
      const options = { agent: this.#agent, hostname, port, method, path, headers: { ...headers, ...length } };
      const asked = request(options, resolve);
      asked.on("error", (error: NodeJS.ErrnoException) => {
        // The service has closed a connection that was idle, just when it was used again. A question may be asked again.
        if (!body && asked.reusedSocket && error.code === "ECONNRESET")
          this.#begin(method, path, body, headers, pieces).then(resolve, reject);
        else reject(error);
      });
      let sent = 0;
      const go = (): void => {
        const to = Math.ceil((body!.length * ++sent) / pieces);
        const piece = body!.subarray(Math.ceil((body!.length * (sent - 1)) / pieces), to);
        if (sent >= pieces) asked.end(piece);
        else asked.write(piece, () => setImmediate(go));
      };
      if (body) go();
      else asked.end();
    });
  }

  get(path: string): Promise<Said> {
    return this.send("GET", `/api/v1${path}`);
  }

  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Said> {
    return this.send("POST", `/api/v1${path}`, body, headers);
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The front end that answered: request ids begin with a text that each thread chose. */
export const frontOf = ({ headers }: Said): string => String(headers["x-request-id"]).slice(0, 23);

/**
 * A connection to each front end of a service. The operating system chooses which one gets a connection, so there are as many
 * as that takes.
 * @param path answered by the front end that is asked
 */
export async function connectToEach(url: string, frontEnds: number, path = "/health"): Promise<Connection[]> {
  const found = new Map<string, Connection>();
  for (let tries = 0; found.size < frontEnds; tries++) {
    if (tries > 1000) throw new Error(`only ${found.size} of ${frontEnds} front ends answer`);
    const connection = new Connection(url);
    const front = frontOf(await connection.get(path));
    if (found.has(front)) connection.close();
    else found.set(front, connection);
  }
  return [...found.values()];
}
