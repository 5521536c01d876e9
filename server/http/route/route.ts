/**
 * One row of the route table: all facts about a method on a path. The server, the validation, the OpenAPI document and
 * the contract tests use the same row.
 */
import type { Static, TObject, TSchema } from "typebox";
import type { Problem } from "../../../engine/contract/common.js";
import type { Value } from "../../../engine/contract/types.js";
import type { LimitName } from "../limits/limits.js";
import type { Answer } from "../transport/answer.js";
import type { Keep } from "../transport/caching.js";
import type { Request } from "../transport/request.js";

export type Method = "GET" | "POST" | "DELETE";

/**
 * The proof that a request must have: a Bearer session, the operator's session, a proof in the member `auth`, either a
 * session or a proof, a session that has just begun or a proof, or a signed challenge at the top of its body. `optional`: a session or a proof, only in some
 * cases.
 */
export type Proving =
  | "session"
  | "operator"
  | "proof"
  | "session-or-proof"
  | "fresh-session-or-proof"
  | "challenge"
  | "optional";

/** The checked input of a handler. */
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
  /** The result of `authorize`; undefined in a route without it. */
  readonly proof: W;
}

/** The refusal of one of the requests in a body that holds many. */
export interface PartRefusal {
  readonly status: number;
  readonly problem: Problem;
  /** Seconds; absent if waiting does not help. */
  readonly retry_after?: number;
}

interface Definition<P extends TObject, Q extends TObject, B extends TSchema, A extends TSchema, W> {
  readonly method: Method;
  /** `/api/v1/log/{entry_id}` */
  readonly path: string;
  readonly summary: string;
  /**
   * Authenticates the client (`gate.ts`) from the headers and the parsed body, before anything else is checked. Its
   * errors take precedence over those of the schemas.
   */
  readonly authorize?: (asking: {
    readonly request: Request;
    readonly body: unknown;
    /** Of this row. */
    readonly path: string;
  }) => Promise<W> | W;
  /** The proof that `authorize` or the handler requires; absent if anybody may call the route. */
  readonly proving?: Proving;
  /** Parameters of the path, in order. */
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** The body is handed over as it came, in a `Buffer`. Nothing about it is checked but its size. */
  readonly isRaw?: true;
  readonly answer: A;
  /** Status of the answer; 200 if absent. */
  readonly status?: 200 | 201;
  /** Media type of the answer; JSON if absent. */
  readonly answerType?: string;
  /** Other forms of the answer, by media type. */
  readonly otherAnswers?: Readonly<Record<string, TSchema>>;
  /** Error statuses besides those that follow from the row (`openapi/responses.ts`). */
  readonly refusals?: readonly number[];
  /** Whether the handler needs the client's address. It is looked up only for these routes. */
  readonly asksAddress?: true;
  /** The limit that counts requests to this route; null for probes, which are never refused. */
  readonly limit: LimitName | null;
  /**
   * For a body that holds many requests, each of which is checked and answered by itself. Such a body may be larger than
   * others (`BULK_BODIES`). The request counts against the general limit; when its body is there, its parts count against
   * `limit`, all of them or none.
   */
  readonly bulk?: {
    /** What is checked of the body, in place of `body`. */
    readonly frame: TSchema;
    /** Number of requests in a body that fits `frame`. */
    count(body: Static<B>): number;
  };
  /**
   * Whether the log here reaches as far as the request asks. Absent where the request names no place in the log. Nodes that
   * may be behind look at it (`replica-lag.ts`).
   */
  readonly reached?: (context: Context<P, Q, B, W>) => boolean;
  /** How clients may cache the answer; not at all, if absent. Only for GET. */
  readonly keep?: (context: Context<P, Q, B, W>) => Keep;
  /** @param refusal for a route with `bulk`: makes the refusal of a part, which is counted and logged as others are */
  handle(
    context: Context<P, Q, B, W>,
    refusal: (error: unknown) => PartRefusal,
  ): Value<A> | Answer | Promise<Value<A>> | Promise<Answer>;
}

/** A row with any schemas. */
export type Route = Omit<Definition<TObject, TObject, TSchema, TSchema, unknown>, "handle" | "keep" | "reached"> & {
  handle(context: Context, refusal?: (error: unknown) => PartRefusal): unknown;
  readonly keep?: (context: Context) => Keep;
  readonly reached?: (context: Context) => boolean;
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
