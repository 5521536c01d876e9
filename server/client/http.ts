/**
 * JSON over HTTP by `fetch`. Answers are checked against the schemas of `wire/` before they are used. Errors
 * (`application/problem+json`) become `ClientError`s.
 */
import type { Static, TSchema } from "typebox";
import { parseIJson } from "../../engine/verify/index.js";
import { fitsSchema } from "../wire/check.js";
import { Problem } from "../wire/errors.js";
import { OversizedAnswer, readBody, requestsLeft, secondsAsked } from "./body.js";
import { ClientError, type ClientErrorOptions, unreachable } from "./error.js";

/** The members of a query string; undefined members are omitted. */
export type Query = Readonly<Record<string, string | number | undefined>>;

export type Headers = Readonly<Record<string, string>>;

const PREFIX = "/api/v1";
/** How often one request is sent on to the node that leads. */
const MAX_MOVES = 3;

export class Http {
  /** Base address without `/api/v1` and without a slash at the end. */
  readonly server: string;
  readonly #fetch: typeof fetch;
  /**
   * The node of a replicated log that writes it, if another one has said so. It is asked everything then: it has what it
   * has acknowledged, and challenges are in its memory.
   */
  #leader: string | undefined;

  /** @throws TypeError when `server` is not an http(s) address */
  constructor(server: string, fetcher: typeof fetch) {
    if (!/^https?:\/\//.test(server) || !URL.canParse(server))
      throw new TypeError(`The address of a service looks like http://127.0.0.1:8080, not like ${server}.`);
    this.server = server.replace(/\/+$/, "").replace(/\/api\/v1$/, "");
    this.#fetch = fetcher;
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

  /** The bytes of what is not below `/api/v1`: a path from the service's root on. @throws ClientError */
  async rootBytes(path: string): Promise<Uint8Array> {
    return (await this.#send(path, {}, "")).bytes;
  }

  async #json<S extends TSchema>(schema: S, path: string, init: RequestInit): Promise<Static<S>> {
    const { bytes, status } = await this.#send(path, init);
    const body = readAnswer(bytes);
    // The server chose every member of the answer.
    if (!fitsSchema(schema, body))
      throw new ClientError("malformed-answer", `${this.server} answered ${path} with something else than promised.`, {
        status,
      });
    return known(schema, body) as Static<S>;
  }

  async #send(
    path: string,
    init: RequestInit,
    prefix = PREFIX,
  ): Promise<{ readonly bytes: Uint8Array; readonly status: number }> {
    for (let moves = 0; ; moves++) {
      const server = this.#leader ?? this.server;
      const { response, bytes } = await this.#fetched(server, prefix + path, init);
      const { status } = response;
      if (response.ok) return { bytes, status };
      const error = refusal(response, readAnswer(bytes), server);
      const leader = error.code === "not-leader" ? leaderIn(response, server) : undefined;
      this.#leader = error.code === "not-leader" ? leader : this.#leader;
      if (leader === undefined || moves === MAX_MOVES) throw error;
    }
  }

  async #fetched(
    server: string,
    path: string,
    init: RequestInit,
  ): Promise<{ readonly response: Response; readonly bytes: Uint8Array }> {
    try {
      // A redirect could carry a token or a proof to another host.
      const response = await this.#fetch.call(globalThis, server + path, { ...init, redirect: "error" });
      return { response, bytes: await readBody(response) };
    } catch (cause) {
      if (cause instanceof OversizedAnswer)
        throw new ClientError("malformed-answer", `${server} answered ${path} with too much. ${cause.message}`, {
          cause,
        });
      // The next request is sent to the node that was given, which knows who leads now.
      this.#leader = undefined;
      throw new ClientError("no-answer", unreachable(server, cause), { cause });
    }
  }
}

/** The address of the leader that a node names; none that would give up TLS. */
function leaderIn({ headers }: Response, server: string): string | undefined {
  const leader = headers.get("cairnlog-leader");
  if (leader === null || !URL.canParse(leader)) return undefined;
  const { protocol } = new URL(leader);
  const isSafe = protocol === "https:" || (protocol === "http:" && server.startsWith("http:"));
  return isSafe ? leader.replace(/\/+$/, "") : undefined;
}

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
  { code, detail, errors = [] }: Problem,
  waiting: Pick<ClientErrorOptions, "retryAfter" | "remaining">,
): ClientError {
  return new ClientError(code, detail, { status, errors, ...waiting });
}
