/** Records the answers of a service, and repeats them unchanged except for one lie. */

/** A recorded answer. */
export interface Exchange {
  readonly method: string;
  /** With its query, and without `/api/v1` where it begins so. */
  readonly path: string;
  /** The body of the request. */
  readonly body: string | undefined;
  readonly status: number;
  readonly contentType: string;
  readonly bytes: Buffer<ArrayBuffer>;
}

/** The exchange to falsify, and the false answer. */
export interface Told {
  readonly exchange: Exchange;
  readonly bytes: Buffer<ArrayBuffer>;
}

export class Recording {
  readonly exchanges: Exchange[] = [];

  /** A `fetch` that asks the service and records its answers. */
  readonly record: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const bytes = Buffer.from(await response.arrayBuffer());
    const contentType = response.headers.get("content-type") ?? "";
    const { status } = response;
    this.exchanges.push({ ...named(input, init), status, contentType, bytes });
    return answer({ status, contentType }, bytes);
  };

  /** A `fetch` that repeats the recorded answers, in order for each request. The service answers other requests. */
  replay(told?: Told): typeof fetch {
    const left = [...this.exchanges];
    return async (input, init) => {
      const { method, path } = named(input, init);
      const found = left.findIndex((exchange) => exchange.method === method && exchange.path === path);
      if (found < 0) return fetch(input, init);
      const [exchange] = left.splice(found, 1) as [Exchange];
      return answer(exchange, exchange === told?.exchange ? told.bytes : exchange.bytes);
    };
  }
}

const named = (input: Parameters<typeof fetch>[0], init: RequestInit | undefined) => ({
  method: init?.method ?? "GET",
  path: String(input).replace(/^https?:\/\/[^/]+(?:\/api\/v1)?/, ""),
  body: typeof init?.body === "string" ? init.body : undefined,
});

const answer = ({ status, contentType }: Pick<Exchange, "status" | "contentType">, bytes: Buffer<ArrayBuffer>) =>
  new Response(bytes, { status, headers: { "content-type": contentType } });
