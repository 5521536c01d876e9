/** A request of `node:http` in the form that the service reads. */
import type { IncomingMessage } from "node:http";
import type { TransportRequest } from "../../transport/transport.js";

export class NodeRequest implements TransportRequest {
  readonly #incoming: IncomingMessage;
  readonly #params: readonly string[];
  readonly #query: string;

  constructor(incoming: IncomingMessage, params: readonly string[], query: string) {
    this.#incoming = incoming;
    this.#params = params;
    this.#query = query;
  }

  getCaseSensitiveMethod(): string {
    return this.#incoming.method!;
  }

  getQuery(): string {
    return this.#query;
  }

  getParameter(index: number): string | undefined {
    return this.#params[index];
  }

  forEach(each: (name: string, value: string) => void): void {
    const { rawHeaders } = this.#incoming;
    for (let i = 0; i < rawHeaders.length; i += 2) each(rawHeaders[i]!.toLowerCase(), rawHeaders[i + 1]!);
  }
}

/** The path of a request's target, and its query without the question mark. */
export function splitTarget(target: string): readonly [path: string, query: string] {
  const at = target.indexOf("?");
  return at < 0 ? [target, ""] : [target.slice(0, at), target.slice(at + 1)];
}
