/**
 * JSON over HTTP by `fetch`. Answers are checked against the schemas of the contract before they are used. Errors
 * (`application/problem+json`) become `ClientError`s.
 */
import type { Static, TSchema } from "typebox";
import { fitsSchema, isOrigin } from "../../../engine/contract/check.js";
import { Problem } from "../../../engine/contract/common.js";
import { parseIJson } from "../../../engine/verify/index.js";
import { OversizedAnswer, readBody, requestsLeft, secondsAsked } from "./body.js";
import { ClientError, type ClientErrorOptions, silenceReason } from "./error.js";

/** The members of a query string; undefined members are omitted. */
export type Query = Readonly<Record<string, string | number | undefined>>;

export type Headers = Readonly<Record<string, string>>;

/** Of every path of the API. */
export const PREFIX = "/api/v1";
/** The paths of published entries begin so. */
const BUNDLES = "/entries/";
/** How often one request is sent on to the node that leads. */
const MAX_MOVES = 3;
/** Milliseconds for which a request is sent again to nodes that are behind. */
const PATIENCE_MS = 30_000;
const LONGEST_PAUSE_S = 5;

export class Http {
  /** Base address without `/api/v1` and without a slash at the end. */
  readonly server: string;
  /** The addresses that the user named, by origin. No request goes anywhere else, whatever an answer says. */
  readonly #named: ReadonlyMap<string, string>;
  /** The origins that the user named: those of services whose challenges may be signed. */
  readonly origins: readonly string[];
  readonly #fetch: typeof fetch;
  readonly #patience: number;
  /**
   * Number of entries that the log has shown, signed. Every request says it, so that of several nodes one that has less waits,
   * or says that it is behind.
   */
  #seen = 0;
  /**
   * The address that is asked everything: at first the first one, then that of the node that writes the log, if another one has
   * said so, because it has what it has acknowledged. After a silence it is the next one, which knows who writes now.
   */
  #node: string;
  /** What must succeed before anything is sent but questions without a session, and its success. */
  #check: (() => Promise<unknown>) | undefined;
  #checked: Promise<unknown> | undefined;
  #frozen: (() => Promise<void>) | undefined;

