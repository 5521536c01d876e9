/**
 * What front ends and the writer's thread say to each other. All of it is plain data. Messages between two threads arrive
 * in the order in which they were sent.
 */

import { CairnlogError, type ErrorCode, type ErrorDetail, type Successor } from "../../engine/base/error.js";
import type { FeedMessage } from "../../engine/log/follow/feed.js";
import type { AllowedSigner } from "../../engine/verify/index.js";
import type { TreeHead } from "../../engine/verify/tree/treehead.js";
import type { FrontReport } from "../http/observing/metrics.js";
import { HttpError } from "../http/route/problems.js";
import type { LineLevel } from "../process/logger.js";
import type { Call } from "./calls.js";

/** A number that a front end chose, by which it knows the answer. */
export type CallId = number;

/** An error, as far as it becomes an answer. */
type Fault =
  | {
      readonly kind: "engine";
      readonly code: ErrorCode;
      readonly message: string;
      readonly details: readonly ErrorDetail[] | undefined;
      readonly retryAfter: number | undefined;
      readonly successor: Successor | undefined;
    }
  | {
      readonly kind: "http";
      readonly code: HttpError["code"];
      readonly message: string;
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly kind: "unexpected"; readonly message: string; readonly stack: string | undefined };

export function faultOf(error: unknown): Fault {
  if (error instanceof CairnlogError) {
    const { code, message, details, retryAfter, successor } = error;
    return { kind: "engine", code, message, details, retryAfter, successor };
  }
  if (error instanceof HttpError) {
    const { code, message, headers } = error;
    return { kind: "http", code, message, headers };
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { kind: "unexpected", message, stack };
}

export function errorOf(fault: Fault): Error {
  if (fault.kind === "http") return new HttpError(fault.code, fault.message, fault.headers);
  if (fault.kind === "engine") {
    const { code, message, details, retryAfter, successor } = fault;
    return new CairnlogError(code, message, {
      ...(details && { details }),
      ...(retryAfter !== undefined && { retryAfter }),
      ...(successor && { successor }),
    });
  }
  const error = new Error(fault.message);
  if (fault.stack !== undefined) error.stack = fault.stack;
  return error;
}

/**
 * A command of a front end: its id, name and input, and who pays for it, member by member; nobody, if these are absent or
 * null. With a tracer, the span that it is a step of follows (`server/process/tracing.ts`).
 */
export type CommandMessage = readonly [
  id: CallId,
  name: string,
  input: unknown,
  ...payer: readonly [] | readonly [client: string | null, isReached: boolean, traceparent?: string],
];

/**
 * How a command ended, when what it did is on disk: its value, and for each receipt the members that differ. Arrays, because
 * a message spells the names of all members of every object.
 */
export type Outcome =
  | readonly [id: CallId, fault: Fault]
  | readonly [id: CallId, fault: null, value: unknown, ...receipts: PackedReceipt];

/** Receipts, one behind the other: `RECEIPT_ITEMS` items each. */
type PackedReceipt = readonly (string | number)[];
export const RECEIPT_ITEMS = 8;

/** What the heads of one batch have in common. */
export type BatchHead = Pick<TreeHead, "timestamp" | "key_id" | "tree_version">;

/** From a front end. */
export type ToWriter =
  /** All commands of one turn of its event loop. */
  | { readonly kind: "commands"; readonly commands: readonly CommandMessage[] }
  | ({ readonly kind: "call"; readonly id: CallId; readonly traceparent?: string } & Call)
  | { readonly kind: "opened" }
  | { readonly kind: "listening"; readonly port: number }
  /** A line for the logger of the program that embeds the service. */
  | { readonly kind: "log"; readonly level: LineLevel; readonly details: object; readonly sentence: string }
  | { readonly kind: "renewed" }
  /** It cannot start, or cannot go on. */
  | { readonly kind: "failed"; readonly fault: Fault }
  /** The answers come in the order of the questions. */
  | { readonly kind: "report"; readonly report: Omit<FrontReport, "thread"> };

/** To a front end. */
export type ToFront =
  /**
   * What all front ends are told of the log, and how commands of this one ended, which were waiting for that: with the
   * entries of their receipts, one behind the other.
   */
  | {
      readonly kind: "feed";
      readonly feed: readonly FeedMessage[];
      readonly outcomes: readonly Outcome[];
      readonly heads: readonly BatchHead[];
      readonly entries: Uint8Array | null;
    }
  | { readonly kind: "answer"; readonly id: CallId; readonly value: unknown }
  | { readonly kind: "refusal"; readonly id: CallId; readonly fault: Fault }
  | { readonly kind: "listen"; readonly host: string; readonly port: number; readonly isShared: boolean }
  | { readonly kind: "report" }
  /** Names those who may write from now on. It counts as a message of the feed, so no later request is answered before it. */
  | { readonly kind: "writers"; readonly listed: readonly AllowedSigner[] }
  /** It reads certificate and key again, for connections to come. */
  | { readonly kind: "renew" }
  /** It answers what it accepted, closes its connections and ends. */
  | { readonly kind: "close" }
  /** It closes its connections at once and ends. */
  | { readonly kind: "abandon" };
