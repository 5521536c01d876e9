/** Connections of their own to a service, so that a test can ask each of its front ends. */
import { Agent, request } from "node:http";

export interface Said {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

/** One connection, which stays open. */
export class Connection {
  readonly #url: URL;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(url: string) {
    this.#url = new URL(url);
  }

  send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Said> {
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.#url;
      const asked = request({ agent: this.#agent, hostname, port, method, path, headers }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part) => {
          text += part;
        });
        response.on("error", reject).on("end", () => {
          const isJson = /json/.test(response.headers["content-type"] ?? "");
          const said = { status: response.statusCode!, headers: response.headers, text };
          resolve({ ...said, body: isJson && text ? JSON.parse(text) : undefined });
        });
      });
      asked.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
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