  /**
   * @param server the address of the service, or those of all its nodes: the first one is asked first
   * @param publicOrigin the origin by which the service is known, if its addresses here are others
   * @param patience milliseconds for which a request is sent again to nodes that are behind
   * @throws TypeError when an address is not http(s), when there is none, or when `publicOrigin` is no origin
   */
  constructor(
    server: string | readonly string[],
    fetcher: typeof fetch,
    publicOrigin?: string,
    patience: number = PATIENCE_MS,
  ) {
    const addresses = (typeof server === "string" ? [server] : server).map(baseOf);
    const [first] = addresses;
    if (first === undefined) throw new TypeError("No address is given.");
    if (publicOrigin !== undefined && !isOrigin(publicOrigin))
      throw new TypeError(`The public origin of a service looks like https://log.example, not like ${publicOrigin}.`);
    this.server = first;
    this.#node = first;
    this.#named = new Map(addresses.map((address) => [new URL(address).origin, address]));
    this.origins = publicOrigin === undefined ? [...this.#named.keys()] : [publicOrigin];
    this.#fetch = fetcher;
    this.#patience = patience;
  }

  /** The log has shown that it has `size` entries: answers from now on must be of a log that is as large. */
  hasSeen(size: number): void {
    this.#seen = Math.max(this.#seen, size);
  }

  /** Has `check` succeed once before anything is sent but questions without a session. */
  checkFirst(check: () => Promise<unknown>): void {
    this.#check = check;
  }

  /** Has `seek` called when the service refuses a write because its log has ended. What it throws is thrown instead. */
  onFrozen(seek: () => Promise<void>): void {
    this.#frozen = seek;
  }

  /** @throws ClientError */
  get<S extends TSchema>(schema: S, path: string, query: Query = {}, headers: Headers = {}): Promise<Static<S>> {
    return this.#json(schema, path + search(query), { headers });
  }

  /** @throws ClientError */
  post<S extends TSchema>(schema: S, path: string, body: unknown, headers: Headers = {}): Promise<Static<S>> {
    const content = { "content-type": "application/json", ...headers };
    return this.#json(schema, path, { method: "POST", headers: content, body: JSON.stringify(body) });
  }

  /** @throws ClientError */
  delete<S extends TSchema>(schema: S, path: string, headers: Headers = {}): Promise<Static<S>> {
    return this.#json(schema, path, { method: "DELETE", headers });
  }

  /** The text of an answer that is not JSON. @throws ClientError */
  async text(path: string, query: Query = {}): Promise<string> {
    return new TextDecoder().decode(await this.bytes(path, query));
  }

  /** The bytes of an answer that is not JSON. @throws ClientError */
  async bytes(path: string, query: Query = {}): Promise<Uint8Array> {
    return (await this.#send(path + search(query), {})).bytes;
  }

  /**
   * The bytes of what is not below `/api/v1`: a path from the service's root on.
   * @param range from the first byte to that behind the last one
   * @throws ClientError
   */
  async rootBytes(path: string, range?: { readonly from: number; readonly to: number }): Promise<Uint8Array> {
    if (!range) return (await this.#send(path, {}, "")).bytes;
    const headers = { range: `bytes=${range.from}-${range.to - 1}` };
    const { bytes, status } = await this.#send(path, { headers }, "");
    // A server may send the whole.
    return status === 206 ? bytes : bytes.slice(range.from, range.to);
  }

  async #json<S extends TSchema>(
    schema: S,
    path: string,
    init: { readonly method?: string; readonly headers: Headers; readonly body?: string },
  ): Promise<Static<S>> {
    // A session is a secret, also with a question.
    if (init.method !== undefined || init.headers.authorization !== undefined) await this.#compared();
    const { bytes, status } = await this.#send(path, init);
    const body = readAnswer(bytes);
    // The server chose every member of the answer.
    if (!fitsSchema(schema, body))
      throw new ClientError("malformed-answer", `${this.server} answered ${path} with something else than promised.`, {
        status,
      });
    return known(schema, body) as Static<S>;
  }

  /** Waits for the success of what must come first; a failure is tried again with the next request. */
  async #compared(): Promise<void> {
    this.#checked ??= this.#check?.().catch((error: unknown) => {
      this.#checked = undefined;
      throw error;
    });
    await this.#checked;
  }

  async #send(
    path: string,
    init: RequestInit,
    prefix = PREFIX,
  ): Promise<{ readonly bytes: Uint8Array; readonly status: number }> {
    const until = performance.now() + this.#patience;
    for (let moves = 0; ; moves++) {
      const { server, response, bytes } = await this.#answered(prefix + path, init);
      const { status } = response;
      if (response.ok) return { bytes, status };
      const error = refusal(response, readAnswer(bytes), server);
      if (error.code === "behind" && performance.now() < until) {
        // Whoever answers decides how long it says. Another node may answer the next time.
        await new Promise((resolve) => setTimeout(resolve, Math.min(error.retryAfter ?? 1, LONGEST_PAUSE_S) * 1000));
        moves--;
        continue;
      }
      // Not where a question is so refused: the end is sought by questions.
      if (init.method && error.code === "frozen") await this.#frozen?.();
      if (error.code !== "not-leader") throw error;
      const told = response.headers.get("cairnlog-leader");
      const leader = this.#nodeAt(told, server);
      if (leader === undefined) throw isOtherNode(told, server) ? unnamed(error, told) : error;
      this.#node = leader;
      if (moves === MAX_MOVES) throw error;
    }
  }

  /** What the node that is asked answers. A question is put to all of them in turn; what became of a write, nobody knows. */
  async #answered(path: string, init: RequestInit) {
    const silent = new Set<string>();
    for (;;) {
      const server = this.#node;
      try {
        return { server, ...(await this.#fetched(server, path, init)) };
      } catch (error) {
        silent.add(server);
        const isOver = init.method !== undefined || silent.has(this.#node);
        if (isOver || (error as ClientError).code !== "no-answer") throw error;
      }
    }
  }

  /**
   * The address of the leader that a node tells, if the user named it. A hostile log could otherwise have the client send
   * requests to any machine that it can reach. TLS is never given up.
   * @param told what the server chose
   */
  #nodeAt(told: string | null, server: string): string | undefined {
    if (!isOtherNode(told, server)) return undefined;
    return this.#named.get(told);
  }

  async #fetched(
    server: string,
    path: string,
    init: RequestInit,
  ): Promise<{ readonly response: Response; readonly bytes: Uint8Array }> {
    try {
      // A redirect could carry a token or a proof to another host.
      const headers = this.#seen ? { ...init.headers, "cairnlog-size": `${this.#seen}` } : init.headers;
      const response = await this.#fetch.call(globalThis, server + path, {
        ...init,
        ...(headers && { headers }),
        redirect: "error",
      });
      return { response, bytes: await readBody(response, path.startsWith(BUNDLES)) };
    } catch (cause) {
      if (cause instanceof OversizedAnswer)
        throw new ClientError("malformed-answer", `${server} answered ${path} with too much. ${cause.message}`, {
          cause,
        });
      const addresses = [...this.#named.values()].filter((address) => keepsTls(server, address));
      if (this.#node === server) this.#node = addresses[(addresses.indexOf(server) + 1) % addresses.length]!;
      throw new ClientError("no-answer", silenceReason(server, cause), { cause });
    }
  }
}

