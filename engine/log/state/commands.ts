/**
 * Commands: everything that changes a log. A command is a name and a function of a transaction and of plain data, so it
 * can be recorded, handed from one thread to another and run again. The same commands on the same state, at the same
 * times, write the same bytes.
 *
 * For this a command reads the log through its transaction and nothing else, takes the time from there, and gets
 * whatever else it needs (identifiers, random values, settings) with its input. It keeps nothing between two runs.
 */
import type { LoggedEvent, PreparedEvent, PrivateWriter } from "./projection.js";

/** What a command may do. Synchronous and deterministic; throwing leaves no trace of it. */
export interface Transaction extends PrivateWriter {
  /** The command's one moment: canonical text, never before the newest entry. Its events carry it. */
  readonly timestamp: string;
  /** Entries of the log at this point, those included that the command has appended. */
  readonly size: number;
  /** Id of the newest of them; 0 if there is none. */
  readonly lastId: number;
  append(event: PreparedEvent): LoggedEvent;
}

/** Data that a message can carry, and that means the same wherever it arrives. */
type Plain = null | boolean | number | string | Uint8Array | readonly Plain[] | PlainObject;
export type PlainObject = { readonly [member: string]: Plain };

/** `T` as plain data: another type than `T` where a member of it is a function, an instance of a class or unknown. */
type PlainForm<T> = T extends Plain
  ? T
  : T extends (...args: never[]) => unknown
    ? never
    : T extends object
      ? { readonly [K in keyof T]: PlainForm<T[K]> }
      : Plain;

/** Fits every function where `Input` is plain data, and none where it is not. */
type OnlyPlain<Input> = [Input] extends [PlainForm<Input>] ? unknown : never;

/** A command, to be handed to `Log.execute` with its input. */
export interface Command<Input, Output> {
  readonly name: string;
  readonly run: (transaction: Transaction, input: Input) => Output;
}

const defined = new Map<string, Command<never, unknown>>();

/**
 * Makes a command and files it under its name.
 * @param name unique among all commands of the program, and the same in every version of it: records hold it
 * @throws RangeError when there is a command of this name
 */
export function define<Input, Output>(
  name: string,
  run: ((transaction: Transaction, input: Input) => Output) & OnlyPlain<Input>,
): Command<Input, Output> {
  if (defined.has(name)) throw new RangeError(`There are two commands of the name ${name}.`);
  const command = { name, run };
  defined.set(name, command);
  return command;
}

/** The command of a name that came in a message or a record; undefined when there is none. */
export function commandNamed(name: string): Command<never, unknown> | undefined {
  return defined.get(name);
}

export interface PlainEvent {
  readonly event_type: string;
  readonly payload: PlainObject;
}

/** Appends events that become neighbours in one batch. */
export const appendEvents = define(
  "log.append",
  (transaction: Transaction, { events }: { readonly events: readonly PlainEvent[] }) => {
    for (const event of events) transaction.append(event);
  },
);

/**
 * Takes the moment at which it runs for a head that is signed on demand: no head before is later, and none is earlier that
 * is made afterwards. It is written down, so that this holds also when the clock has stepped back and the log was closed
 * and opened again.
 */
export const takeHeadTime = define("log.take-head-time", (transaction: Transaction, _: null) => {
  const { timestamp } = transaction;
  transaction.put("signedHeads", "log", { timestamp });
  return timestamp;
});
