/**
 * The calls of front ends: what the writer's thread does for all of them. It is whatever counts or remembers something, so
 * that there is one of it, and whatever needs the operator key. A new call is a name in the table: both threads follow it.
 */
import type { OperatorKey } from "../../engine/crypto/signer/operator-key.js";
import type { WriterLink } from "../../engine/log/follow/follower.js";
import type { Owned } from "../../engine/registry/registry.js";
import type { Services } from "../http/services.js";

/** What there is one of for a service, in the writer's thread. */
export type Shared = Owned &
  Services & { readonly operator: Pick<OperatorKey, "sign">; readonly log: Pick<WriterLink, "signHead"> };

/** The methods that front ends call. What they take and return is plain data. */
const CALLS = {
  challengeUses: ["settle"],
  passwords: ["check", "set"],
  accounts: ["create", "recover"],
  claims: ["reveal"],
  operator: ["sign"],
  log: ["signHead"],
  verification: ["report"],
  anchoring: ["anchor", "status"],
  checkpoints: ["newest"],
  tlog: ["checkpoint", "witnesses"],
  metrics: ["text"],
  readiness: ["check"],
  /** Only at a node of a replicated log. */
  replication: ["status"],
} as const satisfies { readonly [O in keyof Shared]?: readonly (keyof NonNullable<Shared[O]>)[] };

type Calls = typeof CALLS;
type Methods<Of, Named> = { readonly [M in Named & keyof Of]: Remote<Of[M]> };
type Remote<Method> = Method extends (...args: infer Args) => infer Answer
  ? (...args: Args) => Promise<Awaited<Answer>>
  : never;

/** `Shared`, as far as it can be called from another thread. */
export type WriterCalls = {
  readonly [O in keyof Calls]: Methods<NonNullable<Shared[O]>, Calls[O][number]>;
};

/** A call of a method, as a message. */
export interface Call {
  readonly object: keyof Calls;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** @param send hands a call to the writer's thread, and resolves with the answer */
export function callsBy(send: (call: Call) => Promise<unknown>): WriterCalls {
  const objects = Object.entries(CALLS) as [keyof Calls, readonly string[]][];
  const remote = objects.map(([object, methods]) => [
    object,
    Object.fromEntries(methods.map((method) => [method, (...args: unknown[]) => send({ object, method, args })])),
  ]);
  return Object.fromEntries(remote) as WriterCalls;
}

/** Answers a call, in the writer's thread. */
export function answerCall(shared: Shared, { object, method, args }: Call): unknown {
  const called = shared[object] as unknown as Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;
  return called[method]!(...args);
}