/** An address without `/api/v1` and without a slash at its end. @throws TypeError when it is not an http(s) address */
function baseOf(server: string): string {
  if (!/^https?:\/\/[^?#]*$/.test(server) || !URL.canParse(server))
    throw new TypeError(`The address of a service looks like http://127.0.0.1:8080, not like ${server}.`);
  return server.replace(/\/+$/, "").replace(/\/api\/v1$/, "");
}

/** Whoever can break a connection or answer in it must not get what the next one sends in clear. */
const keepsTls = (from: string, to: string): boolean => to.startsWith("https:") || from.startsWith("http:");

/** Whether a node tells an origin at which another one might be. */
const isOtherNode = (told: string | null, server: string): told is string =>
  told !== null && isOrigin(told) && keepsTls(server, told);

/** `error`, with what the user can do. @param leader an origin */
const unnamed = ({ code, message, status, retryAfter, requestId }: ClientError, leader: string): ClientError =>
  new ClientError(
    code,
    `${message} It is said to be at ${leader}. A client goes to addresses that its user named only: if this is a node of your log, name it, too.`,
    { status, retryAfter, requestId },
  );

/** The part of JSON Schema that `known` uses. */
interface Schema {
  readonly anyOf?: readonly TSchema[];
  readonly items?: TSchema;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly additionalProperties?: unknown;
}

/**
 * A value that fits a schema, without the members that the schema does not name, because nobody has checked these.
 * Objects with any content (payloads, manifests) stay unchanged.
 */
function known(schema: TSchema, value: unknown): unknown {
  const { anyOf, items, properties = {}, additionalProperties } = schema as Schema;
  if (anyOf) return known(anyOf.find((branch) => fitsSchema(branch, value))!, value);
  if (Array.isArray(value)) return items ? value.map((item) => known(items, item)) : value;
  const names = Object.keys(properties);
  if (typeof value !== "object" || value === null || !names.length || additionalProperties === true) return value;
  const members = value as Readonly<Record<string, unknown>>;
  const present = names.filter((name) => Object.hasOwn(members, name));
  return Object.fromEntries(present.map((name) => [name, known(properties[name]!, members[name])]));
}

function search(query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, `${value}`]]));
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

/** The parsed value, or undefined for a text that is not I-JSON, which no schema accepts. */
function readAnswer(bytes: Uint8Array): unknown {
  try {
    return parseIJson(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

function refusal({ status, headers }: Response, body: unknown, server: string): ClientError {
  const waiting = { retryAfter: secondsAsked(headers), remaining: status === 429 ? requestsLeft(headers) : undefined };
  if (!fitsSchema(Problem, body))
    return new ClientError("malformed-answer", `${server} answered ${status} without saying why.`, {
      status,
      ...waiting,
    });
  return problemError(status, body as Problem, waiting);
}

/** The error for a refusal of the service. */
export function problemError(
  status: number,
  { code, detail, errors = [], successor, request_id: requestId }: Problem,
  waiting: Pick<ClientErrorOptions, "retryAfter" | "remaining">,
): ClientError {
  return new ClientError(code, detail, { status, errors, successor, requestId, ...waiting });
}
