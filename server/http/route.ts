/**
 * One row of the route table: everything that is known of a method on a path. The server, the validation, the OpenAPI
 * document and the contract tests all read the same row.
 */
import type { Static, TObject, TSchema } from "typebox";
import type { LimitName } from "./limits.js";
import type { Answer } from "./transport/answer.js";
import type { Keep } from "./transport/caching.js";
import type { Request } from "./transport/request.js";

export type Method = "GET" | "POST" | "DELETE";

/**
 * What a request must show: a Bearer session, the operator's, a proof in the member `auth`, either of the two, or a
 * signed challenge at the top of its body. `optional`: a session or a proof, in some cases only.
 */
export type Proving = "session" | "operator" | "proof" | "session-or-proof" | "challenge" | "optional";

/** What a handler gets: checked values. */
export interface Context<
  P extends TObject = TObject,
  Q extends TObject = TObject,
  B extends TSchema = TSchema,
  W = unknown,
> {
  readonly params: Static<P>;
  readonly query: Static<Q>;
  readonly body: Static<B>;
  readonly request: Request;
  /** What `authorize` found out; undefined in a route without it. */
  readonly proof: W;
}

/** A JSON value that nobody will change. */
type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

interface Definition<P extends TObject, Q extends TObject, B extends TSchema, A extends TSchema, W> {
  readonly method: Method;
  /** `/api/v1/log/{entry_id}` */
  readonly path: string;
  readonly summary: string;
  /**
   * Finds out who is asking (`gate.ts`), from the headers and the body as it was parsed, before anything of the request
   * is checked: its refusals go before those of the schemas.
   */
  readonly authorize?: (asking: { readonly request: Request; readonly body: unknown }) => Promise<W>;
  /** What `authorize`, or the handler itself, asks of the request; absent where anybody may. */
  readonly proving?: Proving;
  /** Parameters of the path, in order. */
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly answer: A;
  /** Status of the answer; 200 when absent. */
  readonly status?: 200 | 201;
  /** Media type of the answer; JSON when absent. */
  readonly answerType?: string;
  /** What may be asked for instead, by its media type. */
  readonly otherAnswers?: Readonly<Record<string, TSchema>>;
  /** Statuses of refusals beyond those that follow from the row (`openapi/responses.ts`). */
  readonly refusals?: readonly number[];
  /** Whether the handler asks for the client's address, which is looked up for few. */
  readonly asksAddress?: true;
  /** The limit that counts requests to it; null for probes, which are never refused. */
  readonly limit: LimitName | null;
  /** How the answer may be kept; where it is absent, not at all. Only for GET. */
  readonly keep?: (context: Context<P, Q, B, W>) => Keep;
  handle(context: Context<P, Q, B, W>): Frozen<Static<A>> | Answer | Promise<Frozen<Static<A>>> | Promise<Answer>;
}

/** A row whatever its schemas are. */
export type Route = Omit<Definition<TObject, TObject, TSchema, TSchema, unknown>, "handle" | "keep"> & {
  handle(context: Context): unknown;
  readonly keep?: (context: Context) => Keep;
};

/** Defines a route; the handler's types follow from the schemas. */
export function route<
  A extends TSchema,
  P extends TObject = TObject,
  Q extends TObject = TObject,
  B extends TSchema = TSchema,
  W = undefined,
>(definition: Definition<P, Q, B, A, W>): Route {
  return definition as unknown as Route;
}
